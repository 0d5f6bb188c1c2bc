//! States that were written to files: a mesh, or the series of a `.pvd`.

use crate::error::{Error, Result};
use meshweft_mesh::{Mesh, io};
use quick_xml::events::Event;
use quick_xml::{Reader, XmlVersion};
use std::path::{Path, PathBuf};

/// A `.pvd` has a line for each state: more bytes than this are none.
const MOST_BYTES: u64 = 64 << 20;

/// States in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    states: Vec<State>,
}

/// A state in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Its time in seconds.
    pub time: f64,
    /// The file.
    pub path: PathBuf,
}

impl Series {
    /// The states of a `.pvd` file; of any other file that one.
    ///
    /// # Errors
    /// A list that cannot be read, names no state, or has several pieces of one.
    pub fn open(path: &Path) -> Result<Series> {
        if !path.extension().is_some_and(|end| end.eq_ignore_ascii_case("pvd")) {
            return Ok(Series { states: vec![State { time: 0.0, path: path.to_owned() }] });
        }
        let error = |what: String| Error::Series { path: path.to_owned(), what };
        let size = path.metadata().map_err(|e| error(e.to_string()))?.len();
        if size > MOST_BYTES {
            return Err(error(format!("a list of states of {size} bytes is none")));
        }
        let text = std::fs::read_to_string(path).map_err(|e| error(e.to_string()))?;
        let mut states = parse(&text).map_err(error)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        states.iter_mut().for_each(|state| state.path = folder.join(&state.path));
        Ok(Series { states })
    }

    /// The states, one at least.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Reads a state; of places behind the end the last one.
    ///
    /// # Errors
    /// A file that cannot be read as a mesh.
    pub fn read(&self, at: usize) -> Result<Mesh> {
        Ok(io::read(&self.states[at.min(self.states.len() - 1)].path)?)
    }
}

fn parse(text: &str) -> std::result::Result<Vec<State>, String> {
    let mut reader = Reader::from_str(text);
    let mut states: Vec<State> = Vec::new();
    loop {
        let line = |at: u64| text.as_bytes()[..at as usize].iter().filter(|&&b| b == b'\n').count() + 1;
        let at = reader.buffer_position();
        match reader.read_event().map_err(|e| format!("line {}: {e}", line(at)))? {
            Event::Eof => break,
            Event::Empty(element) | Event::Start(element) if element.local_name().as_ref() == "DataSet" => {
                let value = |name: &str| -> std::result::Result<Option<String>, String> {
                    let found = element.try_get_attribute(name).map_err(|e| format!("line {}: {e}", line(at)))?;
                    let found = found
                        .map(|found| found.normalized_value(XmlVersion::Implicit1_0).map(|text| text.into_owned()));
                    found.transpose().map_err(|e| format!("line {}: {e}", line(at)))
                };
                let file = value("file")?.ok_or_else(|| format!("line {}: a DataSet without file=\"…\"", line(at)))?;
                let time = value("timestep")?.unwrap_or_else(|| "0".into());
                let time = time.trim().parse().ok().filter(|time: &f64| time.is_finite());
                let time = time.ok_or_else(|| format!("line {}: timestep is no number", line(at)))?;
                if file.ends_with(".pvtu") {
                    let what = "is in pieces, a file a host: view one of them, as NAME_000100.1.vtu";
                    return Err(format!("line {}: the state {what}", line(at)));
                }
                if value("part")?.is_some_and(|part| part.trim() != "0") {
                    return Err(format!("line {}: a state in several parts: view one of its files", line(at)));
                }
                states.push(State { time, path: file.into() });
            }
            _ => {}
        }
    }
    states.sort_by(|a, b| a.time.total_cmp(&b.time));
    if states.is_empty() { Err("names no state: no element DataSet".into()) } else { Ok(states) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_errors_say_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pvd");
        let open = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Series::open(&path)
        };
        let list = "<?xml version=\"1.0\"?>\n<VTKFile><Collection>\n\
            <DataSet timestep=\"0.5\" part=\"0\" file=\"b &amp; c.vtu\"/>\n<DataSet timestep=\"0\" file=\"a.vtu\"/>\n\
            </Collection></VTKFile>";
        let series = open(list).unwrap();
        let files = ["a.vtu", "b & c.vtu"].map(|name| folder.path().join(name));
        assert_eq!(series.states().iter().map(|s| s.path.clone()).collect::<Vec<_>>(), files);
        assert!(series.read(7).unwrap_err().to_string().contains("b & c.vtu"));
        for (text, says) in [
            ("", "names no state"),
            ("<Collection>\n<DataSet timestep=\"x\" file=\"a\"/>", "line 2: timestep"),
            ("<DataSet timestep=\"1\"/>", "line 1: a DataSet without file"),
            ("<DataSet file=\"a.pvtu\"/>", "in pieces"),
            ("<DataSet part=\"1\" file=\"a.vtu\"/>", "several parts"),
            ("<a>\n</b>", "line"),
        ] {
            let error = open(text).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("a.pvd"), "{text}: {error}");
        }
    }
}
