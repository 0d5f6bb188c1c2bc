//! Counts, shapes and orientation of every generator, and what specs are refused with.

use super::*;
use crate::cell::CellKind;

fn made(spec: &str) -> Mesh {
    generate(spec, 1).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

fn refused(spec: &str) -> String {
    generate(spec, 1).expect_err(spec).to_string()
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|k| a[k] - b[k])
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Volumes of the tets of a mesh.
fn volumes(mesh: &Mesh) -> Vec<f64> {
    let volume = |t: &[u32; 4]| {
        let [a, b, c, d] = t.map(|v| mesh.points()[v as usize]);
        dot(minus(b, a), cross(minus(c, a), minus(d, a))) / 6.0
    };
    mesh.tets().iter().map(volume).collect()
}

/// Doubled areas of the triangles of a mesh, as normals.
fn normals(mesh: &Mesh) -> Vec<[f64; 3]> {
    let normal = |t: &[u32; 3]| {
        let [a, b, c] = t.map(|v| mesh.points()[v as usize]);
        cross(minus(b, a), minus(c, a))
    };
    mesh.triangles().iter().map(normal).collect()
}

fn degrees(mesh: &Mesh) -> Vec<usize> {
    let mut degrees = vec![0; mesh.points().len()];
    mesh.edges().iter().flatten().for_each(|&v| degrees[v as usize] += 1);
    degrees
}

/// Number of vertices that have each degree, by degree.
fn degree_counts(mesh: &Mesh) -> std::collections::BTreeMap<usize, usize> {
    degrees(mesh).into_iter().fold(Default::default(), |mut counts, d| {
        *counts.entry(d).or_default() += 1;
        counts
    })
}

fn euler(mesh: &Mesh) -> i64 {
    mesh.points().len() as i64 - mesh.edges().len() as i64 + mesh.triangles().len() as i64
}

/// Number of connected parts.
fn parts(mesh: &Mesh) -> usize {
    fn root(up: &mut [usize], mut v: usize) -> usize {
        while up[v] != v {
            up[v] = up[up[v]];
            v = up[v];
        }
        v
    }
    let mut up: Vec<usize> = (0..mesh.points().len()).collect();
    for [a, b] in mesh.edges() {
        let (a, b) = (root(&mut up, a as usize), root(&mut up, b as usize));
        up[a] = b;
    }
    (0..up.len()).filter(|&v| up[v] == v).count()
}

/// Area of the facets that only one cell has: larger than that of the boundary if the inside has cracks.
fn boundary_area(mesh: &Mesh) -> f64 {
    let area = |t: &[u32; 3]| {
        let [a, b, c] = t.map(|v| mesh.points()[v as usize]);
        let normal = cross(minus(b, a), minus(c, a));
        dot(normal, normal).sqrt() / 2.0
    };
    mesh.surface().iter().map(area).sum()
}

#[test]
fn counts_follow_the_formulas() {
    let cases = [
        ("sheet:7x4", 28, CellKind::Triangle, 36),
        ("quads:7x4", 28, CellKind::Quad, 18),
        ("box:4x3x5", 60, CellKind::Tet, 144),
        ("bar:4x3x5", 60, CellKind::Triangle, 2 * 2 * 2 * 4), // its ends; the tets are counted below
        ("hexes:4x3x5", 60, CellKind::Hex, 24),
        ("ball:6", 216, CellKind::Tet, 750),
        ("sphere:5", 252, CellKind::Triangle, 500),
        ("disk:5", 91, CellKind::Triangle, 150),
        ("torus:7x5", 35, CellKind::Triangle, 70),
        ("chain:9", 9, CellKind::Edge, 8),
    ];
    for (spec, vertices, kind, cells) in cases {
        let mesh = made(spec);
        assert_eq!((mesh.points().len(), mesh.cells().counts()[0]), (vertices, (kind, cells)), "{spec}");
        assert_eq!(parts(&mesh), 1, "{spec}");
    }
    assert_eq!(made("bar:4x3x5").cells().counts()[1], (CellKind::Tet, 144));
}

#[test]
fn one_number_or_none_stands_for_all() {
    let same = [("sheet:5", "sheet:5x5"), ("box:4", "box:4x4x4"), ("bar:3", "bar:9x3x3"), ("torus:12", "torus:12x6")];
    for (short, long) in same {
        assert_eq!(made(short), made(long), "{short}");
    }
    for generator in GENERATORS {
        let default = format!("{}:{}", generator.name, generator.default);
        assert_eq!(made(generator.name), made(&default), "{default}");
    }
}

#[test]
fn examples_of_the_table_work_and_forms_fit() {
    for generator in GENERATORS {
        assert!(made(generator.example).points().len() > 1, "{}", generator.example);
        assert_eq!((generator.spread)(9).len(), generator.form.split('x').count(), "{}", generator.name);
        assert!(find(generator.example).is_some_and(|g| g.name == generator.name));
    }
}

#[test]
fn sizes_are_known_before_anything_is_made() {
    for generator in GENERATORS {
        let (size, mesh) = (size(generator.name).unwrap(), made(generator.name));
        let made = Size {
            vertices: mesh.points().len(),
            cells: mesh.cells().len(),
            corners: mesh.cells().all_corners().len(),
        };
        match generator.name {
            // Of the airfoil some cells are edges.
            "bar" | "random" | "airfoil" | "plate" => {
                assert!(made.vertices == size.vertices && made.cells <= size.cells, "{made:?}")
            }
            name => assert_eq!(made, size, "{name}"),
        }
        assert!(made.corners <= size.corners, "{}", generator.name);
    }
}

#[test]
fn tets_are_positive_and_fill_the_box() {
    let cases =
        [("box:20x17x9", 16.0 * 8.0 / 19.0 / 19.0), ("box:30", 1.0), ("bar:4", 1.0 / 16.0), ("hexes:9x5x3", 0.125)];
    for (spec, expected) in cases {
        let volumes = volumes(&made(spec));
        assert!(volumes.iter().all(|&v| v > 0.0), "{spec}");
        let total: f64 = volumes.iter().sum();
        assert!((total - expected).abs() < 1e-12, "{spec}: {total}");
    }
}

#[test]
fn no_shift_of_jitter_turns_a_tet_inside_out() {
    // The worst case for the tet 0 1 3 7: its edges 0-3 and 1-7 pushed toward each other, along (1, -1, 1).
    let push = 0.28 / 3f64.sqrt();
    let corners = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]];
    let signs = [1.0, -1.0, 1.0, -1.0];
    let pushed: [[f64; 3]; 4] = std::array::from_fn(|v| {
        let [x, y, z] = corners[v];
        [x + signs[v] * push, y - signs[v] * push, z + signs[v] * push]
    });
    let mesh = Mesh::new(pushed.to_vec(), crate::Cells::of(CellKind::Tet, vec![0, 1, 2, 3])).unwrap();
    let volume = volumes(&mesh)[0];
    assert!(volume > 0.0 && volume < 0.01, "{volume}"); // 1/6 without jitter
}

