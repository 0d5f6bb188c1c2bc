//! `meshweft doctor`: what this machine has to run on.

use super::console::{Console, Outcome};
use super::programs::Programs;
use super::{system, text};
use crate::{Options, Settings};
use anyhow::Result;
use clap::Args;
use meshweft::{Adapter, Backend, Order, adapters};
use meshweft_mesh::generate::generate;
use serde_json::json;

/// What to ask.
#[derive(Args)]
#[command(args_override_self = true)]
pub(super) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Lists the processor's facts and the GPUs, and tries each of them.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    let processor = system::processor().unwrap_or_else(|| std::env::consts::ARCH.to_string());
    let (cores, registers) = (cores(), registers());
    let found: Vec<(Adapter, Result<()>)> =
        adapters().into_iter().enumerate().map(|(number, adapter)| (adapter, try_out(programs, number))).collect();
    let out = &mut console.out;
    if arguments.json {
        let adapters: Vec<_> = found
            .iter()
            .map(|(adapter, works)| {
                json!({
                    "name": adapter.name, "kind": adapter.kind.name(), "api": adapter.api, "driver": adapter.driver,
                    "binding_bytes": adapter.binding_bytes, "buffer_bytes": adapter.buffer_bytes,
                    "workgroup_bytes": adapter.workgroup_bytes, "invocations": adapter.invocations,
                    "subgroup": adapter.subgroup, "timestamps": adapter.timestamps, "works": works.is_ok(),
                    "error": works.as_ref().err().map(|e| format!("{e:#}")),
                })
            })
            .collect();
        let cpu = json!({ "name": processor, "cores": cores, "registers": registers });
        writeln!(out, "{}", json!({ "cpu": cpu, "adapters": adapters }))?;
        return Ok(Outcome::Done);
    }
    text::pairs(out, &[("processor", processor), ("cores", cores.to_string()), ("registers", registers)])?;
    for (number, (adapter, works)) in found.iter().enumerate() {
        let mib = |bytes: u64| format!("{} MiB", text::count((bytes >> 20) as usize));
        let [least, most] = adapter.subgroup;
        writeln!(out)?;
        text::pairs(
            out,
            &[
                ("adapter", format!("{number}: {}, {}, through {}", adapter.name, adapter.kind.name(), adapter.api)),
                ("driver", adapter.driver.clone()),
                (
                    "arrays",
                    format!("{} at most, a kernel sees {}", mib(adapter.buffer_bytes), mib(adapter.binding_bytes)),
                ),
                (
                    "workgroups",
                    format!(
                        "{} invocations, {} KiB, {least} to {most} in lockstep",
                        adapter.invocations,
                        adapter.workgroup_bytes >> 10
                    ),
                ),
                (
                    "clock",
                    if adapter.timestamps { "yes".into() } else { "no: bench has no times of the device".into() },
                ),
                (
                    "works",
                    match works {
                        Ok(()) => "yes: a trial run agrees with the oracle".into(),
                        Err(error) => format!("no: {error:#}"),
                    },
                ),
            ],
        )?;
    }
    if found.is_empty() {
        writeln!(
            out,
            "\nno GPU: no driver for Vulkan, Metal or DirectX 12 was found. Everything runs on the CPU. A driver in\n\
             software, for tests, is the package mesa-vulkan-drivers on Debian."
        )?;
    }
    Ok(Outcome::Done)
}

/// Runs a few steps beside the oracle.
fn try_out(programs: &Programs, adapter: usize) -> Result<()> {
    let (entry, mesh) = programs.trial()?;
    let settings = Settings::new(entry.info.settings);
    for order in [Order::BLOCKED, Order::COLOR] {
        let options = Options { order, backend: Backend::Gpu { adapter }, verify: true, ..Default::default() };
        let mut run = entry.start(generate(mesh, 1)?, &settings, &options)?;
        (0..3).try_for_each(|_| run.step())?;
    }
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The vector registers that this program was compiled for, and those that the processor has.
fn registers() -> String {
    let built = if cfg!(target_feature = "avx512f") {
        "512 bits"
    } else if cfg!(target_feature = "avx2") {
        "256 bits"
    } else {
        "the plainest of its kind"
    };
    #[cfg(target_arch = "x86_64")]
    let has = match (std::is_x86_feature_detected!("avx512f"), std::is_x86_feature_detected!("avx2")) {
        (true, _) => "512 bits",
        (false, true) => "256 bits",
        _ => "128 bits",
    };
    #[cfg(not(target_arch = "x86_64"))]
    let has = "128 bits";
    format!("this program was built for {built}, the processor has {has}")
}
