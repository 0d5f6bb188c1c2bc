//! What lists of vertices take in each form, as Young, Romera, Hauck and Fröning compare codecs ("Optimizing Communication for a
//! 2D-Partitioned Scalable BFS", 2016): bits an id, entropy and speed, of a sample like theirs and of the frontiers of searches.

use super::border::Numbering;
use super::page::Page;
use crate::bench::pages::markdown;
use anyhow::Result;
use meshweft::{Int, ListCost, list_costs, random};
use meshweft_command::cli::{Scale, text};
use meshweft_mesh::{Graph, Permutation, generate};
use meshweft_picture::plot::{Bars, Panel};

/// Ascending ids below `end`.
struct List {
    /// What search it is of, if it is of one.
    search: &'static str,
    name: String,
    ids: Vec<u32>,
    end: u32,
}

/// Ids of their sample, and below what they are.
const SAMPLE: [u32; 2] = [29_899, 65_533];

/// A sample like theirs: so many ids at random.
fn sample() -> List {
    let [count, end] = SAMPLE;
    let chance = |v: u32| u64::from(random::hash([Int(v as i32), Int(2), Int(0), Int(0)])[0].0 as u32);
    let mut ids = Permutation::sorted_by_number(end as usize, chance).order()[..count as usize].to_vec();
    ids.sort_unstable();
    List { search: "", name: "their sample, drawn anew".into(), ids, end }
}

/// The vertices of each level of a breadth-first search, ascending.
fn frontiers(graph: &Graph, source: u32) -> Vec<Vec<u32>> {
    let mut is_reached = vec![false; graph.len()];
    is_reached[source as usize] = true;
    let mut levels = vec![vec![source]];
    loop {
        let mut next = Vec::new();
        for &v in &levels[levels.len() - 1] {
            for &u in graph.neighbors(v) {
                if !std::mem::replace(&mut is_reached[u as usize], true) {
                    next.push(u);
                }
            }
        }
        if next.is_empty() {
            return levels;
        }
        next.sort_unstable();
        levels.push(next);
    }
}

/// What one of four hosts has of a list.
const FOURTH: &str = "a fourth of it";

/// Lists that are shorter say nothing of a form.
const LEAST: usize = 1000;

/// The sample, and what two searches of a graph numbered by degree reach at a time: from the vertex with the most edges, and from one
/// with few, all of a level and the fourth that one of four hosts has, to whom vertices are dealt like cards.
fn lists(spec: &str) -> Result<Vec<List>> {
    let mesh = generate::generate(spec, 1)?;
    let graph = Graph::from_cells(&mesh)?;
    let graph = graph.permuted(&Numbering::High.of(&mesh, &graph));
    let n = graph.len() as u32;
    // In the middle of those that have edges at all.
    let middle = (0..n).take_while(|&v| graph.degree(v) > 0).count() as u32 / 2;
    let mut lists = vec![sample()];
    for (search, source) in [("from a hub", 0), ("from the middle", middle)] {
        let levels = frontiers(&graph, source).into_iter().enumerate();
        for (level, ids) in levels.filter(|(_, ids)| ids.len() >= LEAST.min(n as usize / 8)) {
            let quarter: Vec<u32> = ids.iter().filter(|&id| id % 4 == 1).map(|id| id / 4).collect();
            lists.push(List { search, name: format!("level {level}"), ids, end: n });
            lists.push(List { search, name: FOURTH.into(), ids: quarter, end: n / 4 });
        }
    }
    Ok(lists)
}

/// The table, and a plot of it.
pub(super) fn page(scale: Scale) -> Result<Page> {
    let (graph, times) = if scale == Scale::Tiny { ("kronecker:10", 1) } else { ("kronecker:18", 60) };
    let head = [
        "list",
        "ids",
        "entropy of the gaps",
        "bitmap",
        "S4-BP128",
        "Rice",
        "Rice over the entropy",
        "fewer bytes",
        "speed: plain",
        "bitmap",
        "S4-BP128",
        "Rice",
    ];
    let (mut rows, mut panels) = (Vec::new(), Vec::<Panel>::new());
    for List { search, name, ids, end } in lists(graph)? {
        let (entropy, costs) = list_costs(&ids, end, times)?;
        let count = ids.len() as f64;
        let bits = |cost: &ListCost| 8.0 * cost.bytes as f64 / count;
        let speed = |cost: &ListCost| {
            let [write, read] = [cost.write_s, cost.read_s].map(|s| 1e-6 * count / s);
            format!("{write:.0} / {read:.0}")
        };
        let least = costs.iter().map(bits).fold(f64::INFINITY, f64::min);
        let rice = bits(&costs[costs.len() - 1]);
        let title = if search.is_empty() || name == FOURTH { name.clone() } else { format!("{search}, {name}") };
        let mut row = vec![title, text::count(ids.len()), format!("{entropy:.2}")];
        row.extend(costs[1..].iter().map(|cost| format!("{:.2}", bits(cost))));
        row.extend([format!("{:.3}", rice / entropy), format!("{:.1} %", 100.0 * (1.0 - least / 32.0))]);
        row.extend(costs.iter().map(speed));
        rows.push(row);
        if name == FOURTH || search.is_empty() {
            continue;
        }
        // Bitmaps are out of scale where ids are few.
        let bars = std::iter::once(entropy).chain(costs[2..].iter().map(bits)).collect();
        match panels.iter_mut().find(|panel| panel.heading == search) {
            Some(panel) => panel.groups.push((name, bars)),
            None => panels.push(Panel { heading: search.to_string(), groups: vec![(name, bars)] }),
        }
    }
    let bars = Bars {
        title: "Bits an id of lists of vertices",
        subtitle: format!("frontiers of breadth-first searches of {graph} by degree; plain ids take 32 bits"),
        label: "bits an id",
        legend: ["entropy of the gaps", "S4-BP128", "Rice"].map(str::to_string).to_vec(),
        panels,
    };
    Ok(Page {
        text: markdown(head.map(str::to_string).to_vec(), rows.into_iter()),
        plots: vec![("lists.svg", bars.draw())],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_has_the_figures_of_theirs() {
        let List { ids, end, .. } = sample();
        let gaps = ids.windows(2).map(|pair| pair[1] - pair[0]);
        let [mean, element] =
            [gaps.clone().sum::<u32>(), ids.iter().sum()].map(|sum| f64::from(sum) / ids.len() as f64);
        assert!(ids.len() == 29_899 && end == 65_533 && (mean - 2.19).abs() < 0.005, "{mean}");
        assert!((element - 32_789.66).abs() < 300.0 && (15..30).contains(&gaps.max().unwrap()), "{element}");
    }

    #[test]
    fn frontiers_are_the_levels_of_a_search() {
        let path = Graph::from_edges(6, &[[0, 1], [1, 2], [2, 3], [1, 4]]).unwrap();
        assert_eq!(frontiers(&path, 1), [vec![1], vec![0, 2, 4], vec![3]]);
        assert_eq!(frontiers(&path, 5), [vec![5]]);
    }
}
