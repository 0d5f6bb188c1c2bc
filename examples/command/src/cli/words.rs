//! Options that were parsed, as words that are parsed to the same.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// The options that the command line gave to a command, each as one word, and without those that are left out by name; first what has
/// no name of its own.
pub(super) fn of(matches: &ArgMatches, command: &Command, left_out: &[&str]) -> Vec<String> {
    let mut words = Vec::new();
    for option in command.get_arguments() {
        let id = option.get_id().as_str();
        if left_out.contains(&id) || matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let Some(name) = option.get_long() else {
            let values = matches.get_raw(id).into_iter().flatten();
            words.splice(0..0, values.map(|value| value.to_string_lossy().into_owned()));
            continue;
        };
        if !option.get_action().takes_values() {
            words.push(format!("--{name}"));
            continue;
        }
        for values in matches.get_raw_occurrences(id).into_iter().flatten() {
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            words.push(format!("--{name}={}", values.join(",")));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::*;
    use clap::Args;

    #[test]
    fn words_are_parsed_to_the_same() {
        let command = run::Arguments::augment_args(Command::new("run"));
        let given = "run NAME --mesh=a b.msh --set=dt=1e-3 --set=a=2 --steps=12 --camera=-62,30 --verify --threads=2";
        let words = |words: Vec<String>| of(&command.clone().get_matches_from(words), &command, &["verify"]);
        let given: Vec<String> = given
            .split(" --")
            .enumerate()
            .map(|(i, word)| if i == 0 { word.into() } else { format!("--{word}") })
            .collect();
        let given: Vec<String> = given[0].split(' ').map(str::to_string).chain(given[1..].iter().cloned()).collect();
        let first = words(given.clone());
        assert_eq!(first[0], "NAME");
        let mut expected: Vec<_> = given[1..].iter().filter(|word| *word != "--verify").cloned().collect();
        let again = words([vec!["run".to_string()], first.clone()].concat());
        assert_eq!(again, first);
        let mut first = first;
        first.sort();
        expected.sort();
        assert_eq!(first, expected);
        #[cfg(feature = "cluster")]
        assert_eq!(words(vec!["run".into(), "NAME".into(), "--shares".into(), "3,1".into()]), ["NAME", "--shares=3,1"]);
    }
}
