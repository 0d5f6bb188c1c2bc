//! Acceptance: the properties that tell a right answer from a wrong one, however it was found.

use super::Links;
use anyhow::Result;
use meshweft_command::{Check, Entry, Example, Options, Precision, Settings, Tolerance, find};
use meshweft_mesh::generate::generate;
use meshweft_mesh::{Field, Mesh};

const GRAPH500: &str = "Graph500 benchmark specification, version 2.1, section \"Kernel 2 validation\"";
const BELLMAN: &str =
    "Bellman, On a routing problem, 1958: distances solve d(v) = min d(u) + w(u, v), and no others do";
const PARTS: &str = "the labels of components are equal along edges, and each is the smallest vertex that has it";
const PAGES: &str =
    "Brin and Page, The anatomy of a large-scale hypertextual web search engine, 1998: the ranks solve its equation";

/// Something counted that must be nothing.
fn none(name: &str, count: usize, source: &'static str) -> Check {
    let (measured, expected) = (count as f64, 0.0);
    Check { name: name.into(), measured, expected, tolerance: Tolerance::Absolute(0.0), unit: "", source }
}

/// Each edge in each direction that it can be followed in, as its number, start and end.
fn arcs(links: &Links) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    let ends = |(e, &[from, to]): (usize, &[u32; 2])| (e, from as usize, to as usize);
    links.edges.iter().enumerate().map(ends).flat_map(move |(e, from, to)| {
        let back = (!links.is_directed).then_some((e, to, from));
        std::iter::once((e, from, to)).chain(back)
    })
}

/// The number of the edge from each vertex's parent, if there is one.
fn edges_of_tree(links: &Links, parents: &[f64]) -> Vec<Option<usize>> {
    let mut found = vec![None; links.vertices];
    for (e, from, to) in arcs(links) {
        if parents[to] == from as f64 && from != to {
            found[to] = Some(e);
        }
    }
    found
}

/// How many vertices do not come to the source by going from parent to parent, of those that have one.
fn lost(source: usize, parents: &[f64]) -> usize {
    let n = parents.len();
    // What is known of each: comes to the source, or does not.
    let mut comes: Vec<Option<bool>> = vec![None; n];
    comes[source] = Some(parents[source] == source as f64);
    for start in 0..n {
        let (mut way, mut v) = (Vec::new(), start);
        let known = loop {
            if let Some(known) = comes[v] {
                break known;
            }
            comes[v] = Some(false);
            way.push(v);
            match parents[v] {
                parent if parent >= 0.0 && (parent as usize) < n => v = parent as usize,
                _ => break false,
            }
        };
        way.into_iter().for_each(|v| comes[v] = Some(known));
    }
    (0..n).filter(|&v| parents[v] >= 0.0 && comes[v] != Some(true)).count()
}

/// The five properties of a breadth-first tree.
pub(super) fn tree(links: &Links, source: u32, fields: &[Field]) -> Result<Vec<Check>> {
    const NONE: f64 = i32::MAX as f64;
    let (levels, parents) = (&find(fields, "level")?.values, &find(fields, "parent")?.values);
    let source = source as usize;
    let is_reached = |v: usize| levels[v] < NONE;
    let by_edge = edges_of_tree(links, parents);
    let others = || (0..links.vertices).filter(|&v| is_reached(v) && v != source);
    let steps = others().filter(|&v| levels.get(parents[v] as usize).is_none_or(|before| levels[v] != before + 1.0));
    // Along a directed edge a level may be less, but not more than one more.
    let far =
        arcs(links).filter(|&(_, from, to)| is_reached(from) && is_reached(to) && levels[to] > levels[from] + 1.0);
    let ends = arcs(links).filter(|&(_, from, to)| is_reached(from) && !is_reached(to));
    let halves = (0..links.vertices).filter(|&v| is_reached(v) != (parents[v] >= 0.0)).count();
    let root = usize::from(levels[source] != 0.0);
    Ok(vec![
        none("1 vertices whose parents do not lead to the source", lost(source, parents), GRAPH500),
        none("2 vertices that are not one level below their parent", steps.count() + root, GRAPH500),
        none("3 edges over more than one level", far.count(), GRAPH500),
        none("4 edges that lead out of the tree, and vertices half in it", ends.count() + halves, GRAPH500),
        none(
            "5 vertices without an edge from their parent",
            others().filter(|&v| by_edge[v].is_none()).count(),
            GRAPH500,
        ),
    ])
}

/// The properties of shortest ways. Sums of lengths are rounded in the state's precision, so each is compared with a margin
/// of 1e-6.
pub(super) fn ways(links: &Links, source: u32, fields: &[Field]) -> Result<Vec<Check>> {
    const NONE: f64 = f32::MAX as f64;
    const MARGIN: f64 = 1e-6;
    let (distances, parents) = (&find(fields, "distance")?.values, &find(fields, "parent")?.values);
    let source = source as usize;
    let is_reached = |v: usize| distances[v] < NONE;
    let by_edge = edges_of_tree(links, parents);
    let others = || (0..links.vertices).filter(|&v| is_reached(v) && v != source);
    let shorter = arcs(links).filter(|&(e, from, to)| {
        let offer = distances[from] + links.weight(e);
        is_reached(from) && offer < distances[to] * (1.0 - MARGIN)
    });
    let differs = |&v: &usize| {
        by_edge[v].is_none_or(|e| {
            let offer = distances[parents[v] as usize] + links.weight(e);
            (offer - distances[v]).abs() > MARGIN * distances[v]
        })
    };
    let root = usize::from(distances[source] != 0.0);
    Ok(vec![
        none("1 vertices whose parents do not lead to the source", lost(source, parents), BELLMAN),
        none("2 edges that would be a shorter way", shorter.count(), BELLMAN),
        none("3 vertices as far as no edge from their parent says", others().filter(differs).count() + root, BELLMAN),
    ])
}

