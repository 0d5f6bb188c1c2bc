use super::testing::Random;
use super::*;
use crate::generate::generate;
use crate::order::Permutation;

type Points = Vec<[f64; 3]>;

/// By the definition: all pairs.
fn brute(surface: &Surface, positions: &[[f64; 3]], radius: f64) -> Contacts {
    let at = |v: u32| positions[v as usize];
    let mut found = Contacts { clearance: vec![radius; positions.len()], ..Contacts::default() };
    let mut closer = |squared: f64, pair: [u32; 4]| {
        let close = squared < radius * radius;
        if close {
            let clearance = &mut found.clearance;
            pair.iter().for_each(|&v| clearance[v as usize] = clearance[v as usize].min(squared.sqrt()));
        }
        close
    };
    for &v in surface.vertices() {
        for &[a, b, c] in surface.triangles().iter().filter(|triangle| !triangle.contains(&v)) {
            let squared = point_triangle(at(v), [at(a), at(b), at(c)]).squared;
            if closer(squared, [v, a, b, c]) {
                found.vertex_triangle.push([v, a, b, c]);
            }
        }
    }
    for (i, &[a, b]) in surface.edges().iter().enumerate() {
        for &[c, d] in surface.edges()[i + 1..].iter().filter(|edge| !edge.contains(&a) && !edge.contains(&b)) {
            if closer(edge_edge([at(a), at(b)], [at(c), at(d)]).squared, [a, b, c, d]) {
                found.edge_edge.push([a, b, c, d]);
            }
        }
    }
    found
}

fn found(surface: &Surface, positions: &[[f64; 3]], radius: f64) -> Contacts {
    Finder::new(surface.clone(), 0.0).unwrap().find(positions, radius).unwrap()
}

fn sheet(n: usize) -> (Points, Vec<[u32; 3]>, f64) {
    let mesh = generate(&format!("sheet:{n}"), 0).unwrap();
    (mesh.points().to_vec(), mesh.triangles(), 1.0 / (n - 1) as f64)
}

fn crumpled(points: &[[f64; 3]]) -> Points {
    let wave = |[x, y, _]: [f64; 3], a: f64, b: f64| (a * x + b * y + a).sin();
    let place = |&p: &[f64; 3]| {
        let x = 0.3 * p[0] + 0.05 * wave(p, 21.0, 8.0) + 0.04 * wave(p, -13.0, 19.0);
        let y = 0.3 * p[1] + 0.05 * wave(p, 9.0, -18.0) + 0.04 * wave(p, 25.0, 7.0);
        [x, y, 0.05 * wave(p, 16.0, 17.0) + 0.04 * wave(p, 28.0, -13.0)]
    };
    points.iter().map(place).collect()
}

/// Layers above each other at a distance, joined in curves: nothing of it crosses.
fn layers(points: &[[f64; 3]], count: usize, distance: f64) -> Points {
    let place = |&[x, y, _]: &[f64; 3]| {
        let length = 1.0 / count as f64;
        let layer = ((x / length) as usize).min(count - 1);
        let along = x - layer as f64 * length;
        let bend = 0.5 * std::f64::consts::PI * distance;
        let flat = (length - bend).max(0.0);
        let (along, height) = match along < flat {
            true => (along, 0.0),
            false => {
                let angle = (along - flat) / bend * std::f64::consts::PI;
                (flat + 0.5 * distance * angle.sin(), 0.5 * distance * (1.0 - angle.cos()))
            }
        };
        let across = if layer.is_multiple_of(2) { along } else { flat - along };
        [across, y, layer as f64 * distance + height]
    };
    points.iter().map(place).collect()
}

fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn contacts_of_random_triangles_rods_and_points_are_all_there_are() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let count = 5 + random.below(60);
        let mut points: Points = (0..count).map(|_| random.point()).collect();
        if seed % 4 == 3 {
            // Many without an extent, in one plane, or in one place.
            points.iter_mut().for_each(|p| *p = p.map(|x| (1.5 * x).round()));
        }
        let mut ids = |size: usize, elements: usize| -> Vec<Vec<u32>> {
            let element = |random: &mut Random| {
                let mut all: Vec<u32> = (0..count as u32).collect();
                (0..size).map(|_| all.swap_remove(random.below(all.len()))).collect()
            };
            (0..elements).map(|_| element(&mut random)).collect()
        };
        let triangles: Vec<[u32; 3]> = ids(3, 40).into_iter().map(|ids| ids.try_into().unwrap()).collect();
        let rods: Vec<[u32; 2]> = ids(2, 9).into_iter().map(|ids| ids.try_into().unwrap()).collect();
        let surface = Surface::new(&points, &triangles, &rods, &ids(1, 5).concat()).unwrap();
        for radius in [1e-3, 0.03, 0.2] {
            let expected = brute(&surface, &points, radius);
            if expected.vertex_triangle.len() + expected.edge_edge.len() <= 128 * surface.vertices().len() {
                assert!(found(&surface, &points, radius) == expected, "seed {seed}");
            }
        }
    }
}