#[test]
fn box_is_flat_sided_and_jittered_inside() {
    let (mesh, n) = (made("box:6x5x4"), [6, 5, 4]);
    assert_eq!(mesh.bounds(), [[0.0; 3], [1.0, 0.8, 0.6]]);
    for (v, at) in grid::vertices(n).enumerate() {
        for k in 0..3 {
            let exact = at[k] as f64 / 5.0;
            let shift = (mesh.points()[v][k] - exact).abs();
            let outside = at[k] == 0 || at[k] == n[k] - 1;
            assert!(if outside { shift == 0.0 } else { shift > 0.0 && shift < 0.28 / 5.0 }, "vertex {v}, axis {k}");
        }
    }
    // 2 (1 × 0.8 + 0.8 × 0.6 + 0.6 × 1): flat sides, and no facet inside that only one tet has.
    assert!((boundary_area(&mesh) - 3.76).abs() < 1e-12);
}

#[test]
fn degrees_are_those_promised() {
    let n = [7, 6, 5];
    for spec in ["box:7x6x5", "bar:7x6x5"] {
        let degrees = degrees(&made(spec));
        for (v, at) in grid::vertices(n).enumerate() {
            let inside = (0..3).all(|k| at[k] > 0 && at[k] < n[k] - 1);
            assert!(!inside || degrees[v] == 14, "{spec}: vertex {v} has {}", degrees[v]);
        }
    }
    assert_eq!(degree_counts(&made("torus:9x5")), [(6, 45)].into());
    assert_eq!(degree_counts(&made("sphere:4")), [(5, 12), (6, 150)].into());
    // Corners of the hexagon 3, the rest of the rim 4, inside 6.
    assert_eq!(degree_counts(&made("disk:4")), [(3, 6), (4, 18), (6, 37)].into());
    assert_eq!(degree_counts(&made("chain:8")), [(1, 2), (2, 6)].into());
    let sheet = made("sheet:7x7");
    let inner = degrees(&sheet).into_iter().zip(grid::vertices([7, 7, 1]));
    let inner = inner.filter(|(_, at)| at[..2].iter().all(|i| (1..6).contains(i)));
    assert!(inner.into_iter().all(|(d, at)| d == if (at[0] + at[1]).is_multiple_of(2) { 8 } else { 4 }));
}

