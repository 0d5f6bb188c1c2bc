use super::*;
use crate::generate::generate;
use crate::measure::{add, dot, scaled};

fn scalar(a: [f64; 3], b: [f64; 3]) -> [[f64; 1]; 1] {
    [[dot(a, b)]]
}

/// One cell of every kind that fills space, pressed out of shape, in one mesh.
fn mixed() -> Mesh {
    let mut mesh = generate("hexes:4", 1).unwrap();
    let mut cells = Cells::new();
    for (c, (kind, corners)) in mesh.cells().iter().enumerate() {
        let part = |of: &[usize]| of.iter().map(|&k| corners[k]).collect::<Vec<u32>>();
        match c {
            // Two wedges, which meet the hexes around them in quads where their quads are.
            0 => {
                cells.push(CellKind::Wedge, &part(&[0, 1, 3, 4, 5, 7]));
                cells.push(CellKind::Wedge, &part(&[1, 2, 3, 5, 6, 7]));
            }
            _ => cells.push(kind, corners),
        }
    }
    mesh = mesh.with_cells(cells).unwrap();
    let bent = |p: &[f64; 3]| {
        let by = 0.1 * libm::sin(5.0 * p[0] + 3.0 * p[1] + 2.0 * p[2]);
        [p[0] + by, p[1] - 0.7 * by, p[2] + 0.4 * by]
    };
    mesh.set_points(mesh.points().iter().map(bent).collect()).unwrap();
    mesh
}

fn pyramids() -> Mesh {
    let corner = |i: usize| [f64::from(i as u32 & 1), f64::from(i as u32 >> 1 & 1), f64::from(i as u32 >> 2)];
    let mut points: Vec<[f64; 3]> = (0..8).map(corner).collect();
    points.push([0.6, 0.45, 0.5]);
    let hex = [0u32, 1, 3, 2, 4, 5, 7, 6];
    let mut cells = Cells::new();
    for facet in CellKind::Hex.facets() {
        let mut corners: Vec<u32> = facet.iter().rev().map(|&k| hex[k as usize]).collect();
        corners.push(8);
        cells.push(CellKind::Pyramid, &corners);
    }
    Mesh::new(points, cells).unwrap()
}

fn meshes() -> Vec<(&'static str, Mesh, usize)> {
    let one = |spec| generate(spec, 3).unwrap();
    let mut all = vec![("pyramids", pyramids(), 1)];
    for (name, mesh) in [
        ("tets", one("box:4")),
        ("hexes", one("hexes:4")),
        ("mixed", mixed()),
        ("triangles", one("sheet:6x5")),
        ("quads", one("quads:6x5")),
        ("lines", one("chain:7")),
    ] {
        all.extend([1, 2].map(|degree| (name, mesh.clone(), degree)));
    }
    all
}

#[test]
fn what_is_linear_is_in_balance_at_every_node_inside_and_its_energy_is_exact() {
    for (name, mesh, degree) in meshes() {
        let elements = mesh.elements(degree).unwrap();
        let slope = [0.3, -0.7, 0.9];
        let (points, flat) = (elements.mesh().points(), elements.mesh().dimension());
        let slope = [0, 1, 2].map(|k| if k < flat { slope[k] } else { 0.0 });
        let values: Vec<[f64; 1]> = points.iter().map(|p| [0.4 + dot(slope, *p)]).collect();
        let pull = elements.cells().stiffness(|_, a, b| scalar(a, b)).times(&values);
        // What flows in through the boundary.
        let flow = elements.rim().loads(|at| [dot(at.normal, slope)]);
        for (v, (pull, flow)) in pull.iter().zip(&flow).enumerate() {
            assert!((pull[0] - flow[0]).abs() < 1e-14, "{name} {degree}, node {v}: {pull:?} {flow:?}");
        }
        let volume = elements.cells().integral(&values, |_, _| 1.0);
        let energy: f64 = pull.iter().zip(&values).map(|(a, b)| a[0] * b[0]).sum();
        assert!((energy - dot(slope, slope) * volume).abs() < 1e-13, "{name} {degree}");
        let (pairs, slopes) = elements.mean_slopes();
        let mut found = vec![[0.0; 3]; points.len()];
        for ([there, here], g) in pairs.iter().zip(&slopes) {
            let difference = values[*there as usize][0] - values[*here as usize][0];
            (0..3).for_each(|k| found[*here as usize][k] += difference * g[k]);
        }
        assert!(found.iter().all(|f| (0..3).all(|k| (f[k] - slope[k]).abs() < 1e-12)), "{name} {degree}");
    }
}

