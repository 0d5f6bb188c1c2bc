//! Tables and numbers for people.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

/// Writes rows with their columns aligned, two blanks apart. Rows may differ in length.
pub(super) fn table(out: &mut dyn Write, rows: &[Vec<String>]) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| rows.iter().filter_map(|row| row.get(k)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|k| width(k).unwrap_or(0)).collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes a name and a value on each line.
pub(super) fn pairs(out: &mut dyn Write, rows: &[(impl AsRef<str>, String)]) -> io::Result<()> {
    table(out, &rows.iter().map(|(name, value)| vec![name.as_ref().to_string(), value.clone()]).collect::<Vec<_>>())
}

/// A name from a file, escaped, and cut where it is longer than any name that is read to its end.
pub(super) fn name(name: &str) -> String {
    const LONGEST: usize = 60;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", name[..end].escape_debug()),
        None => name.escape_debug().to_string(),
    }
}

/// Six significant digits, without trailing zeros: `0.25`, `1234.5`, `6.02214e23`.
pub fn number(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{}", x + 0.0);
    }
    let exponent = x.abs().log10().floor();
    if !(-4.0..9.0).contains(&exponent) {
        let text = format!("{x:.5e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", trimmed(digits));
    }
    trimmed(&format!("{x:.*}", (5.0 - exponent).max(0.0) as usize)).to_string()
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// A number with its unit, if it has one.
pub(super) fn quantity(x: f64, unit: &str) -> String {
    format!("{} {unit}", number(x)).trim_end().to_string()
}

/// A count with its thousands apart: `1 234 567`.
pub fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A length of time: `1.25 s`, `38 ms`.
pub fn seconds(s: f64) -> String {
    match s {
        s if s >= 60.0 => format!("{:.0} min {:.0} s", (s / 60.0).floor(), s % 60.0),
        s if s >= 0.9995 => format!("{s:.2} s"),
        s if s >= 9.995e-4 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}

/// An amount of data: `1.25 MB`, `38 kB`.
pub(super) fn bytes(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.2} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.2} MB", n / 1e6),
        n if n >= 1e3 => format!("{:.1} kB", n / 1e3),
        n => format!("{n:.0} B"),
    }
}

/// A number a second: `52.3 million/s`.
pub(super) fn rate(x: f64, what: &str) -> String {
    match x {
        x if x >= 1e9 => format!("{:.2} billion {what}/s", x / 1e9),
        x if x >= 1e6 => format!("{:.1} million {what}/s", x / 1e6),
        x => format!("{} {what}/s", count(x.round() as usize)),
    }
}

/// A path as a word of a shell, which programs take for a path: neither an option, as `-a`, nor an address, as `a:b`.
pub(super) fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_address = cfg!(unix) && path.contains(':') && !path.starts_with('/');
    let path = if is_address || path.starts_with('-') { format!("./{path}") } else { path };
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:=@".contains(c);
    match path.chars().all(is_plain) {
        true => path,
        false if cfg!(windows) => format!("\"{path}\""),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

/// `1 vertex`, `2 vertices`.
pub fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.25, "0.25"),
            (1234.5, "1234.5"),
            (-300.0, "-300"),
            (6.02214e23, "6.02214e23"),
            (9.7e-5, "9.7e-5"),
            (999_999.9, "1000000"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(number(x), text);
        }
        assert_eq!((count(1_234_567), count(12), count(123)), ("1 234 567".into(), "12".into(), "123".into()));
        #[cfg(unix)]
        for (path, word) in [
            ("out/a.gif", "out/a.gif"),
            ("o ut/a.gif", "'o ut/a.gif'"),
            ("it's/$a.gif", r"'it'\''s/$a.gif'"),
            ("-o/a.gif", "./-o/a.gif"),
            ("a:b/a.gif", "./a:b/a.gif"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
        assert_eq!((seconds(90.0), seconds(0.038)), ("1 min 30 s".into(), "38.0 ms".into()));
    }
}