#[test]
fn surfaces_close_and_face_outward() {
    for n in 1..8 {
        assert_eq!(euler(&made(&format!("sphere:{n}"))), 2, "sphere:{n}");
        assert_eq!(euler(&made(&format!("disk:{n}"))), 1, "disk:{n}");
        assert_eq!(euler(&made(&format!("torus:{}x{}", n + 2, 2 * n + 1))), 0, "torus {n}");
    }
    assert_eq!(euler(&made("sheet:9x4")), 1);

    for spec in ["sheet:9x4", "quads:9x4", "disk:9"] {
        assert!(normals(&made(spec)).iter().all(|n| n[0] == 0.0 && n[1] == 0.0 && n[2] > 0.0), "{spec}");
    }
    for spec in ["sphere:1", "sphere:9"] {
        let mesh = made(spec);
        let outward = |(t, n): (&[u32; 3], &[f64; 3])| dot(mesh.points()[t[0] as usize], *n) > 0.0;
        assert!(mesh.triangles().iter().zip(&normals(&mesh)).all(outward), "{spec}");
    }
    // By the divergence theorem the cones from the origin add up to the volume, with its sign; a torus has 2 π² R r².
    let mesh = made("torus:300x200");
    let cones =
        mesh.triangles().into_iter().zip(normals(&mesh)).map(|(t, n)| dot(mesh.points()[t[0] as usize], n) / 6.0);
    let (volume, pi) = (cones.sum::<f64>(), std::f64::consts::PI);
    assert!((volume / (2.0 * pi * pi * 0.35 * 0.15 * 0.15) - 1.0).abs() < 1e-3, "{volume}");
}

#[test]
fn triangles_of_round_surfaces_are_well_shaped() {
    // The smallest angle of every triangle, by the law of cosines, in degrees.
    for (spec, least) in [("sphere:40", 45.0), ("disk:40", 40.0), ("torus:128x64", 25.0)] {
        let mesh = made(spec);
        let smallest = |t: &[u32; 3]| {
            let p = t.map(|v| mesh.points()[v as usize]);
            let angle = |k: usize| {
                let (a, b) = (minus(p[(k + 1) % 3], p[k]), minus(p[(k + 2) % 3], p[k]));
                (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()).acos().to_degrees()
            };
            angle(0).min(angle(1)).min(angle(2))
        };
        let smallest = mesh.triangles().iter().map(smallest).fold(180.0, f64::min);
        assert!(smallest > least, "{spec}: {smallest}");
    }
}

#[test]
fn ball_is_round_and_positive() {
    for n in 2..24 {
        let mesh = made(&format!("ball:{n}"));
        for (tet, volume) in mesh.tets().iter().zip(volumes(&mesh)) {
            let p = tet.map(|v| mesh.points()[v as usize]);
            let edges = CellKind::Tet.edges().iter().map(|[a, b]| minus(p[*a as usize], p[*b as usize]));
            let mean_square = edges.map(|e| dot(e, e)).sum::<f64>() / 6.0;
            // 1 for a regular tet, 0.66 for a Kuhn tet, 0 for a flat one; the least must not fall as n grows.
            let shape = 6.0 * 2f64.sqrt() * volume / mean_square.powf(1.5);
            assert!(shape > 0.4, "ball:{n}: tet {tet:?} has shape {shape}");
        }
        for triangle in mesh.surface() {
            for p in triangle.map(|v| mesh.points()[v as usize]) {
                assert!((dot(p, p) - 0.25).abs() < 1e-15, "ball:{n}: {p:?} is not on the sphere");
            }
        }
    }
    let (total, pi) = (volumes(&made("ball:40")).iter().sum::<f64>(), std::f64::consts::PI);
    assert!((total / (pi / 6.0) - 1.0).abs() < 5e-3, "{total}");
}