/// The properties of components.
pub(super) fn parts(links: &Links, fields: &[Field]) -> Result<Vec<Check>> {
    let labels = &find(fields, "component")?.values;
    let torn = links.edges.iter().filter(|edge| labels[edge[0] as usize] != labels[edge[1] as usize]);
    // Each label is at most the vertex's own id, and is the label of the vertex that it names: so it is the smallest.
    let is_wrong = |&v: &usize| labels[v] > v as f64 || labels.get(labels[v] as usize) != Some(&labels[v]);
    // A component is joined: a tree of it has an edge less than vertices, so all trees have as many as vertices less components.
    let mut roots: Vec<u32> = (0..links.vertices as u32).collect();
    fn root(roots: &mut [u32], mut v: u32) -> u32 {
        while roots[v as usize] != v {
            roots[v as usize] = roots[roots[v as usize] as usize];
            v = roots[v as usize];
        }
        v
    }
    for &[a, b] in links.edges.iter() {
        let [a, b] = [a, b].map(|v| root(&mut roots, v));
        roots[a.max(b) as usize] = a.min(b);
    }
    let joined = (0..links.vertices).filter(|&v| f64::from(root(&mut roots, v as u32)) != labels[v]).count();
    Ok(vec![
        none("1 edges between two components", torn.count(), PARTS),
        none(
            "2 labels that are not the smallest vertex of theirs",
            (0..links.vertices).filter(is_wrong).count(),
            PARTS,
        ),
        none("3 vertices that a union-find puts elsewhere", joined, PARTS),
    ])
}

/// The properties of ranks.
pub(super) fn ranks(links: &Links, damping: f64, tolerance: f64, fields: &[Field]) -> Result<Vec<Check>> {
    let ranks = &find(fields, "rank")?.values;
    let out = links.out_weights();
    let mut next = vec![0.0; links.vertices];
    let mut give = |from: usize, to: usize, weight: f64| {
        if weight > 0.0 {
            next[to] += ranks[from] * weight / out[from];
        }
    };
    arcs(links).filter(|&(_, from, to)| from != to).for_each(|(e, from, to)| give(from, to, links.weight(e)));
    links.loops.iter().for_each(|&(v, weight)| give(v as usize, v as usize, weight));
    let dangling: f64 = (0..links.vertices).filter(|&v| out[v] == 0.0).map(|v| ranks[v]).sum();
    let each = 1.0 / links.vertices as f64;
    let residual: f64 = (0..links.vertices)
        .map(|v| (ranks[v] - ((1.0 - damping) * each + damping * (next[v] + dangling * each))).abs())
        .sum();
    let negative = ranks.iter().filter(|&&rank| rank < (1.0 - damping) * each * (1.0 - 1e-6)).count();
    let most = Check {
        name: "2 what the equation leaves, summed over all vertices".into(),
        measured: residual,
        // The next round would change them by no more than the last did.
        expected: tolerance.max(1e-12),
        tolerance: Tolerance::AtMost,
        unit: "",
        source: PAGES,
    };
    let total = Check {
        name: "1 the sum of all ranks".into(),
        measured: ranks.iter().sum(),
        expected: 1.0,
        tolerance: Tolerance::Absolute(tolerance.max(1e-10)),
        unit: "",
        source: PAGES,
    };
    Ok(vec![total, most, none("3 ranks below those of vertices that nothing links to", negative, PAGES)])
}

/// Graphs on which programs are tried: heavy-tailed, regular, and one with everything that goes wrong in files.
fn graphs() -> Result<Vec<(&'static str, Mesh)>> {
    let mut odd = vec![[3, 3], [0, 1], [1, 0], [0, 1], [1, 2], [2, 2], [2, 1], [5, 6], [6, 7], [7, 5], [8, 5]];
    // A hub that all look to, and a chain that is left by it.
    odd.extend((20..120).map(|v| [v, 19]));
    odd.extend((120..140).map(|v| [v, v + 1]));
    odd.push([19, 120]);
    odd.push([1, 25]);
    let mut graphs = vec![
        ("kronecker:10", generate("kronecker:10", 1)?),
        ("grid:40x30", generate("grid:40x30", 1)?),
        ("sheet:20", generate("sheet:20", 1)?),
        ("loops, repeats, a hub, a chain", Mesh::from_graph(150, odd)?),
    ];
    // Some weights are zero, and ways of few edges are not always the shortest.
    for (_, mesh) in &mut graphs {
        let values = (0..mesh.cells().len()).map(|e| (e * 7 % 5) as f64).collect();
        mesh.set_cell_field(Field { name: "weight".into(), components: 1, values })?;
    }
    Ok(graphs)
}

/// Runs a program on all graphs, with each of some settings, and judges where it came to.
pub(super) fn all<P: Example>(settings: &[(&str, &str)]) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let settings = if settings.is_empty() { vec![None] } else { settings.iter().map(Some).collect() };
    for (graph, mesh) in graphs()? {
        for setting in &settings {
            let mut values = Settings::new(P::INFO.settings);
            let mut name = graph.to_string();
            if let Some((setting, value)) = setting {
                values.set(P::INFO.settings, setting, value)?;
                name = format!("{graph}, {setting}={value}");
            }
            let options =
                Options { order: P::INFO.order.unwrap_or_default(), precision: Precision::F64, ..Options::default() };
            let mut run = Entry::of::<P>().start(mesh.clone(), &values, &options)?;
            run.step()?;
            checks.extend(
                run.judge()?.into_iter().map(|check| Check { name: format!("{}, {name}", check.name), ..check }),
            );
        }
    }
    Ok(checks)
}
