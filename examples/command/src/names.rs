//! Names that are looked up.

/// What to say of a name that is not known: which one was probably meant, and which there are.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let lower = name.to_lowercase();
    let distances = known.iter().map(|known| (strsim::osa_distance(&lower, known), known));
    // Two slips of the pen, but no more than half of the letters: beyond that a suggestion is only noise.
    let near = distances.filter(|&(distance, known)| distance <= 2 && 2 * distance <= known.len()).min();
    let hint = near.map_or(String::new(), |(_, near)| format!("did you mean `{near}`? "));
    format!("unknown {what} {name:?}: {hint}there are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_offered_if_there_is_one() {
        for (name, hint) in [
            ("flwo", "did you mean `flow`? "),
            ("floe", "did you mean `flow`? "),
            ("Tide", "did you mean `tide`? "),
            ("componets", "did you mean `components`? "),
            ("sand", ""),
            ("", ""),
        ] {
            let said = unknown("example", name, &["flow", "tide", "components"]);
            assert_eq!(said, format!("unknown example {name:?}: {hint}there are flow, tide, components"));
        }
    }
}