#[test]
fn squares_are_summed_up_without_error_in_degree_two() {
    for (name, mesh, degree) in meshes().into_iter().filter(|(_, _, degree)| *degree == 2) {
        // Straight cells alone: others bend what is a square in space.
        if name == "mixed" {
            continue;
        }
        let elements = mesh.elements(degree).unwrap();
        let square = |p: [f64; 3]| p[0] * p[0] + 0.5 * p[0] * p[1] - p[2] * p[0];
        let values: Vec<[f64; 1]> = elements.mesh().points().iter().map(|p| [square(*p)]).collect();
        let off = elements.cells().integral(&values, |at, [value]| (value - square(at.place)).abs());
        assert!(off < 1e-14, "{name}: {off}");
        let mass = elements.cells().mass(|_| [[1.0]]);
        let sum: f64 = mass.times(&values).iter().zip(&values).map(|(a, b)| a[0] * b[0]).sum();
        let expected = elements.cells().integral(&values, |_, [value]| value * value);
        assert!((sum - expected).abs() < 1e-14, "{name}: {sum} {expected}");
    }
}

#[test]
fn cut_cells_fill_the_mesh_and_groups_come_along() {
    for (name, mesh, degree) in meshes() {
        let elements = mesh.elements(degree).unwrap();
        let volume =
            |mesh: &Mesh| mesh.elements(1).unwrap().cells().integral(&vec![[0.0]; mesh.points().len()], |_, _| 1.0);
        let parts = if degree == 1 { 1 } else { 1 << mesh.dimension() };
        assert_eq!(elements.mesh().cells().len(), parts * mesh.cells().len(), "{name}");
        assert!((volume(elements.mesh()) / volume(&mesh) - 1.0).abs() < 1e-12, "{name} {degree}");
    }
    let bar = generate("bar:5x3x3", 1).unwrap();
    let elements = bar.elements(2).unwrap();
    let left = |mesh: &Mesh| mesh.group("left").unwrap().cells.len();
    assert_eq!(left(elements.mesh()), 4 * left(&bar));
    let g = bar.groups().iter().position(|group| group.name == "left");
    let rim = elements.rim();
    let area = rim.loads(|at| [f64::from(u8::from(rim.group(at.element) == g))]).iter().map(|x| x[0]).sum::<f64>();
    let [low, high] = bar.bounds();
    assert!((area - (high[1] - low[1]) * (high[2] - low[2])).abs() < 1e-14);
}