#[test]
fn ends_of_the_bar_are_facets_of_its_tets() {
    let mesh = made("bar:5x3x4");
    let surface: Vec<[u32; 3]> = mesh.surface().into_iter().map(rotated).collect();
    for (name, x) in [("left", 0.0), ("right", 1.0)] {
        let group = mesh.group(name).unwrap();
        assert_eq!((group.dimension, group.cells.len()), (2, 2 * 2 * 3));
        for &c in &group.cells {
            let corners: [u32; 3] = mesh.cells().corners(c as usize).try_into().unwrap();
            assert!(surface.contains(&rotated(corners)), "{name}: {corners:?}");
            assert!(corners.iter().all(|&v| mesh.points()[v as usize][0] == x), "{name}: {corners:?}");
        }
    }
}

/// The same triangle, seen from the same side, with its smallest corner first.
fn rotated([a, b, c]: [u32; 3]) -> [u32; 3] {
    [[a, b, c], [b, c, a], [c, a, b]].into_iter().min().expect("there are three")
}

#[test]
fn random_points_are_joined_to_their_neighbors() {
    for n in [1, 2, 3, 12, 13, 14, 100, 5000] {
        let mesh = made(&format!("random:{n}"));
        assert_eq!((mesh.points().len(), parts(&mesh)), (n, 1), "random:{n}");
        assert_eq!(mesh.cells().all_corners(), mesh.edges().as_flattened(), "random:{n}: ascending, each edge once");
        assert!(degrees(&mesh).iter().all(|&d| d >= 12.min(n - 1)), "random:{n}");
    }
    let mean = 2.0 * made("random:30000").cells().len() as f64 / 30_000.0;
    assert!((13.0..15.0).contains(&mean), "{mean}");
}

#[test]
fn seeds_decide_and_threads_do_not() {
    for spec in ["box:9x7x5", "random:3000", "kronecker:12", "uniform:3000"] {
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(generate(spec, 5).unwrap(), alone.install(|| generate(spec, 5)).unwrap(), "{spec}");
        assert_ne!(generate(spec, 5).unwrap(), generate(spec, 6).unwrap(), "{spec}");
    }
    for generator in GENERATORS.iter().filter(|g| !g.about.contains("uses the seed")) {
        assert_eq!(generate(generator.name, 5).unwrap(), generate(generator.name, 6).unwrap(), "{}", generator.name);
    }
}

#[test]
fn bits_are_the_same_everywhere() {
    // FNV-1a over all coordinates, of a graph over the ends of all edges, as found on x86-64: other machines must agree.
    fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
    }
    let hash = |spec: &str| match generate(spec, 42).unwrap() {
        graph if graph.bounds() == [[0.0; 3]; 2] => {
            fnv(graph.cells().all_corners().iter().flat_map(|v| v.to_le_bytes()))
        }
        mesh => fnv(mesh.points().as_flattened().iter().flat_map(|x| x.to_bits().to_le_bytes())),
    };
    let expected = [
        ("box:7", 0x5ccc_7009_2c81_d545),
        ("random:100", 0x13ad_2acd_df22_f4a7),
        ("disk:9", 0x063c_a9b0_f6bb_a8d4),
        ("torus:9x7", 0x5630_d26b_02bb_382b),
        ("sphere:5", 0x8ddb_47a7_6b1b_c3d5),
        ("ball:6", 0x9b70_5aa3_3777_6ec5),
        ("kronecker:9", 0xd9f5_ba9c_d1cc_cf24),
        ("kronecker:9x16", 0xd9f5_ba9c_d1cc_cf24),
        ("uniform:500x3", 0x3f3d_89e6_8850_61da),
    ];
    let found = expected.map(|(spec, _)| (spec, hash(spec)));
    assert_eq!(found, expected);
}

