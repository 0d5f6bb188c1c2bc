//! How settings vary from copy to copy: `--vary`, and `--set` with a range of values.

use crate::names::unknown;
use crate::{Kind, Setting, Settings};
use anyhow::{Context, Result, anyhow, bail};
use meshweft::{Int, Real, random};
use std::ffi::OsString;
use std::path::Path;
use std::str::FromStr;

/// The name of what varies the mesh of a generator by its random numbers.
pub(super) const SEED: &str = "seed";
/// Rows of a table and values of a range: some megabytes.
const MOST_VALUES: usize = 1 << 20;
/// Bytes of a file.
const MOST_BYTES: u64 = 256 << 20;

/// One `--vary`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Axis {
    /// Some words for each value, one for each of the names; other axes of values are taken with each.
    Values { names: Vec<String>, rows: Vec<Vec<String>> },
    /// From low to high over all copies.
    Spread { name: String, low: f64, high: f64, spacing: Spacing },
}

/// How the values of a range lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Spacing {
    /// As far apart everywhere.
    #[default]
    Linear,
    /// By the same factor.
    Log,
    /// At random, evenly.
    Random,
}

impl Axis {
    fn names(&self) -> &[String] {
        match self {
            Axis::Values { names, .. } => names,
            Axis::Spread { name, .. } => std::slice::from_ref(name),
        }
    }
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(word: &str) -> Result<Axis, String> {
        let read = || match word.split_once('=') {
            Some((name, values)) => values_of(name.trim(), values),
            None => table(Path::new(word)),
        };
        // One line is all that the parser of arguments shows of an error.
        read().map_err(|error| format!("{error:#}"))
    }
}

/// The two ends of `LOW..HIGH`, and what is behind the upper one; none of a path, which may have two dots as well.
fn ends(text: &str) -> Option<(&str, &str)> {
    let is_number = |word: &str| word.trim().parse::<f64>().is_ok();
    let (low, rest) = text.split_once("..")?;
    (is_number(low) || is_number(rest.split(':').next().unwrap_or_default())).then_some((low, rest))
}

/// Words of `meshweft run` where a range of values is no longer set, but varied. A setting is what its last word says.
pub(super) fn swept(words: Vec<OsString>) -> Vec<OsString> {
    const SET: &str = "--set";
    // Where each word begins that a setting is given by, whether that is one with its option, and the setting.
    let mut found: Vec<(usize, bool, &str)> = Vec::new();
    let texts: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    for (i, word) in texts.iter().enumerate() {
        let behind = (*word == SET).then(|| texts.get(i + 1).copied()).flatten().map(|set| (false, set));
        let inside = word.strip_prefix("--set=").map(|set| (true, set));
        found.extend(behind.or(inside).map(|(is_one, set)| (i, is_one, set)));
    }
    let name = |set: &str| set.split('=').next().unwrap_or_default().trim().to_string();
    let mut all: Vec<Option<OsString>> = words.iter().cloned().map(Some).collect();
    for (k, &(i, is_one, set)) in found.iter().enumerate() {
        if set.split_once('=').and_then(|(_, values)| ends(values)).is_none() {
            continue;
        }
        let is_last = found[k + 1..].iter().all(|later| name(later.2) != name(set));
        match (is_last, is_one) {
            (true, true) => all[i] = Some(format!("--vary={set}").into()),
            (true, false) => all[i] = Some("--vary".into()),
            (false, true) => all[i] = None,
            (false, false) => all[i..i + 2].fill(None),
        }
    }
    all.into_iter().flatten().collect()
}

/// Whether a setting is given a range of values, or something that was to be one.
pub(super) fn is_range(value: &str) -> bool {
    ends(value).is_some()
}

