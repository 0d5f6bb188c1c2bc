//! Settings that are changed while a run goes on: its digest is then no longer that of its command line, and all that it leaves says so.

use super::text;
use crate::{Kind, Run, Setting, Settings};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

/// Changes that a run takes: it notes each of them.
const MOST: usize = 1000;
/// Changes that are told one by one when it is over.
const TOLD: usize = 4;

/// A setting got another value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Change {
    /// The step after which it did.
    pub(super) after_step: u64,
    pub(super) setting: String,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// The settings of a run, and how they came to be what they are.
pub(super) struct Changes {
    known: &'static [Setting],
    pub(super) settings: Settings,
    pub(super) all: Vec<Change>,
    /// Whether there are some that nobody has noted.
    is_fresh: bool,
}

impl Changes {
    /// Of a run that begins with these settings, after changes that were made to them before it was gone on with.
    pub(super) fn new(known: &'static [Setting], settings: Settings, before: Option<Vec<Change>>) -> Changes {
        let is_fresh = before.is_some();
        Changes { known, settings, all: before.unwrap_or_default(), is_fresh }
    }

    /// Those that can be changed, with their units and values.
    pub(super) fn live(&self, run: &Run) -> Vec<(&'static Setting, &'static str, f64)> {
        let known = |name: &&str| self.known.iter().find(|setting| setting.name == *name);
        let number = |setting: &'static Setting| match setting.kind {
            Kind::Number { unit, .. } => Some((setting, unit, self.settings.number(setting.name))),
            Kind::Choice(_) | Kind::Mesh | Kind::Text { .. } => None,
        };
        run.live().iter().filter_map(known).filter_map(number).collect()
    }

    /// Changes one of those, from the next step on. Returns what that comes to, in a line; nothing if it has the value already.
    ///
    /// # Errors
    /// None that can be changed; a value out of range, or with which the program cannot go on; more changes than a run notes. All is
    /// as it was.
    pub(super) fn set(&mut self, place: usize, to: f64, run: &mut Run) -> Result<Option<String>> {
        let live = self.live(run);
        let Some(&(setting, unit, from)) = live.get(place) else { bail!("there is no setting {place} to be changed") };
        if to == from {
            return Ok(None);
        }
        if self.all.len() >= MOST {
            bail!("a run takes {MOST} changes of its settings, and has had them");
        }
        let mut settings = self.settings.clone();
        settings.set(self.known, setting.name, &to.to_string())?;
        run.change(&settings)?;
        self.settings = settings;
        let change = Change { after_step: run.steps(), setting: setting.name.into(), from, to };
        let line = change.to_text(unit);
        self.all.push(change);
        self.is_fresh = true;
        Ok(Some(line))
    }

    /// Whether there are others than when this was last asked.
    pub(super) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.is_fresh)
    }

    fn unit(&self, name: &str) -> &'static str {
        let setting = self.known.iter().find(|setting| setting.name == name);
        setting.map_or("", |setting| if let Kind::Number { unit, .. } = setting.kind { unit } else { "" })
    }

    /// A line for each, for a file; none if there are none.
    pub(super) fn to_csv(&self) -> Option<String> {
        let head = "after_step,setting,from,to,unit\n".to_string();
        let line = |text: String, Change { after_step, setting, from, to }: &Change| {
            text + &format!("{after_step},{setting},{from},{to},{}\n", self.unit(setting))
        };
        (!self.all.is_empty()).then(|| self.all.iter().fold(head, line))
    }

    /// What there is to tell of them when the run is over, if there were any.
    pub(super) fn told(&self) -> Option<String> {
        let lines = self.all.iter().take(TOLD).map(|change| change.to_text(self.unit(&change.setting)));
        let lines = lines.collect::<Vec<_>>().join(", ");
        let more = match self.all.len().saturating_sub(TOLD) {
            0 => String::new(),
            more => format!(", and {more} more in the .changes.csv"),
        };
        (!self.all.is_empty()).then(|| format!("{lines}{more}: the digest is that of a run with these changes"))
    }
}

impl Change {
    fn to_text(&self, unit: &str) -> String {
        let Change { after_step, setting, from, to } = self;
        format!("{setting} from {} to {} after step {after_step}", text::number(*from), text::quantity(*to, unit))
    }

    /// The words of a command line that begins with the value that it came to.
    pub(super) fn to_word(&self) -> String {
        format!("--set={}={}", self.setting, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::cli::programs::DIFFUSION;

    #[test]
    fn changes_are_taken_noted_and_refused_with_a_reason() {
        let info = DIFFUSION.first().unwrap().info;
        let mesh = meshweft_mesh::generate::generate("sheet:4", 1).unwrap();
        let settings = Settings::new(info.settings);
        let mut run = DIFFUSION.first().unwrap().start(mesh, &settings, &Options::default()).unwrap();
        let mut changes = Changes::new(info.settings, settings, None);
        assert_eq!((changes.to_csv(), changes.told(), changes.take_fresh()), (None, None, false));
        run.step().unwrap();
        assert_eq!(changes.set(0, 0.05, &mut run).unwrap(), None);
        assert!(changes.set(0, 1.5, &mut run).unwrap_err().to_string().contains("out of range: 0 to 1"));
        assert!(changes.set(1, 0.5, &mut run).is_err());
        assert_eq!(changes.set(0, 0.1, &mut run).unwrap().unwrap(), "rate from 0.05 to 0.1 after step 1");
        assert_eq!([changes.take_fresh(), changes.take_fresh()], [true, false]);
        assert_eq!(changes.all.len(), 1);
        assert_eq!(changes.to_csv().unwrap(), "after_step,setting,from,to,unit\n1,rate,0.05,0.1,\n");
        assert_eq!(changes.all[0].to_word(), "--set=rate=0.1");
        for i in 0..MOST {
            let _ = changes.set(0, 0.2 + 1e-4 * i as f64, &mut run);
        }
        assert!(changes.set(0, 0.9, &mut run).unwrap_err().to_string().contains("1000 changes"));
        assert!(changes.told().unwrap().contains("and 996 more"));
    }
}
