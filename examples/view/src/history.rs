//! What a run has measured: the `.csv` beside the series of its states.

use crate::error::{Error, Result};
use crate::model::Metric;
use std::path::Path;

/// A history has a line for each frame of a film: more bytes than this are none.
const MOST_BYTES: u64 = 64 << 20;
/// Lines that a page draws: of more, some in between are left out.
const MOST_LINES: usize = 2000;

/// Measures over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// What was measured.
    pub metrics: Vec<Metric>,
    /// Simulated seconds, ascending, with the value of each measure.
    pub lines: Vec<(f64, Vec<f64>)>,
}

impl History {
    /// That of a series: the file of its name that ends in `.csv`. None if there is no such file, or it is a table of something else.
    ///
    /// # Errors
    /// A line that is none of such a file.
    pub fn beside(series: &Path) -> Result<Option<History>> {
        let path = series.with_extension("csv");
        let error = |what: String| Error::Series { path: path.clone(), what };
        match path.metadata() {
            Ok(found) if found.len() <= MOST_BYTES => {}
            Ok(found) => return Err(error(format!("a history of {} bytes is none", found.len()))),
            Err(_) => return Ok(None),
        }
        parse(&std::fs::read_to_string(&path).map_err(|e| error(e.to_string()))?).map_err(error)
    }
}

fn parse(text: &str) -> std::result::Result<Option<History>, String> {
    let mut rows = text.lines().zip(1..);
    let head = cells(rows.next().map_or("", |(head, _)| head));
    let ["step", "time_s", names @ ..] = &head.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Ok(None);
    };
    let mut lines: Vec<(f64, Vec<f64>)> = Vec::new();
    for (row, number) in rows {
        let values = row.split(',').map(|cell| cell.trim().parse::<f64>());
        let values = values.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| format!("line {number}: {e}"))?;
        match &values[..] {
            [_, time, rest @ ..] if rest.len() == names.len() && time.is_finite() => lines.push((*time, rest.to_vec())),
            _ => {
                return Err(format!("line {number}: {} numbers, of which there are {}", values.len(), names.len() + 2));
            }
        }
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (every, last) = (lines.len().div_ceil(MOST_LINES).max(1), lines.len().saturating_sub(1));
    let is_kept = |i: &usize| i.is_multiple_of(every) || *i == last;
    let lines = lines.into_iter().enumerate().filter(|(i, _)| is_kept(i)).map(|(_, line)| line).collect();
    Ok(Some(History { metrics: names.iter().map(|name| metric(name)).collect(), lines }))
}

/// The cells of a line, in which those with a comma are quoted.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().expect("there is one from the start").push(c),
        }
    }
    cells
}

/// A measure from its name, with the unit in parentheses behind it if it has one.
fn metric(text: &str) -> Metric {
    let parts = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    let (name, unit) = parts.unwrap_or((text, ""));
    Metric { name: name.into(), unit: unit.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_are_read_and_what_is_none_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let series = folder.path().join("a.pvd");
        assert_eq!(History::beside(&series).unwrap(), None);
        let read = |text: &str| {
            std::fs::write(folder.path().join("a.csv"), text).unwrap();
            History::beside(&series)
        };
        let history =
            read("step,time_s,energy (J m²/kg),\"length, all\"\n0,0,1.5,2\n5,0.5,NaN,-3e4\n").unwrap().unwrap();
        let metric = |name: &str, unit: &str| Metric { name: name.into(), unit: unit.into() };
        assert_eq!(history.metrics, [metric("energy", "J m²/kg"), metric("length, all", "")]);
        assert_eq!((history.lines.len(), history.lines[1].0, history.lines[1].1[1]), (2, 0.5, -3e4));
        // The table of the vertices of a graph.
        assert_eq!(read("vertex,distance\n0,1\n").unwrap(), None);
        assert_eq!(read("").unwrap(), None);
        for (text, says) in [
            ("step,time_s,a\n0,0\n", "line 2: 2 numbers"),
            ("step,time_s,a\n0,0,1\n1,x,2\n", "line 3: invalid float"),
            ("step,time_s,a\n0,inf,1\n", "line 2"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("a.csv"), "{error}");
        }
        let many: String = (0..9001).map(|i| format!("{i},{i},7\n")).collect();
        let lines = read(&format!("step,time_s,a\n{many}")).unwrap().unwrap().lines;
        assert!(lines.len() <= MOST_LINES + 1 && lines.last().unwrap().0 == 9000.0);
    }
}
