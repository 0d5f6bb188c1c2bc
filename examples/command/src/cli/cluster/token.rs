//! `meshweft cluster token`: the secrets of a run, made ahead of it.

use crate::cli::console::{Console, Outcome};
use anyhow::{Result, bail};
use clap::Args;
use meshweft::RunKey;
use std::path::PathBuf;
use std::time::Duration;

/// Where the driver will be, and where to write.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Where workers will find the driver; a name is looked up when they join. Without it they are told by MESHWEFT_DRIVER
    #[arg(long, value_name = "HOST:PORT")]
    driver: Option<String>,
    /// File for the token; that for the key has its name with .key at the end
    #[arg(long, value_name = "FILE", default_value = "run.token")]
    out: PathBuf,
    /// How long workers may join by it: a number and s, m, h or d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_time)]
    valid: Duration,
}

const EXAMPLES: &str = "\
Examples:
  meshweft cluster token --driver host-a:7777                writes run.token and run.key
  meshweft run EXAMPLE --workers 2 --key run.key             on host-a
  meshweft worker --join run.token                           on two others

The key is for the driver alone: who has it can be the driver. Runs may use both one after the other, until they expire. Files
that exist are not replaced.";

/// Makes them.
pub(super) fn run(arguments: &Arguments, console: &mut Console) -> Result<Outcome> {
    let Arguments { driver, out: token, valid } = arguments;
    let key = token.with_extension("key");
    if key == *token {
        bail!("--out {}: the key would have the same name; take another, such as run.token", token.display());
    }
    RunKey::new(driver.as_deref(), *valid)?.save(&key, token)?;
    writeln!(console.out, "wrote {} for the driver and {} for its workers", key.display(), token.display())?;
    Ok(Outcome::Done)
}

/// Reads a time such as 24h.
fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write a number and s, m, h or d, such as 24h");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        for (text, seconds) in [("90s", 90), ("5m", 300), ("24h", 86_400), ("7d", 604_800)] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)));
        }
        for wrong in ["", "24", "h", "-1h", "1.5h", "9 h", "1y", "1µ", "99999999999999999999s", "9999999999999999999d"]
        {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