/// Reads a list or a range.
fn values_of(name: &str, text: &str) -> Result<Axis> {
    let name = name.to_string();
    let listed = |words: Vec<String>| {
        let rows = words.into_iter().map(|word| vec![word]).collect();
        Axis::Values { names: vec![name.clone()], rows }
    };
    // A shape has a colon, too.
    let range = text.split_once(':').filter(|(low, _)| low.trim().parse::<f64>().is_ok() || !text.contains(','));
    let range = ends(text).or(range);
    let Some((low, rest)) = range else {
        let words: Vec<String> = text.split(',').map(|word| word.trim().to_string()).collect();
        if words.iter().any(String::is_empty) {
            bail!("{name}={text}: write values as in {name}=1,2,5 or a range as in {name}=1:5");
        }
        return Ok(listed(words));
    };
    let mut rest = rest.split(':');
    let end = |word: &str| -> Result<f64> {
        let end = word.trim().parse().ok().filter(|x: &f64| x.is_finite());
        end.ok_or_else(|| {
            anyhow!(
                "{name}={text}: {word:?} is no number: write LOW..HIGH:COUNT, LOW:HIGH or LOW:HIGH:COUNT, with :log or :random behind it"
            )
        })
    };
    let (low, high) = (end(low)?, end(rest.next().unwrap_or_default())?);
    let (mut count, mut spacing) = (None, Spacing::Linear);
    for word in rest {
        match (word, word.parse()) {
            ("log", _) => spacing = Spacing::Log,
            ("random", _) => spacing = Spacing::Random,
            (_, Ok(n @ 1..=MOST_VALUES)) if count.is_none() => count = Some(n),
            _ => bail!("{name}={text}: {word:?} is no number of values from 1 to {MOST_VALUES}, nor log or random"),
        }
    }
    if low > high {
        bail!("{name}={text}: {low} is more than {high}: write the lower end first");
    }
    if spacing == Spacing::Log && low <= 0.0 {
        bail!("{name}={text}: a range by factors begins above 0");
    }
    match (count, spacing) {
        (Some(_), Spacing::Random) => {
            bail!("{name}={text}: a random range has a value for each copy: leave out the number")
        }
        (None, _) => Ok(Axis::Spread { name: name.clone(), low, high, spacing }),
        (Some(n), _) => {
            let value = |i| written(&name, within(low, high, spacing, i, n));
            Ok(listed((0..n).map(value).collect()))
        }
    }
}

/// Reads a table with the names of settings in its first line.
fn table(path: &Path) -> Result<Axis> {
    let shown = path.display();
    let length =
        path.metadata().with_context(|| format!("{shown}: write NAME=VALUES, or the name of a CSV file"))?.len();
    if length > MOST_BYTES {
        bail!("{shown}: {length} bytes are more than {MOST_BYTES}");
    }
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).with_context(|| shown.to_string())?;
    let header = reader.headers().with_context(|| shown.to_string())?;
    let names: Vec<String> = header.iter().map(|name| name.trim_start_matches('\u{feff}').to_string()).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| anyhow!("{shown}: {error}"))?;
        rows.push(record.iter().map(str::to_string).collect());
        if rows.len() > MOST_VALUES {
            bail!("{shown}: more than {MOST_VALUES} rows");
        }
    }
    if rows.is_empty() {
        bail!("{shown}: no row for a copy below the names of settings");
    }
    Ok(Axis::Values { names, rows })
}

/// Value `i` of `n` from `low` to `high`, which are the first and the last.
fn within(low: f64, high: f64, spacing: Spacing, i: usize, n: usize) -> f64 {
    let t = i as f64 / (n - 1).max(1) as f64;
    match (i, spacing) {
        (0, _) => low,
        _ if i + 1 == n => high,
        (_, Spacing::Log) => low * Real::exp(t * Real::ln(high / low)),
        _ => low + (high - low) * t,
    }
}

/// A value as a word.
fn written(name: &str, x: f64) -> String {
    if name == SEED { x.round().to_string() } else { x.to_string() }
}