#[test]
fn contacts_of_sheets_are_all_there_are_on_any_number_of_threads() {
    let (points, triangles, edge) = sheet(22);
    let surface = Surface::new(&points, &triangles, &[], &[]).unwrap();
    for place in [crumpled(&points), layers(&points, 5, 0.4 * edge), points.clone()] {
        for radius in [0.1, 0.5, 0.8].map(|edges| edges * edge) {
            let expected = brute(&surface, &place, radius);
            for threads in 1..=4 {
                assert!(
                    on_threads(threads, || found(&surface, &place, radius)) == expected,
                    "radius {radius}, {threads} threads"
                );
            }
        }
        assert!(!brute(&surface, &place, 0.75 * edge).edge_edge.is_empty());
    }
}

#[test]
fn a_list_finds_what_a_walk_finds_while_all_moves() {
    let (points, triangles, edge) = sheet(40);
    let surface = Surface::new(&points, &triangles, &[], &[]).unwrap();
    let mut random = Random::new(1);
    let mut place = crumpled(&points);
    let mut finder = Finder::new(surface.clone(), 0.0).unwrap();
    let steps: Points = points.iter().map(|_| random.point()).collect();
    for round in 0..60 {
        // Slow, then quick; the radius changes now and then; and all falls, which is no reason for another list.
        let size = edge * if round < 50 { 0.01 } else { 0.3 };
        let radius = edge * if round % 7 == 3 { 0.3 } else { 0.4 };
        for (p, step) in place.iter_mut().zip(&steps) {
            *p = [p[0] + size * step[0], p[1] + size * step[1], p[2] + size * step[2] - edge];
        }
        let list = finder.find(&place, radius).unwrap();
        assert!(list == found(&surface, &place, radius), "round {round}");
    }
}

#[test]
fn other_numbers_change_nothing() {
    let (points, triangles, edge) = sheet(25);
    let place = crumpled(&points);
    let mut random = Random::new(9);
    let keys: Vec<u64> = points.iter().map(|_| random.below(usize::MAX) as u64).collect();
    let numbers = Permutation::sorted_by_key(points.len(), |v| keys[v as usize]);
    let moved = |points: &Points| -> Points { numbers.order().iter().map(|&v| points[v as usize]).collect() };
    let renamed: Vec<[u32; 3]> = triangles.iter().map(|t| t.map(|v| numbers.rank()[v as usize])).collect();
    let radius = 0.8 * edge;
    let [own, other] = [(points.clone(), &triangles, place.clone()), (moved(&points), &renamed, moved(&place))].map(
        |(rest, triangles, place)| {
            let surface = Surface::new(&rest, triangles, &[], &[]).unwrap();
            (Finder::new(surface, radius).unwrap().find(&place, radius).unwrap(), place)
        },
    );
    let back = |v: u32| numbers.order()[v as usize];
    let mut vertex_triangle: Vec<[u32; 4]> = other.0.vertex_triangle.iter().map(|pair| pair.map(back)).collect();
    vertex_triangle.iter_mut().for_each(|pair| pair[1..].sort_unstable());
    vertex_triangle.sort_unstable();
    let mut edge_edge: Vec<[u32; 4]> = other.0.edge_edge.iter().map(|pair| pair.map(back)).collect();
    for pair in &mut edge_edge {
        let [a, b, c, d] = *pair;
        let mut edges = [[a.min(b), a.max(b)], [c.min(d), c.max(d)]];
        edges.sort_unstable();
        *pair = [edges[0][0], edges[0][1], edges[1][0], edges[1][1]];
    }
    edge_edge.sort_unstable();
    assert!((vertex_triangle, edge_edge) == (own.0.vertex_triangle, own.0.edge_edge));
    for (v, clearance) in own.0.clearance.iter().enumerate() {
        assert!((clearance - other.0.clearance[numbers.rank()[v] as usize]).abs() < 1e-12);
    }
}

