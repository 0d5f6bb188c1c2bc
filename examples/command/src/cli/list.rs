//! `meshweft list`: what there is to run.

use super::console::{Console, Outcome};
use super::programs::Programs;
use super::text;
use crate::settings::NONE;
use crate::{Kind, Setting};
use anyhow::Result;
use meshweft::{Curve, Key, Order};
use meshweft_mesh::generate::GENERATORS;

/// Prints examples with their settings, generators and orders.
pub(super) fn run(programs: &Programs, console: &mut Console) -> Result<Outcome> {
    let out = &mut console.out;
    writeln!(out, "Examples, for `meshweft run EXAMPLE`:")?;
    for entry in programs.entries {
        let info = &entry.info;
        writeln!(out, "\n  {}: {}", info.name, info.about)?;
        writeln!(out, "    on --mesh {} for --steps {} unless others are given; settings:", info.mesh, info.steps)?;
        text::table(out, &info.settings.iter().map(setting).collect::<Vec<_>>())?;
    }
    writeln!(out, "\nMesh generators, for `--mesh`; one number stands for all, and numbers may be left out:\n")?;
    let row = |name: &str, about: &str| vec![format!("  {name}"), about.to_string()];
    let rows: Vec<_> = GENERATORS
        .iter()
        .map(|g| vec![format!("  {}:{}", g.name, g.form), g.about.to_string(), format!("e.g. {}", g.example)])
        .collect();
    text::table(out, &rows)?;
    writeln!(out, "\nOrders, for `--order`; each is another result, the same on any number of threads:\n")?;
    text::table(out, &Order::ALL.map(|order| row(order.key.name(), about(order.key))))?;
    writeln!(out, "\nCurves, written before an order as in `hilbert/color`; morton without:\n")?;
    text::table(out, &Curve::ALL.map(|curve| row(curve.name(), along(curve))))?;
    Ok(Outcome::Done)
}

fn setting(setting: &Setting) -> Vec<String> {
    let value = match setting.kind {
        Kind::Number { default, unit, .. } => text::quantity(default, unit),
        Kind::Choice(words) => words.join("|"),
        Kind::Mesh => format!("{NONE}|MESH"),
        Kind::Text { default: "", form } => format!("{NONE}|{form}"),
        Kind::Text { default, form } => format!("{default}|{form}"),
    };
    vec![format!("      {}={value}", setting.name), setting.about.to_string()]
}

fn about(key: Key) -> &'static str {
    match key {
        Key::Color => "by color, in phases that hold no edge; also spelled colour",
        Key::LevelColor => "by breadth-first level, then color",
        Key::ColorLevel => "by color, then breadth-first level",
        Key::PriorityDag => "along the curve, each vertex after its predecessors",
        Key::Blocked { .. } => {
            "by blocks of the curve; the default, usually the fastest; blocked:SIZE sets their vertices"
        }
        Key::Jacobi => "all vertices from old values",
        Key::Own => "by a key of the host's own",
    }
}

fn along(curve: Curve) -> &'static str {
    match curve {
        Curve::Morton => "Z-order: the bits of the coordinates interleaved",
        Curve::Hilbert => "no long jumps",
        Curve::Degree => "vertices with the most edges first, wherever they lie: for graphs",
        Curve::Random => "no curve at all, to see what one is worth",
    }
}