#[test]
fn tiny_meshes_are_valid() {
    let cases = [
        ("sheet:1x1", 1, 0),
        ("sheet:2x1", 2, 0),
        ("sheet:1x3", 3, 0),
        ("sheet:2x2", 4, 2),
        ("quads:1", 1, 0),
        ("box:1x1x1", 1, 0),
        ("box:1x2x3", 6, 0),
        ("box:2", 8, 6),
        ("bar:1x1x1", 1, 0),
        ("bar:1x3x3", 9, 0),
        ("bar:1", 1, 0),
        ("bar:2x2x2", 8, 10),
        ("hexes:1x1x4", 4, 0),
        ("hexes:2", 8, 1),
        ("ball:1", 1, 0),
        ("ball:2", 8, 6),
        ("sphere:1", 12, 20),
        ("disk:1", 7, 6),
        ("torus:3", 9, 18),
        ("random:1", 1, 0),
        ("random:2", 2, 1),
        ("chain:1", 1, 0),
        ("grid:1", 1, 0),
        ("grid:2x3", 6, 7),
        ("kronecker:1", 2, 32),
        ("kronecker:1x3", 2, 6),
        ("uniform:1", 1, 16),
        ("uniform:2x1", 2, 2),
    ];
    for (spec, vertices, cells) in cases {
        let mesh = made(spec);
        assert_eq!((mesh.points().len(), mesh.cells().len()), (vertices, cells), "{spec}");
    }
    assert_eq!(made("sheet:1x3").bounds()[1], [0.0, 1.0, 0.0]);
}

#[test]
fn names_that_do_not_exist_are_answered_with_those_that_do() {
    let message = refused("lattice:3");
    assert!(message.starts_with("no mesh generator is named `lattice`: there are sheet:NXxNY, box:"), "{message}");
    assert!(GENERATORS.iter().all(|g| message.contains(&format!("{}:{}", g.name, g.form))), "{message}");
    for (typo, meant) in
        [("shet", "sheet"), ("Box:4", "box"), ("spere:3", "sphere"), ("hexs", "hexes"), ("disc", "disk")]
    {
        assert!(refused(typo).contains(&format!("did you mean `{meant}`?")), "{}", refused(typo));
    }
    assert!(!refused("").contains("did you mean"));
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let cases = [
        ("sheet:0x5", "mesh `sheet:0x5`: every number must be at least 1"),
        ("box:4x0x4", "mesh `box:4x0x4`: every number must be at least 1"),
        ("bar:0", "mesh `bar:0x0x0`: every number must be at least 1"),
        ("ball:0", "mesh `ball:0`: every number must be at least 1"),
        ("grid:0", "mesh `grid:0x0`: every number must be at least 1"),
        ("kronecker:0", "mesh `kronecker:0x16`: every number must be at least 1"),
        ("kronecker:27", "mesh `kronecker:27x16` is too large: 1.34e8 vertices, 2.15e9 cells"),
        ("kronecker:9999999999", "mesh `kronecker:9999999999x16` is too large"),
        ("kronecker:9x0", "mesh `kronecker:9x0`: every number must be at least 1"),
        ("uniform:0", "mesh `uniform:0x16`: every number must be at least 1"),
        ("uniform:99999999999", "mesh `uniform:99999999999x16` is too large"),
        ("torus:2", "mesh `torus:2x2`: every number must be at least 3"),
        ("sheet:-3", "mesh `sheet:-3`: `-3` is not a positive integer: write sheet:NXxNY, such as sheet:256x256"),
        ("ball:1.5", "`1.5` is not a positive integer"),
        ("ball:big", "`big` is not a positive integer"),
        ("sheet:", "a number is missing"),
        ("sheet:3x", "a number is missing"),
        ("chain:99999999999999999999999", "is too large: write chain:N"),
        (
            "box:3x3",
            "mesh `box:3x3`: 2 numbers given, but it takes 3, or one for all: write box:NXxNYxNZ, such as box:128",
        ),
        ("disk:3x3", "2 numbers given, but it takes 1: write disk:N"),
        ("box:5000", "mesh `box:5000x5000x5000` is too large: 1.25e11 vertices, 7.50e11 cells"),
        ("box:1000", "use smaller numbers"),
        ("sheet:1x3000000000", "is too large"),
        ("chain:18446744073709551615", "is too large"),
        ("bar:18446744073709551615", "is too large"),
        ("random:18446744073709551615", "is too large"),
        ("disk:18446744073709551615", "is too large"),
        ("sphere:18446744073709551615", "is too large"),
        ("box:18446744073709551615", "is too large"),
    ];
    for (spec, expected) in cases {
        let message = refused(spec);
        assert!(message.contains(expected), "{spec}: {message}");
    }
}