#[test]
fn what_is_close_at_rest_is_no_contact_but_counts_for_clearance() {
    let (points, triangles, edge) = sheet(30);
    let surface = Surface::new(&points, &triangles, &[], &[]).unwrap();
    let radius = 1.3 * edge;
    let at_rest = brute(&surface, &points, radius);
    let mut finder = Finder::new(surface.clone(), radius).unwrap();
    let flat = finder.find(&points, radius).unwrap();
    assert!(at_rest.edge_edge.len() > 1000 && flat.vertex_triangle.is_empty() && flat.edge_edge.is_empty());
    assert!(flat.clearance == at_rest.clearance);

    let place = layers(&points, 3, 0.9 * edge);
    let all = brute(&surface, &place, radius);
    let folded = finder.find(&place, radius).unwrap();
    let others = |all: &[[u32; 4]], rest: &[[u32; 4]]| -> Vec<[u32; 4]> {
        all.iter().filter(|pair| rest.binary_search(pair).is_err()).copied().collect()
    };
    assert!(folded.vertex_triangle == others(&all.vertex_triangle, &at_rest.vertex_triangle));
    assert!(folded.edge_edge == others(&all.edge_edge, &at_rest.edge_edge));
    assert!(folded.edge_edge.len() > 1000);
    assert!(folded.clearance == all.clearance);
}

#[test]
fn layers_that_lie_on_each_other_at_rest_are_contacts_away_from_their_fold() {
    let (points, triangles, edge) = sheet(41);
    let (distance, radius) = (0.3 * edge, 0.4 * edge);
    let rest = layers(&points, 2, distance);
    let surface = Surface::new(&rest, &triangles, &[], &[]).unwrap();
    let found = Finder::new(surface.clone(), radius).unwrap().find(&rest, radius).unwrap();
    let all = brute(&surface, &rest, radius);
    // The path of edges between the parts of a pair, of twice the radius and an edge at most, leads over the fold in the middle.
    let near_fold = |pair: &[u32; 4]| pair.iter().all(|&v| (points[v as usize][0] - 0.5).abs() < 4.0 * edge);
    let gone = |all: &[[u32; 4]], found: &[[u32; 4]]| -> Vec<[u32; 4]> {
        all.iter().filter(|pair| found.binary_search(pair).is_err()).copied().collect()
    };
    let (vertex_triangle, edge_edge) =
        (gone(&all.vertex_triangle, &found.vertex_triangle), gone(&all.edge_edge, &found.edge_edge));
    assert!(vertex_triangle.iter().chain(&edge_edge).all(near_fold));
    assert!(!edge_edge.is_empty() && found.vertex_triangle.len() > 1000);
}

#[test]
fn surfaces_that_lie_on_each_other_at_rest_are_contacts() {
    let (points, triangles, edge) = sheet(9);
    let above = points.iter().map(|p| [p[0] + 0.3 * edge, p[1] + 0.2 * edge, 0.1 * edge]);
    let floor = [[-9.0, -9.0, -0.1 * edge], [9.0, -9.0, -0.1 * edge], [0.0, 20.0, -0.1 * edge]];
    let rest: Points = points.iter().copied().chain(above).chain(floor).collect();
    let upper = triangles.iter().map(|t| t.map(|v| v + 81));
    let all: Vec<[u32; 3]> = triangles.iter().copied().chain(upper).chain([[162, 163, 164]]).collect();
    let surface = Surface::new(&rest, &all, &[], &[]).unwrap();
    let found = Finder::new(surface.clone(), 0.25 * edge).unwrap().find(&rest, 0.25 * edge).unwrap();
    assert!(found == brute(&surface, &rest, 0.25 * edge) && found.vertex_triangle.len() > 250);
}

#[test]
fn steps_within_half_of_the_clearance_never_cross() {
    let (points, triangles, edge) = sheet(24);
    let surface = Surface::new(&points, &triangles, &[], &[]).unwrap();
    let mut place = layers(&points, 4, 0.35 * edge);
    let mut finder = Finder::new(surface.clone(), edge).unwrap();
    let mut random = Random::new(4);
    assert!(crossings(&surface, &place).unwrap().is_empty());
    for round in 0..150 {
        let found = finder.find(&place, 0.5 * edge).unwrap();
        let unbounded: Points = place.iter().map(|p| p.map(|x| x + edge * (random.unit() - 0.5))).collect();
        if round == 0 {
            assert!(!crossings(&surface, &unbounded).unwrap().is_empty(), "without bounds they would");
        }
        for (v, p) in place.iter_mut().enumerate() {
            // Layers are pressed, then let go, and all edges are shaken.
            let mut step = random.point();
            step[2] -= 2.0 * (p[2] - 0.5 * edge).signum() * if round % 16 < 8 { 1.0 } else { -1.0 };
            // Where no number is left between two places, rounding could take a vertex farther.
            if found.clearance[v] < 1e-12 {
                continue;
            }
            let length = step.iter().map(|x| x * x).sum::<f64>().sqrt();
            *p = std::array::from_fn(|k| p[k] + 0.49 * found.clearance[v] * step[k] / length);
        }
        assert!(crossings(&surface, &place).unwrap().is_empty(), "round {round}");
    }
}

