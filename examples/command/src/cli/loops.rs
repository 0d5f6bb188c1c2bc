//! How often the loops of a run went round, and whether they came to their ends.

use super::text;
use meshweft::Iterations;
use serde_json::{Value, json};

/// How often a loop went round, in words; none if it was not begun. `steps`: those of the run.
pub(super) fn told(name: &str, found: &Iterations, steps: u64) -> Option<String> {
    let Iterations { times, total, last, longest, ran_out, limit } = *found;
    let each = if times == steps { "step" } else { "time" };
    let times = match times {
        0 => return None,
        1 => return Some(format!("{name}: {}{}", counted(total), if ran_out > 0 { ", its limit" } else { "" })),
        times => times,
    };
    let mean = text::number((10.0 * total as f64 / times as f64).round() / 10.0);
    let ended = match ran_out {
        0 => String::new(),
        n => {
            let (n, times) = (text::count(n as usize), text::counted(times as usize, each, &format!("{each}s")));
            format!("; {n} of {times} ended at the limit of {limit}")
        }
    };
    Some(format!("{name}: {mean} iterations a {each} (last {last}, most {longest}){ended}"))
}

/// What to do about a loop that did not come to its end.
pub(super) fn advice(name: &str, found: &Iterations) -> Option<String> {
    let Iterations { times, ran_out, limit, .. } = *found;
    (ran_out > 0).then(|| {
        let (n, of) = (text::count(ran_out as usize), text::counted(times as usize, "time", "times"));
        format!(
            "{name} did not hold after {}, {n} of {of}: the steps are less exact than they are asked to be; allow more iterations, or take \
             smaller time steps or a larger tolerance",
            counted(limit.into())
        )
    })
}

/// The same as an object.
pub(super) fn to_json((name, found): &(&'static str, Iterations)) -> Value {
    let Iterations { times, total, last, longest, ran_out, limit } = *found;
    json!({
        "until": name,
        "times": times,
        "iterations": total,
        "last": last,
        "most": longest,
        "ran_out": ran_out,
        "limit": if ran_out > 0 { Some(limit) } else { None },
    })
}

fn counted(n: u64) -> String {
    text::counted(n as usize, "iteration", "iterations")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_told_of_in_a_line() {
        let found = Iterations { times: 300, total: 11_100, last: 12, longest: 80, ran_out: 3, limit: 80 };
        assert_eq!(
            told("Converged", &found, 300).unwrap(),
            "Converged: 37 iterations a step (last 12, most 80); 3 of 300 steps ended at the limit of 80"
        );
        let well = Iterations { ran_out: 0, ..found };
        assert_eq!(told("Converged", &well, 100).unwrap(), "Converged: 37 iterations a time (last 12, most 80)");
        assert!(advice("Converged", &found).unwrap().contains("after 80 iterations, 3 of 300 times"));
        assert_eq!((advice("Converged", &well), told("Converged", &Iterations::default(), 0)), (None, None));
        let once = Iterations { times: 1, total: 1, ..well };
        assert_eq!(told("Spread", &once, 1).unwrap(), "Spread: 1 iteration");
    }
}
