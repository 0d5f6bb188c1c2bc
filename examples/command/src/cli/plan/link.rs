//! What joins hosts, as a word: `10Gbit,100us`.

use meshweft::model::Link;

/// Reads a rate in bits a second and a latency.
pub(super) fn parse(word: &str) -> Result<Link, String> {
    let wrong = || "write bits a second and a latency, as in 10Gbit,100us or 1Gbit,0.2ms".to_string();
    let (rate, latency) = word.split_once(',').ok_or_else(wrong)?;
    let rates = [("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9), ("bit", 1.0)];
    let times = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let bits = quantity(rate, &rates).filter(|&bits| bits > 0.0).ok_or_else(wrong)?;
    let latency_s = quantity(latency, &times).ok_or_else(wrong)?;
    Ok(Link { latency_s, bytes_per_s: bits / 8.0, ..Link::LOOPBACK })
}

/// A number with one of some units, the first that fits.
fn quantity(word: &str, units: &[(&str, f64)]) -> Option<f64> {
    let word = word.trim();
    let (number, times) = units.iter().find_map(|&(unit, times)| Some((word.strip_suffix(unit)?, times)))?;
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_a_rate_and_a_latency() {
        let link = |latency_s, bytes_per_s| Ok(Link { latency_s, bytes_per_s, ..Link::LOOPBACK });
        assert_eq!(parse("10Gbit,100us"), link(100.0 * 1e-6, 1.25e9));
        assert_eq!(parse(" 100 Mbit , 0.5ms"), link(0.5 * 1e-3, 1.25e7));
        assert_eq!(parse("8bit,0s"), link(0.0, 1.0));
        for word in
            ["", "10Gbit", "10,5", "-1Gbit,1us", "1Gbit,-1us", "0Gbit,1us", "NaNGbit,1s", "1e400bit,1s", "Gbit,s"]
        {
            assert!(parse(word).unwrap_err().contains("10Gbit,100us"), "{word}");
        }
    }
}
