//! `meshweft info`: a mesh and its graph in figures.

use super::console::{Console, Outcome};
use super::options::at_least;
use super::programs::Programs;
use super::{memory, meshes, text};
use anyhow::Result;
use clap::Args;
use meshweft_mesh::{CellKind, Curve, Field, Graph, Mesh, Spread, Stats};
use serde_json::{Map, Value, json};
use std::ffi::OsString;

/// Which mesh.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// A mesh file or generator
    mesh: OsString,
    /// Seed of mesh generators that use random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least::<0>)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    parts: super::parts::Parts,
}

const EXAMPLES: &str = "\
Examples:
  meshweft info part.msh
  meshweft info box:64 --json
  meshweft info box:64 --parts 4 --picture hosts.png   what each of four hosts would have";

/// Prints the figures.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    let mesh = meshes::open(&arguments.mesh, arguments.seed, memory::SET_UP, console.err)?;
    let name = &*arguments.mesh.to_string_lossy();
    #[cfg(feature = "cluster")]
    if let Some(hosts) = arguments.parts.hosts() {
        let mesh = (name, arguments.seed, mesh);
        return super::parts::run(mesh, hosts, &arguments.parts, programs, arguments.json, console);
    }
    #[cfg(not(feature = "cluster"))]
    let _ = programs;
    let graph = Graph::from_cells(&mesh)?;
    let along = |curve: Curve| -> Result<(Curve, Stats)> {
        let order = curve.order(mesh.points());
        let points: Vec<[f64; 3]> = order.order().iter().map(|&v| mesh.points()[v as usize]).collect();
        Ok((curve, Stats::of(&graph.permuted(&order), &points)?))
    };
    let curves = [along(Curve::Morton)?, along(Curve::Hilbert)?];
    if arguments.json {
        writeln!(console.out, "{}", as_json(name, &mesh, &curves))?;
    } else {
        print(name, &mesh, &curves, console)?;
    }
    Ok(Outcome::Done)
}

/// The word for several cells of a kind.
pub(super) fn plural(kind: CellKind) -> String {
    match kind {
        CellKind::Vertex => "vertex cells".to_string(),
        CellKind::Hex => "hexes".to_string(),
        _ => format!("{}s", kind.name()),
    }
}

fn print(name: &str, mesh: &Mesh, curves: &[(Curve, Stats); 2], console: &mut Console) -> Result<()> {
    let stats = &curves[0].1;
    let spread = |s: &Spread| format!("mean {}, p99 {}, max {}", text::number(s.mean), s.p99, s.max);
    let [low, high] = mesh.bounds().map(|p| p.map(text::number).join(" "));
    let cells: Vec<_> =
        mesh.cells().counts().iter().map(|(kind, n)| format!("{} {}", text::count(*n), plural(*kind))).collect();
    let list = |words: Vec<String>| if words.is_empty() { "none".to_string() } else { words.join(", ") };
    let fields =
        |fields: &[Field]| list(fields.iter().map(|f| format!("{} ({})", text::name(&f.name), f.components)).collect());
    let groups = mesh
        .groups()
        .iter()
        .map(|g| format!("{} ({}D, {} cells)", text::name(&g.name), g.dimension, text::count(g.cells.len())));
    let boundary = mesh.boundary().into_iter().filter(|&b| b).count();
    let sizes = stats.color_sizes.iter().map(|&n| text::count(n as usize)).collect::<Vec<_>>().join(", ");
    let degree = format!("min {}, {}", stats.degree.min, spread(&stats.degree));
    let mut rows: Vec<(String, String)> = vec![
        ("mesh".into(), name.to_string()),
        ("points".into(), text::count(mesh.points().len())),
        ("cells".into(), list(cells)),
        ("bounds".into(), format!("{low} to {high}")),
        ("boundary".into(), text::counted(boundary, "point", "points")),
        ("point fields".into(), fields(mesh.point_fields())),
        ("cell fields".into(), fields(mesh.cell_fields())),
        ("groups".into(), list(groups.collect())),
        ("graph".into(), format!("{} directed edges", text::count(stats.directed_edges))),
        ("degree".into(), degree),
        ("components".into(), text::count(stats.components)),
    ];
    for (curve, stats) in curves {
        let sent = |k: usize| by_parts("points", stats.boundary_share.iter().map(|(parts, share)| (*parts, share[k])));
        rows.push((format!("reach, {curve}"), format!("{} places between neighbors", spread(&stats.distance))));
        rows.push((format!("cut, {curve}"), by_parts("edges", stats.cut_share.iter().copied())));
        let messages = stats.message_share.iter().copied();
        rows.push((format!("values, {curve}"), by_parts("edges, each vertex once to each part,", messages)));
        rows.push((format!("sent, {curve}"), sent(0)));
        if *curve == Curve::Morton {
            rows.push(("sent, bisection".into(), sent(1))); // hardly depends on the curve
        }
    }
    rows.push(("colors".into(), format!("{}, with {sizes} vertices", stats.color_sizes.len())));
    rows.push(("levels".into(), text::count(stats.levels)));
    Ok(text::pairs(console.out, &rows)?)
}

/// Shares of all edges or points, by the number of parts.
fn by_parts(of: &str, shares: impl Iterator<Item = (usize, f64)>) -> String {
    let shares = shares.map(|(parts, share)| format!("{parts}: {:.2} %", 100.0 * share));
    format!("of all {of} for parts {}", shares.collect::<Vec<_>>().join(", "))
}

fn as_json(name: &str, mesh: &Mesh, curves: &[(Curve, Stats); 2]) -> Value {
    let stats = &curves[0].1;
    let spread = |s: &Spread| json!({ "min": s.min, "mean": s.mean, "p99": s.p99, "max": s.max });
    let fields = |fields: &[Field]| -> Vec<Value> {
        fields.iter().map(|f| json!({ "name": f.name, "components": f.components })).collect()
    };
    let groups: Vec<Value> = mesh
        .groups()
        .iter()
        .map(|g| json!({ "name": g.name, "dimension": g.dimension, "cells": g.cells.len() }))
        .collect();
    let cells: Map<String, Value> =
        mesh.cells().counts().into_iter().map(|(kind, n)| (kind.name().to_string(), n.into())).collect();
    let curves: Map<String, Value> = curves
        .iter()
        .map(|(curve, stats)| {
            let by_parts = |shares: &[(usize, f64)]| -> Map<String, Value> {
                shares.iter().map(|&(parts, share)| (parts.to_string(), share.into())).collect()
            };
            let boundary = |k: usize| -> Map<String, Value> {
                stats.boundary_share.iter().map(|(parts, share)| (parts.to_string(), share[k].into())).collect()
            };
            let boundary = json!({ "curve": boundary(0), "bisection": boundary(1) });
            let curve_stats = json!({
                "distance": spread(&stats.distance),
                "cut_share": by_parts(&stats.cut_share),
                "message_share": by_parts(&stats.message_share),
                "boundary_share": boundary,
            });
            (curve.to_string(), curve_stats)
        })
        .collect();
    json!({
        "mesh": name,
        "vertices": mesh.points().len(),
        "cells": cells,
        "bounds": mesh.bounds(),
        "boundary_vertices": mesh.boundary().into_iter().filter(|&b| b).count(),
        "point_fields": fields(mesh.point_fields()),
        "cell_fields": fields(mesh.cell_fields()),
        "groups": groups,
        "directed_edges": stats.directed_edges,
        "degree": spread(&stats.degree),
        "components": stats.components,
        "levels": stats.levels,
        "color_sizes": stats.color_sizes,
        "curves": curves,
    })
}