#[test]
fn crossings_are_all_there_are_on_any_number_of_threads() {
    let (points, triangles, edge) = sheet(25);
    let surface = Surface::new(&points, &triangles, &[], &[]).unwrap();
    let place = crumpled(&points);
    let at = |v: u32| place[v as usize];
    let mut all = Vec::new();
    for &edge in surface.edges() {
        for &triangle in surface.triangles().iter().filter(|t| edge.iter().all(|v| !t.contains(v))) {
            if crossing::meet(edge.map(at), triangle.map(at)) {
                all.push((edge, triangle));
            }
        }
    }
    assert!(all.len() > 100);
    for threads in 1..=4 {
        assert!(on_threads(threads, || crossings(&surface, &place)).unwrap() == all);
    }
    assert!(crossings(&surface, &layers(&points, 4, 0.3 * edge)).unwrap().is_empty());
}

#[test]
fn two_triangles_meet_if_an_edge_of_one_meets_the_other() {
    let tip = |x: f64| {
        [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [x, 0.2, -0.5], [x, 0.2, 0.5], [x + 2.0, 0.2, 0.0]]
    };
    let check = |points: &[[f64; 3]], triangles: &[[u32; 3]], expected: &[([u32; 2], [u32; 3])]| {
        let surface = Surface::new(points, triangles, &[], &[]).unwrap();
        assert_eq!(crossings(&surface, points).unwrap(), expected);
    };
    let apart = [[0, 1, 2], [3, 4, 5]];
    check(&tip(0.3), &apart, &[([1, 2], [3, 4, 5]), ([3, 4], [0, 1, 2])]);
    check(&tip(-1.0), &apart, &[([0, 2], [3, 4, 5]), ([1, 2], [3, 4, 5])]);
    check(&tip(0.9), &apart, &[]);
    // One vertex in common, and they meet elsewhere; an edge in common, folded flat.
    let fan = [[0.0, 0.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [2.0, 0.0, -1.0], [2.0, 0.0, 1.0]];
    check(&fan, &[[0, 1, 2], [0, 3, 4]], &[([1, 2], [0, 3, 4])]);
    let flat = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.3, 0.5, 0.0]];
    check(&flat, &[[0, 1, 2], [0, 1, 3]], &[]);
}

#[test]
fn hostile_positions_give_errors_or_contacts() {
    let (points, triangles, edge) = sheet(40);
    let surface = Surface::new(&points, &triangles, &[], &[]).unwrap();
    let mut finder = Finder::new(surface.clone(), 0.0).unwrap();
    let refused = |finder: &mut Finder, positions: &[[f64; 3]], radius: f64, expected: &str| {
        let error = finder.find(positions, radius).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let at_seven = |x: f64| -> Points {
        let mut place = points.clone();
        place[7][1] = x;
        place
    };
    refused(&mut finder, &at_seven(f64::NAN), edge, "vertex 7 is at [");
    refused(&mut finder, &at_seven(-1e31), edge, "vertex 7 is at [");
    refused(&mut finder, &points[1..], edge, "1599 positions for a surface of 1600 vertices");
    for radius in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(&mut finder, &points, radius, "the radius is");
    }
    refused(&mut finder, &vec![[0.5; 3]; 1600], edge, "more than 128 pairs a vertex are closer than");
    refused(&mut finder, &points, 50.0 * edge, "more than 128 pairs a vertex are closer than");
    assert!(Finder::new(surface.clone(), 1.0).is_err() && Finder::new(surface.clone(), f64::NAN).is_err());
    assert!(crossings(&surface, &vec![[0.5; 3]; 1600]).unwrap_err().to_string().contains("more than 128 edges"));

    for place in [at_seven(1e30), at_seven(-1e25), at_seven(1e20), points.iter().map(|p| p.map(|x| x * 1e29)).collect()]
    {
        assert!(finder.find(&place, 0.3 * edge).unwrap() == brute(&surface, &place, 0.3 * edge), "{:?}", place[7]);
        let crossing = crossings(&surface, &place).unwrap();
        assert!(crossing.iter().all(|(edge, triangle)| edge.contains(&7) || triangle.contains(&7)));
    }
    let mut none = Finder::new(Surface::new(&[], &[], &[], &[]).unwrap(), 1.0).unwrap();
    assert_eq!(none.find(&[], 1.0).unwrap(), Contacts::default());
}
