use super::*;
use crate::generate::generate;
use crate::order::Curve;

const PARTS: [usize; 9] = [1, 2, 3, 4, 6, 7, 16, 24, 64];

/// The graph and points of a generated mesh, numbered along the curve.
fn numbered(spec: &str) -> (Graph, Vec<[f64; 3]>) {
    let mesh = generate(spec, 1).unwrap();
    let order = Curve::Morton.order(mesh.points());
    let points = order.order().iter().map(|&v| mesh.points()[v as usize]).collect();
    (Graph::from_cells(&mesh).unwrap().permuted(&order), points)
}

fn bisect(graph: &Graph, points: &[[f64; 3]], parts: usize) -> Partition {
    let partition = Partition::new(graph, points, parts, Cut::Bisection).unwrap();
    partition.verify(graph).unwrap();
    let largest = partition.parts().iter().map(|part| part.owned.len()).max().unwrap();
    assert!(largest <= capacity(graph.len(), parts), "{largest} of {} vertices in one of {parts}", graph.len());
    partition
}

fn ring() -> Graph {
    let edges: Vec<[u32; 2]> = (1..10).map(|v| [v - 1, v]).chain([[0, 9]]).collect();
    Graph::from_edges(10, &edges).unwrap()
}

#[test]
fn runs_cover_and_meet() {
    let ring = ring();
    for parts in [1, 2, 3, 7, 10, 13] {
        let partition = Partition::contiguous(&ring, parts).unwrap();
        partition.verify(&ring).unwrap();
        assert!((0..10).all(|v| partition.parts()[partition.owner(v)].owned.contains(&v)));
        assert!(partition.owners().is_sorted());
    }
    let halves = Partition::contiguous(&ring, 2).unwrap();
    assert_eq!((halves.cut_edges(&ring), halves.boundary_vertices(), halves.imbalance()), (2, 4, 1.0));
}

#[test]
fn wrong_lists_and_arguments_are_refused() {
    let ring = ring();
    let halves = Partition::contiguous(&ring, 2).unwrap();
    let changes: [fn(&mut Partition); 6] = [
        |p| p.parts[1].ghosts.truncate(1),
        |p| p.parts[1].ghosts.push(9),
        |p| p.parts[0].boundary.truncate(1),
        |p| p.parts[0].owned.truncate(4),
        |p| p.parts[1].owned.swap(0, 1),
        |p| p.owners[3] = 7,
    ];
    for change in changes {
        let mut wrong = halves.clone();
        change(&mut wrong);
        assert!(wrong.verify(&ring).is_err());
    }
    assert!(Partition::contiguous(&ring, 0).is_err());
    assert!(Partition::new(&ring, &[[0.0; 3]; 10], 0, Cut::Bisection).is_err());
    assert!(Partition::new(&ring, &[[0.0; 3]; 9], 2, Cut::Curve).is_err());
    assert!(Partition::new(&ring, &[[f64::NAN; 3]; 10], 2, Cut::Bisection).is_err());
    assert!(Partition::from_owners(&ring, vec![2; 10], 2).is_err());
    assert!(Partition::from_owners(&ring, vec![0; 9], 2).is_err());
}

#[test]
fn bisections_are_balanced_and_send_what_the_edges_need() {
    for spec in ["box:19x17x13", "sheet:40", "ball:15", "torus:60x30", "random:3000", "chain:500", "disk:20"] {
        let (graph, points) = numbered(spec);
        for parts in PARTS {
            let partition = bisect(&graph, &points, parts);
            let sent = |part: &Part| part.ghosts.len();
            assert_eq!(parts == 1, partition.parts().iter().map(sent).sum::<usize>() == 0, "{spec}");
        }
    }
}

#[test]
fn boxes_are_cut_between_layers() {
    // The least possible: two layers of vertices at every plane. The box is 30 spacings long, so up to 5 parts are slabs.
    let (graph, points) = numbered("box:30x10x10");
    for (parts, planes) in [(2, 1), (3, 2), (5, 4)] {
        assert_eq!(bisect(&graph, &points, parts).boundary_vertices(), planes * 2 * 100);
    }
    // 45 layers cannot be halved; the plane moves half a layer, and 3 % of balance is enough for that.
    let (graph, points) = numbered("box:45x10x10");
    assert_eq!(bisect(&graph, &points, 2).boundary_vertices(), 200);
}

#[test]
fn bisections_have_smaller_boundaries_than_runs_unless_these_are_boxes_too() {
    for (spec, least_gain) in [("box:25", 0.9), ("sheet:100", 0.9), ("torus:100x50", 0.9), ("random:5000", 1.0)] {
        let (graph, points) = numbered(spec);
        for parts in [3, 6, 24] {
            let [curve, bisection] = [Cut::Curve, Cut::Bisection]
                .map(|cut| Partition::new(&graph, &points, parts, cut).unwrap().boundary_vertices() as f64);
            assert!(bisection < least_gain * curve, "{spec} in {parts}: {bisection} of {curve}");
        }
    }
}

#[test]
fn refinement_never_cuts_more() {
    let (graph, points) = numbered("random:3000");
    for parts in [2, 3, 16] {
        let rough = bisection::bisect(&graph, &points, parts, capacity(3000, parts));
        let rough = Partition::from_owners(&graph, rough, parts).unwrap();
        let refined = bisect(&graph, &points, parts);
        assert!(refined.cut_edges(&graph) < rough.cut_edges(&graph));
    }
}

#[test]
fn thread_counts_change_nothing() {
    // Large enough that sweeps are split between threads.
    let (graph, points) = numbered("random:150000");
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| [3, 64].map(|parts| bisect(&graph, &points, parts)))
    };
    let one = on(1);
    assert!([2, 3, 8].iter().all(|&threads| on(threads) == one));
}