/// What varies from copy to copy, and how many there are.
#[derive(Debug)]
pub(super) struct Variation {
    axes: Vec<Axis>,
    /// Copies.
    pub(super) copies: usize,
    /// Of random ranges.
    seed: u64,
    known: &'static [Setting],
}

impl Variation {
    /// Of so many copies, or of as many as there are combinations of values. `seed`: what random ranges are drawn by.
    ///
    /// # Errors
    /// A setting that is unknown, varied twice or out of range; no number of copies; more than there are numbers for.
    pub(super) fn new(axes: &[Axis], copies: Option<u32>, seed: u64, known: &'static [Setting]) -> Result<Variation> {
        let mut names: Vec<&str> = Vec::new();
        for name in axes.iter().flat_map(Axis::names) {
            if names.contains(&name.as_str()) {
                bail!("--vary: {name} is varied twice");
            }
            names.push(name);
        }
        let check = |name: &str, value: &str| set(&mut Settings::new(known), &mut 0, known, name, value);
        for axis in axes {
            match axis {
                Axis::Values { names, rows } => {
                    let all = rows.iter().flat_map(|row| names.iter().zip(row));
                    all.into_iter().try_for_each(|(name, value)| check(name, value))?;
                }
                Axis::Spread { name, low, high, .. } => {
                    let words = match known.iter().find(|s| s.name == name).map(|setting| setting.kind) {
                        Some(Kind::Choice(words)) => Some(format!("some of {}", words.join(", "))),
                        Some(Kind::Mesh) => Some("files or shapes".into()),
                        Some(Kind::Text { form, .. }) => Some(form.into()),
                        _ => None,
                    };
                    if let Some(words) = words {
                        bail!("--vary {name}={low}:{high}: take {words}, as a list");
                    }
                    [low, high].iter().try_for_each(|end| check(name, &end.to_string()))?;
                }
            }
        }
        let lengths = axes.iter().filter_map(|axis| match axis {
            Axis::Values { rows, .. } => Some(rows.len()),
            Axis::Spread { .. } => None,
        });
        let combinations = lengths.clone().try_fold(1, usize::checked_mul).filter(|&n| u32::try_from(n).is_ok());
        let combinations =
            combinations.context("--vary: more combinations of values than 4 294 967 295: take fewer")?;
        let copies = match copies {
            Some(copies) => copies as usize,
            None if lengths.count() > 0 => combinations,
            None => {
                bail!(
                    "--vary: a range over all copies needs to know how many: add --copies N, or write LOW..HIGH:COUNT"
                )
            }
        };
        Ok(Variation { axes: axes.to_vec(), copies, seed, known })
    }

    /// The names of what varies, in the order in which they were given.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().flat_map(Axis::names).map(String::as_str)
    }

    /// The values of a copy, by name. Lists are combined, each value with each: those of the last change first.
    pub(super) fn values(&self, copy: usize) -> Vec<String> {
        let (mut words, mut left) = (Vec::new(), copy);
        for (i, axis) in self.axes.iter().enumerate().rev() {
            let own = match axis {
                Axis::Values { rows, .. } => {
                    let row = left % rows.len();
                    left /= rows.len();
                    rows[row].clone()
                }
                Axis::Spread { name, low, high, spacing } => {
                    let x = match spacing {
                        Spacing::Random => {
                            let [high_word, low_word] = [self.seed >> 32, self.seed].map(|word| word as u32);
                            let counters = [copy as u32, i as u32, high_word, low_word];
                            let share: f64 = random::uniform(counters.map(|word| Int(word.cast_signed())));
                            low + (high - low) * share
                        }
                        _ => within(*low, *high, *spacing, copy, self.copies),
                    };
                    vec![written(name, x)]
                }
            };
            words.splice(0..0, own);
        }
        words
    }

    /// Sets what is special about a copy.
    ///
    /// # Errors
    /// None that [`Variation::new`] has not found.
    pub(super) fn apply(&self, copy: usize, settings: &mut Settings, seed: &mut u64) -> Result<()> {
        self.names().zip(self.values(copy)).try_for_each(|(name, value)| set(settings, seed, self.known, name, &value))
    }
}