#[test]
fn what_has_no_extent_is_refused_with_the_place() {
    let flat =
        Mesh::new(vec![[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], Cells::of(CellKind::Triangle, vec![0, 1, 2]));
    let said = flat.unwrap().elements(1).unwrap_err().to_string();
    assert!(said.contains("triangle between points [0, 1, 2] is flat"), "{said}");
    let said = pyramids().elements(2).unwrap_err().to_string();
    assert!(said.contains("cell 0 is a pyramid"), "{said}");
    assert!(Mesh::new(vec![], Cells::new()).unwrap().elements(1).is_err());
}

#[test]
fn names_change_no_number() {
    let mesh = mixed();
    let n = mesh.points().len() as u32;
    let name = |v: u32| (v * 5 + 3) % n;
    assert!(!n.is_multiple_of(5));
    let mut points = vec![[0.0; 3]; n as usize];
    (0..n).for_each(|v| points[name(v) as usize] = mesh.points()[v as usize]);
    let mut cells = Cells::new();
    mesh.cells().iter().for_each(|(kind, c)| cells.push(kind, &c.iter().map(|&v| name(v)).collect::<Vec<u32>>()));
    let renamed = Mesh::new(points, cells).unwrap();
    for degree in [1, 2] {
        let matrix = |mesh: &Mesh| mesh.elements(degree).unwrap().cells().stiffness(|_, a, b| scalar(a, b));
        let (a, b) = (matrix(&mesh), matrix(&renamed));
        let place = |v: u32| if v < n { name(v) } else { v };
        for (&[i, j], block) in a.pairs.iter().zip(&a.blocks) {
            let mut pair = [place(i), place(j)];
            pair.sort_unstable();
            assert_eq!(b.blocks[b.pairs.binary_search(&pair).unwrap()], *block);
        }
    }
}

#[test]
fn sides_that_are_one_are_as_any_place_inside() {
    for (spec, degree, axes) in [
        ("quads:5x4", 1, vec![0]),
        ("quads:5x4", 2, vec![0, 1]),
        ("quads:2x4", 2, vec![0]), // one cell from side to side
        ("hexes:4", 1, vec![0, 1, 2]),
        ("hexes:3", 2, vec![2, 0]),
        ("chain:6", 2, vec![0]),
    ] {
        let mut elements = generate(spec, 1).unwrap().elements(degree).unwrap();
        let ([low, high], nodes) = (elements.mesh().bounds(), elements.mesh().points().to_vec());
        let slopes_before = elements.mean_slopes();
        for &k in &axes {
            elements.periodic(|face| face.place[k] - low[k] < 1e-9, |face| high[k] - face.place[k] < 1e-9).unwrap();
        }
        // What follows is at one of the upper ends, and what it follows at none.
        let followers = elements.followers();
        let is_up = |v: u32| axes.iter().any(|&k| high[k] - nodes[v as usize][k] < 1e-9);
        assert_eq!(followers.len(), (0..nodes.len() as u32).filter(|&v| is_up(v)).count(), "{spec}");
        let is_rim = |e: usize| {
            let rim = elements.rim().nodes(e).iter().map(|&v| nodes[v as usize]);
            axes.iter().any(|&k| rim.clone().all(|p| p[k] - low[k] < 1e-9 || high[k] - p[k] < 1e-9))
        };
        assert!((0..elements.rim().len()).all(|e| !is_rim(e)), "{spec}");
        let matrix = elements.cells().stiffness(|_, a, b| [[dot(a, b)]]);
        let loads = elements.cells().loads(|_| [1.0]);
        for &[lead, follower] in &followers {
            let [a, b] = [lead, follower].map(|v| nodes[v as usize]);
            for k in 0..3 {
                let way = b[k] - a[k];
                assert!(
                    way.abs() < 1e-9 || axes.contains(&k) && (way - high[k] + low[k]).abs() < 1e-9,
                    "{spec} {a:?} {b:?}"
                );
            }
            assert!(is_up(follower) && !is_up(lead));
            assert_eq!((loads[follower as usize], matrix.diagonal[follower as usize]), ([0.0], [[0.0]]));
            assert!(matrix.pairs.as_flattened().iter().all(|&v| v != follower));
        }
        // All equal nodes have equal loads and diagonals: those of degree 1, if every axis is one with its end.
        if degree == 1 && axes.len() == elements.mesh().dimension() {
            let (load, diagonal) = (loads[0][0], matrix.diagonal[0][0][0]);
            for v in (0..nodes.len()).filter(|&v| !is_up(v as u32)) {
                assert!((loads[v][0] - load).abs() < 1e-12 && (matrix.diagonal[v][0][0] - diagonal).abs() < 1e-12);
            }
        }
        // Nothing resists what is the same everywhere.
        let rows = matrix.times(&vec![[1.0]; nodes.len()]);
        assert!(rows.iter().all(|row| row[0].abs() < 1e-12), "{spec}");
        // Along an axis of which the ends are apart, slopes are those of before.
        let Some(free) = (0..elements.mesh().dimension()).find(|k| !axes.contains(k)) else { continue };
        let slope = |(pairs, slopes): &(Vec<[u32; 2]>, Vec<[f64; 3]>), here: u32| {
            let own = pairs.iter().zip(slopes).filter(|(pair, _)| pair[1] == here);
            own.fold([0.0; 3], |sum, (&[there, here], slope)| {
                let way = nodes[there as usize][free] - nodes[here as usize][free];
                add(sum, scaled(way, *slope))
            })
        };
        let slopes = elements.mean_slopes();
        for v in 0..nodes.len() as u32 {
            let [now, before] = [&slopes, &slopes_before].map(|of| slope(of, v));
            assert!((0..3).all(|k| (now[k] - before[k]).abs() < 1e-9), "{spec} {v}: {now:?} {before:?}");
        }
    }
    let refused = |spec: &str, axes: [usize; 2]| {
        let mut elements = generate(spec, 1).unwrap().elements(1).unwrap();
        let [low, high] = elements.mesh().bounds();
        let at = |k: usize, end: [f64; 3]| move |face: &At| (face.place[k] - end[k]).abs() < 1e-9;
        let error = elements.periodic(at(axes[0], low), at(axes[1], high)).unwrap_err().to_string();
        assert!(elements.followers().is_empty());
        error
    };
    assert!(refused("quads:5x4", [0, 1]).contains("is on both of two sides that are one"));
    assert!(refused("torus:8x6", [0, 0]).contains("these have 0 and 0"));
    // Two cubes beside each other, each the mirror of the other, of five tets: front and back have other diagonals.
    let place = |v: u32| [f64::from(v % 3), f64::from(v / 3 % 2), f64::from(v / 6)];
    let mut cells = Cells::new();
    for t in [[0, 3, 5, 6], [0, 1, 3, 5], [0, 2, 3, 6], [0, 4, 5, 6], [3, 5, 6, 7]] {
        let at = |is_mirror: bool| move |c: u32| if is_mirror { 2 - (c & 1) } else { c & 1 } + 3 * (c >> 1);
        cells.push(CellKind::Tet, &t.map(at(false)));
        cells.push(CellKind::Tet, &t.map(at(true)));
    }
    let mut pair = Mesh::new((0..12).map(place).collect(), cells).unwrap().elements(1).unwrap();
    pair.periodic(|face| face.place[0] == 0.0, |face| face.place[0] == 2.0).unwrap();
    let before = (pair.followers(), pair.rim().len());
    let error = pair.periodic(|face| face.place[1] == 0.0, |face| face.place[1] == 1.0).unwrap_err().to_string();
    assert!(error.contains("sides that are one have the same faces"), "{error}");
    // Those that are one already stay so.
    assert_eq!((pair.followers(), pair.rim().len()), before);
    assert_eq!(before.0, [[0, 2], [3, 5], [6, 8], [9, 11]]);
}