#[test]
fn numberings_without_a_curve_work_too() {
    // Here blocks are spread over the whole sheet and the sample is of one kind.
    let mesh = generate("sheet:200", 1).unwrap();
    let order = crate::Permutation::sorted_by_key(40_000, |v| v.wrapping_mul(2_654_435_761));
    let points: Vec<_> = order.order().iter().map(|&v| mesh.points()[v as usize]).collect();
    let graph = Graph::from_cells(&mesh).unwrap().permuted(&order);
    assert!(bisect(&graph, &points, 2).boundary_vertices() <= 400);
    // Consecutive vertices take turns at two ends of a line: the sample may see only one.
    let points: Vec<_> = (0..40_000).map(|v| [f64::from(v % 2), 0.0, 0.0]).collect();
    bisect(&graph, &points, 3);
}

#[test]
fn degenerate_meshes_have_bisections() {
    let empty = Graph::from_edges(0, &[]).unwrap();
    let single = Graph::from_edges(1, &[]).unwrap();
    for parts in PARTS {
        bisect(&empty, &[], parts);
        bisect(&single, &[[1.0; 3]], parts);
        bisect(&ring(), &[[2.0; 3]; 10], parts); // coincident
        bisect(&ring(), &std::array::from_fn::<_, 10, _>(|i| [0.0, -(i as f64), -0.0]), parts); // fewer than 16
        bisect(&ring(), &std::array::from_fn::<_, 10, _>(|i| [[f64::MIN, f64::MAX][i % 2], 0.0, 0.0]), parts);
    }
    let path: Vec<[u32; 2]> = (1..20_000).map(|v| [v - 1, v]).collect();
    let path = Graph::from_edges(20_000, &path).unwrap();
    assert_eq!(bisect(&path, &[[0.0; 3]; 20_000], 5).cut_edges(&path), 4); // ties go by number
    let graded: Vec<_> = (0..20_000).map(|v| [0.5f64.powi(v / 20), 0.0, 0.0]).collect();
    assert_eq!(bisect(&path, &graded, 4).cut_edges(&path), 3);
}

/// Edges that cross, each in both directions, and pairs of a vertex and another part with a neighbor of it, straight from the edges.
fn crossing(graph: &Graph, owners: &[u32]) -> (usize, usize) {
    let owner = |v: u32| owners[v as usize];
    let all = || (0..graph.len() as u32).flat_map(|v| graph.neighbors(v).iter().map(move |&u| (v, u)));
    let crossing = || all().filter(|&(v, u)| owner(v) != owner(u));
    (crossing().count(), crossing().map(|(v, u)| (v, owner(u))).collect::<std::collections::BTreeSet<_>>().len())
}

#[test]
fn a_vertex_is_sent_once_to_each_part_that_has_neighbors_of_it() {
    for spec in ["box:7", "kronecker:8", "uniform:300x4", "chain:50", "random:400"] {
        let (graph, points) = numbered(spec);
        let random: Vec<u32> = (0..graph.len() as u32).map(|v| v.wrapping_mul(0x9e37_79b9) >> 16 & 3).collect();
        let partitions = [
            Partition::from_owners(&graph, random, 4),
            Partition::contiguous(&graph, 3),
            Partition::new(&graph, &points, 5, Cut::Bisection),
            Partition::by_edges(&graph, &[0.7, 0.3]),
            Partition::contiguous(&graph, 1),
        ];
        for partition in partitions.map(Result::unwrap) {
            let (edges, messages) = crossing(&graph, partition.owners());
            assert_eq!((2 * partition.cut_edges(&graph), partition.messages()), (edges, messages), "{spec}");
        }
    }
    // A hub alone with all its edges: as many edges cross as there are, both ways, but one value goes out, and one comes from each other.
    let star = Graph::from_edges(5, &[[0, 1], [0, 2], [0, 3], [0, 4]]).unwrap();
    let hub = Partition::from_owners(&star, vec![0, 1, 1, 1, 1], 2).unwrap();
    assert_eq!((2 * hub.cut_edges(&star), hub.messages()), (8, 5));
}

#[test]
fn runs_by_edges_have_them_as_the_weights_say() {
    let (graph, _) = numbered("kronecker:12");
    let degrees: Vec<u32> = (0..graph.len() as u32).map(|v| graph.degree(v) as u32).collect();
    let graph = graph.permuted(&crate::order::Permutation::by_degree(&degrees));
    for weights in [&[0.7, 0.3][..], &[1.0, 1.0, 2.0], &[5.0], &[0.0, 1.0]] {
        let partition = Partition::by_edges(&graph, weights).unwrap();
        partition.verify(&graph).unwrap();
        assert!(partition.owners().is_sorted());
        let most = f64::from(graph.degree(0) as u32) / graph.directed_edges() as f64;
        let all: f64 = weights.iter().sum();
        for (part, weight) in partition.parts().iter().zip(weights) {
            let edges: usize = part.owned.iter().map(|&v| graph.degree(v)).sum();
            let off = edges as f64 / graph.directed_edges() as f64 - weight / all;
            assert!(off.abs() <= most, "{weights:?}: off by {off}");
        }
    }
    for weights in [&[][..], &[0.0, 0.0], &[-1.0, 2.0], &[f64::NAN, 1.0], &[f64::INFINITY]] {
        assert!(Partition::by_edges(&graph, weights).is_err(), "{weights:?}");
    }
    assert_eq!(Partition::by_edges(&Graph::from_edges(3, &[]).unwrap(), &[1.0, 1.0]).unwrap().messages(), 0);
}
