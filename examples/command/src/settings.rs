//! Named settings of an example, as `--set name=value` and case files give them.

use crate::names::unknown;
use anyhow::{Result, anyhow, bail};
use std::collections::BTreeMap;

/// One setting: its name, what it means, and what it may be.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name, as in `--set name=value`.
    pub name: &'static str,
    /// What it means, in one line.
    pub about: &'static str,
    /// What it may be.
    pub kind: Kind,
}

impl Setting {
    /// A number: its unit, empty for a pure one, and the smallest and the largest that it may be.
    ///
    /// ```
    /// use meshweft_command::{Setting, Settings};
    /// const KNOWN: &[Setting] = &[Setting::number("dt", "time step", 0.01, "s", [1e-6, 1.0])];
    /// assert_eq!(Settings::new(KNOWN).number("dt"), 0.01);
    /// ```
    pub const fn number(
        name: &'static str,
        about: &'static str,
        default: f64,
        unit: &'static str,
        range: [f64; 2],
    ) -> Setting {
        Setting { name, about, kind: Kind::Number { default, unit, range } }
    }
}

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A number in a closed range, with its unit.
    Number {
        /// The value unless set.
        default: f64,
        /// Its unit; empty for a pure number.
        unit: &'static str,
        /// Smallest and largest value.
        range: [f64; 2],
    },
    /// One of several words; the first unless set.
    Choice(&'static [&'static str]),
    /// A mesh: a file or a shape, as `--mesh` takes them; none unless set.
    Mesh,
    /// Words of a form, such as `GROUP=VALUE`, which the example reads; what they are unless set.
    Text {
        /// The words unless set.
        default: &'static str,
        /// What they look like.
        form: &'static str,
    },
}

/// The values of all settings of an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, Value>,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    Choice(&'static str),
    Mesh(Option<String>),
    Text(String),
}

/// What says that there is no mesh.
pub(crate) const NONE: &str = "none";

impl Settings {
    /// The defaults.
    pub fn new(known: &[Setting]) -> Settings {
        let default = |setting: &Setting| match setting.kind {
            Kind::Number { default, .. } => Value::Number(default),
            Kind::Choice(words) => Value::Choice(words[0]),
            Kind::Mesh => Value::Mesh(None),
            Kind::Text { default, .. } => Value::Text(default.into()),
        };
        Settings { values: known.iter().map(|s| (s.name, default(s))).collect() }
    }

    /// Sets one value.
    ///
    /// # Errors
    /// An unknown name (lists those there are), a value that is no number, out of range, or none of the words.
    ///
    /// ```
    /// use meshweft_command::{Kind, Setting, Settings};
    /// let known = [Setting { name: "speed", about: "", kind: Kind::Number { default: 1.0, unit: "m/s", range: [0.0, 9.0] } }];
    /// let mut settings = Settings::new(&known);
    /// settings.set(&known, "speed", "2.5")?;
    /// assert_eq!(settings.number("speed"), 2.5);
    /// assert!(settings.set(&known, "speed", "10").is_err());
    /// # anyhow::Ok(())
    /// ```
    pub fn set(&mut self, known: &[Setting], name: &str, text: &str) -> Result<()> {
        let setting = known
            .iter()
            .find(|s| s.name == name)
            .ok_or_else(|| anyhow!(unknown("setting", name, &known.iter().map(|s| s.name).collect::<Vec<_>>())))?;
        let value = match setting.kind {
            Kind::Number { unit, range: [low, high], .. } => {
                let x: f64 = text.trim().parse().map_err(|_| anyhow!("setting {name}={text:?} is no number"))?;
                if !(low..=high).contains(&x) {
                    bail!("setting {name}={text} is out of range: {low} to {high} {unit}");
                }
                Value::Number(x)
            }
            Kind::Choice(words) => {
                let word = words.iter().find(|w| w.eq_ignore_ascii_case(text.trim()));
                let word = word.ok_or_else(|| anyhow!("setting {name}={text:?}: one of {}", words.join(", ")))?;
                Value::Choice(word)
            }
            Kind::Text { .. } => Value::Text(Some(text.trim()).filter(|text| *text != NONE).unwrap_or_default().into()),
            Kind::Mesh => Value::Mesh(Some(text.trim().to_string()).filter(|name| name != NONE && !name.is_empty())),
        };
        self.values.insert(setting.name, value);
        Ok(())
    }