/// Sets a setting, or the seed.
fn set(settings: &mut Settings, seed: &mut u64, known: &[Setting], name: &str, value: &str) -> Result<()> {
    if name == SEED {
        *seed = value.parse().map_err(|_| anyhow!("--vary: {name}={value:?} is no integer from 0 on"))?;
        return Ok(());
    }
    if !known.iter().any(|setting| setting.name == name) {
        let names: Vec<&str> = known.iter().map(|setting| setting.name).chain([SEED]).collect();
        bail!("--vary: {}", unknown("setting", name, &names));
    }
    settings.set(known, name, value).context("--vary")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Setting] = &[
        Setting { name: "dt", about: "", kind: Kind::Number { default: 0.5, unit: "s", range: [0.0, 1000.0] } },
        Setting { name: "method", about: "", kind: Kind::Choice(&["in-place", "explicit"]) },
        Setting { name: "over", about: "", kind: Kind::Mesh },
    ];

    fn axes(words: &[&str]) -> Vec<Axis> {
        words.iter().map(|word| word.parse().unwrap()).collect()
    }

    /// The values of all copies.
    fn all(words: &[&str], copies: Option<u32>) -> Vec<String> {
        let variation = Variation::new(&axes(words), copies, 7, KNOWN).unwrap();
        (0..variation.copies).map(|copy| variation.values(copy).join(" ")).collect()
    }

    #[test]
    fn ranges_go_from_end_to_end_and_lists_are_combined() {
        assert_eq!(all(&["dt=1:2"], Some(5)), ["1", "1.25", "1.5", "1.75", "2"]);
        let middle: f64 = all(&["dt=1:100:log"], Some(3))[1].parse().unwrap();
        assert!((middle - 10.0).abs() < 1e-12);
        assert_eq!(all(&["dt=0.1:0.3"], Some(1)), ["0.1"]);
        assert_eq!(all(&["dt=1:3:3"], None), ["1", "2", "3"]);
        assert_eq!(all(&["dt=1..3:3"], None), ["1", "2", "3"]);
        assert_eq!(all(&["dt = 1..100:3:log"], None), all(&["dt=1:100:3:log"], None));
        assert_eq!(all(&["over=../torus.obj,none"], None), ["../torus.obj", "none"]);
        let combined = ["1 explicit", "1 in-place", "2 explicit", "2 in-place"];
        assert_eq!(all(&["dt=1,2", "method=explicit,in-place"], None), combined);
        assert_eq!(all(&["over=torus:12x6, none,box:3"], None), ["torus:12x6", "none", "box:3"]);
        // More copies than combinations begin again; a range without a number goes over all of them.
        assert_eq!(
            all(&["method=explicit,in-place", "seed=0:30"], Some(4)).join(","),
            "explicit 0,in-place 10,explicit 20,in-place 30"
        );
    }

    #[test]
    fn a_range_that_is_set_is_varied_unless_it_is_set_again() {
        let swept = |words: &str| {
            let words: Vec<String> = swept(words.split(' ').map(OsString::from).collect())
                .into_iter()
                .map(|word| word.into_string().unwrap())
                .collect();
            words.join(" ")
        };
        assert_eq!(swept("a run --set k=0.1..1:50 --set c=2"), "a run --vary k=0.1..1:50 --set c=2");
        assert_eq!(swept("--set=k=1..2:3:log --set=over=../a.obj"), "--vary=k=1..2:3:log --set=over=../a.obj");
        assert_eq!(swept("--set=k=1..2:3 --set k=4"), "--set k=4");
        assert_eq!(swept("--set k=1..2:3 --quiet --set=k=5..6:2"), "--quiet --vary=k=5..6:2");
        assert_eq!(swept("--set k=4 --set k=1..2"), "--set k=4 --vary k=1..2");
        assert_eq!(swept("--set"), "--set");
    }

    #[test]
    fn random_ranges_depend_on_copy_and_seed_alone() {
        let drawn = all(&["dt=2:4:random", "seed=0:1000000:random"], Some(100));
        assert_eq!(drawn, all(&["dt=2:4:random", "seed=0:1000000:random"], Some(100)));
        assert_eq!(drawn[..10], all(&["dt=2:4:random", "seed=0:1000000:random"], Some(10)));
        let numbers: Vec<f64> = drawn.iter().map(|words| words.split(' ').next().unwrap().parse().unwrap()).collect();
        assert!(numbers.iter().all(|x| (2.0..4.0).contains(x)));
        let mean = numbers.iter().sum::<f64>() / 100.0;
        assert!((2.8..3.2).contains(&mean) && numbers[0] != numbers[1], "{mean}");
        let other = Variation::new(&axes(&["dt=2:4:random"]), Some(1), 8, KNOWN).unwrap().values(0);
        assert_ne!(other[0], numbers[0].to_string());
    }

    #[test]
    fn a_table_has_a_row_for_each_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copies.csv");
        std::fs::write(&path, "\u{feff}dt, method\r\n1,\"explicit\"\r\n2.5,in-place\r\n").unwrap();
        assert_eq!(all(&[path.to_str().unwrap()], None), ["1 explicit", "2.5 in-place"]);
        let says = |text: &str| {
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().parse::<Axis>().unwrap_err()
        };
        assert!(says("dt,method\n1\n").contains("copies.csv: "));
        assert!(says("dt\n").contains("no row for a copy"));
    }

    #[test]
    fn what_cannot_be_varied_so_is_refused_with_a_way_out() {
        for (word, says) in [
            ("dt=", "write values as in dt=1,2,5"),
            ("dt=1,,2", "write values as in"),
            ("dt=1:x", "\"x\" is no number"),
            ("dt=1:inf", "\"inf\" is no number"),
            ("dt=2:1", "the lower end first"),
            ("dt=0:1:log", "begins above 0"),
            ("dt=1:2:cubic", "\"cubic\" is no number of values"),
            ("dt=1..", "\"\" is no number: write LOW..HIGH:COUNT"),
            ("dt=x..2:3", "\"x\" is no number"),
            ("dt=1..2:3:cube", "\"cube\" is no number of values"),
            ("dt=1:2:0", "\"0\" is no number of values"),
            ("dt=1:2:9999999999", "from 1 to 1048576"),
            ("dt=1:2:3:random", "leave out the number"),
            ("none.csv", "write NAME=VALUES, or the name of a CSV file"),
        ] {
            let error = word.parse::<Axis>().unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{word}: {error}");
        }
        for (words, copies, says) in [
            (&["dt=1:2"][..], None, "add --copies N"),
            (&["dt=1,2", "dt=3,4"], None, "dt is varied twice"),
            (&["dtt=1,2"], None, "did you mean `dt`? there are dt, method, over, seed"),
            (&["dt=1,2000"], None, "0 to 1000 s"),
            (&["dt=1:2000"], Some(2), "0 to 1000 s"),
            (&["method=1:2"], Some(2), "some of in-place, explicit, as a list"),
            (&["over=1:2"], Some(2), "files or shapes, as a list"),
            (&["method=magic"], None, "in-place, explicit"),
            (&["seed=-1,2"], None, "no integer from 0 on"),
            (&["dt=1:2:1000000", "seed=1:1000000:1000000"], None, "more combinations"),
        ] {
            let error = format!("{:#}", Variation::new(&axes(words), copies, 1, KNOWN).unwrap_err());
            assert!(error.contains(says), "{error}");
        }
    }
}