    /// The value of a number.
    ///
    /// # Panics
    /// If the example declares no number of that name.
    pub fn number(&self, name: &str) -> f64 {
        match self.values.get(name) {
            Some(Value::Number(x)) => *x,
            other => panic!("no number is declared as {name:?}: {other:?}"),
        }
    }

    /// The value of a number that counts things, rounded.
    ///
    /// # Panics
    /// If the example declares no number of that name.
    pub fn count(&self, name: &str) -> usize {
        self.number(name).round() as usize
    }

    /// The chosen word.
    ///
    /// # Panics
    /// If the example declares no choice of that name.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.values.get(name) {
            Some(Value::Choice(word)) => word,
            other => panic!("no choice is declared as {name:?}: {other:?}"),
        }
    }

    /// The name of a mesh, if one is set: for [`cli::mesh`](crate::cli::mesh).
    ///
    /// # Panics
    /// If the example declares no mesh of that name.
    pub fn mesh(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some(Value::Mesh(mesh)) => mesh.as_deref(),
            other => panic!("no mesh is declared as {name:?}: {other:?}"),
        }
    }

    /// The words of a text; empty for none.
    ///
    /// # Panics
    /// If the example declares no text of that name.
    pub fn text(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(Value::Text(text)) => text,
            other => panic!("no text is declared as {name:?}: {other:?}"),
        }
    }

    /// All names with their values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        self.values.iter().map(|(&name, value)| {
            let text = match value {
                Value::Number(x) => x.to_string(),
                Value::Choice(word) => (*word).to_string(),
                Value::Mesh(mesh) => mesh.as_deref().unwrap_or(NONE).to_string(),
                Value::Text(text) if text.is_empty() => NONE.to_string(),
                Value::Text(text) => text.clone(),
            };
            (name, text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Setting] = &[
        Setting { name: "dt", about: "", kind: Kind::Number { default: 0.5, unit: "s", range: [0.0, 1.0] } },
        Setting { name: "method", about: "", kind: Kind::Choice(&["in-place", "explicit"]) },
        Setting { name: "over", about: "", kind: Kind::Mesh },
        Setting { name: "fixed", about: "", kind: Kind::Text { default: "left", form: "SIDE, .." } },
    ];

    #[test]
    fn wrong_names_and_values_are_refused_with_a_way_out() {
        let mut settings = Settings::new(KNOWN);
        for (name, text, says) in [
            ("dd", "1", "did you mean `dt`? there are dt, method, over, fixed"),
            ("dt", "fast", "no number"),
            ("dt", "NaN", "out of range"),
            ("dt", "1.5", "0 to 1 s"),
            ("method", "magic", "in-place, explicit"),
        ] {
            let error = settings.set(KNOWN, name, text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        settings.set(KNOWN, "method", "Explicit").unwrap();
        assert_eq!((settings.number("dt"), settings.choice("method")), (0.5, "explicit"));
        for (text, mesh) in
            [(" torus:9x5", Some("torus:9x5")), ("none", None), ("a part.obj", Some("a part.obj")), ("", None)]
        {
            settings.set(KNOWN, "over", text).unwrap();
            assert_eq!(settings.mesh("over"), mesh);
            let known = settings.iter().find(|setting| setting.0 == "over").unwrap().1;
            assert_eq!(known, mesh.unwrap_or("none"));
        }
        assert_eq!(settings.text("fixed"), "left");
        for (text, said) in [(" xmin=xy, rest ", "xmin=xy, rest"), ("none", ""), ("", "")] {
            settings.set(KNOWN, "fixed", text).unwrap();
            assert_eq!(settings.text("fixed"), said);
        }
    }
}
