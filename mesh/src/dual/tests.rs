use super::*;
use crate::generate::generate;
use crate::mesh::Group;

/// Area times outward normal, centroid, for each face of each cell.
fn faces_of(dual: &Dual) -> Vec<Vec<([f64; 3], [f64; 3])>> {
    let mut faces = vec![Vec::new(); dual.volumes.len()];
    for face in &dual.faces {
        for (cell, sign) in face.cells.into_iter().zip([1.0, -1.0]) {
            faces[cell as usize].push((scaled(sign * face.area, face.normal), face.centroid));
        }
    }
    for face in &dual.boundary_faces {
        faces[face.cell as usize].push((scaled(face.area, face.normal), face.centroid));
    }
    faces
}

fn size(v: [f64; 3]) -> f64 {
    unit(v).0
}

/// Cells are closed, and the flux of a linear field through their faces is its divergence times the volume.
fn check_cells(what: &str, dual: &Dual, dimension: usize) {
    // Flat meshes lie in z = 0 or x, so components across do not count.
    let field = |[x, y, z]: [f64; 3]| [2.0 * x - y + 0.3 * z + 1.0, x + 3.0 * y - z, 0.5 * x + y - 4.0 * z + 7.0];
    let divergence: f64 = [2.0, 3.0, -4.0][..dimension].iter().sum();
    for (i, faces) in faces_of(dual).into_iter().enumerate() {
        let area: f64 = faces.iter().map(|face| size(face.0)).sum();
        let total = faces.iter().map(|face| face.0).fold([0.0; 3], add);
        assert!(size(total) < 1e-14 * area, "{what}: cell {i} is open by {total:?}");
        let center = dual.mesh.points()[i];
        let middle = field(center);
        // Less the value in the middle, which the cell being closed cancels.
        let flux: f64 = faces.iter().map(|face| dot(face.0, sub(field(face.1), middle))).sum();
        assert!((flux - divergence * dual.volumes[i]).abs() < 1e-12 * area, "{what}: {flux} of cell {i}");
        assert!(dual.volumes[i] > 0.0);
    }
    for face in &dual.faces {
        let [a, b] = face.cells.map(|c| dual.mesh.points()[c as usize]);
        assert!(dot(sub(b, a), face.normal) > 0.0, "{what}: {face:?}");
        assert!((size(face.normal) - 1.0).abs() < 1e-15);
    }
    for (k, face) in dual.faces.iter().enumerate() {
        assert_eq!(dual.mesh.cells().corners(k), face.cells);
    }
}

/// A hex with a pyramid on it, a tet at the side of that, and a wedge at the side of the hex.
fn mixed() -> Mesh {
    let mut points: Vec<[f64; 3]> =
        [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
            .map(|p| p.map(f64::from))
            .to_vec();
    points.extend([[0.5, 0.5, 1.8], [1.6, 0.5, 1.9], [2.0, 0.0, 0.5], [2.0, 1.0, 0.5]]);
    let mut cells = Cells::new();
    cells.push(CellKind::Hex, &[0, 1, 2, 3, 4, 5, 6, 7]);
    cells.push(CellKind::Edge, &[0, 1]);
    cells.push(CellKind::Pyramid, &[4, 5, 6, 7, 8]);
    cells.push(CellKind::Tet, &[5, 6, 9, 8]);
    cells.push(CellKind::Wedge, &[1, 5, 10, 2, 6, 11]);
    Mesh::new(points, cells).unwrap()
}

#[test]
fn cells_are_closed_and_fluxes_match_divergences() {
    for (spec, dimension, volume) in [
        ("box:7x6x5", 3, 5.0 / 6.0 * 4.0 / 6.0),
        ("hexes:5x4x4", 3, 9.0 / 16.0),
        ("sheet:9x5", 2, 0.5),
        ("quads:9x5", 2, 0.5),
        ("bar:9x3x3", 3, 1.0 / 16.0),
        ("ball:9", 3, f64::NAN),
    ] {
        let dual = generate(spec, 5).unwrap().dual().unwrap();
        check_cells(spec, &dual, dimension);
        let total: f64 = dual.volumes.iter().sum();
        assert!(volume.is_nan() || (total - volume).abs() < 1e-13, "{spec}: {total}");
    }
    let disk = generate("disk:20", 0).unwrap().dual().unwrap();
    check_cells("disk", &disk, 2);
    let sides = disk.boundary_faces.len() as f64;
    let polygon = sides / 8.0 * (std::f64::consts::TAU / sides).sin();
    assert!((disk.volumes.iter().sum::<f64>() - polygon).abs() < 1e-13);
}

#[test]
fn kinds_may_be_mixed_and_go_round_either_way() {
    let mesh = mixed();
    let dual = mesh.dual().unwrap();
    check_cells("mixed", &dual, 3);
    assert_eq!(dual.cells, [0, 2, 3, 4]);
    assert_eq!(dual.faces.iter().map(|face| face.cells).collect::<Vec<_>>(), [[0, 1], [0, 3], [1, 2]]);
    assert_eq!(dual.boundary_faces.len(), 4 + 3 + 3 + 4);
    let volumes = [1.0, 0.8 / 3.0, dual.volumes[2], 0.5];
    assert!(dual.volumes.iter().zip(volumes).all(|(a, b)| (a - b).abs() < 1e-15), "{:?}", dual.volumes);
    let center = dual.mesh.points()[1]; // a quarter of the height of the pyramid
    assert!(size(sub(center, [0.5, 0.5, 1.2])) < 1e-15, "{center:?}");
    // The other way round: two corners of each base swapped.
    let mut cells = Cells::new();
    for (kind, corners) in mesh.cells().iter() {
        let order: &[usize] = match kind {
            CellKind::Hex => &[0, 3, 2, 1, 4, 7, 6, 5],
            CellKind::Pyramid => &[0, 3, 2, 1, 4],
            CellKind::Tet => &[0, 2, 1, 3],
            CellKind::Wedge => &[0, 2, 1, 3, 5, 4],
            _ => &[0, 1],
        };
        cells.push(kind, &order.iter().map(|&k| corners[k]).collect::<Vec<_>>());
    }
    check_cells("turned", &Mesh::new(mesh.points().to_vec(), cells).unwrap().dual().unwrap(), 3);
}

#[test]
fn warped_quads_leave_no_gaps() {
    let mut mesh = generate("hexes:5", 0).unwrap();
    let inside: Vec<bool> = mesh.boundary().iter().map(|b| !b).collect();
    let random = |v: usize, k: usize| ((3 * v + k) as u32).wrapping_mul(2_654_435_761) as f64 / 2f64.powi(32) - 0.5;
    let shift =
        |(v, p): (usize, &[f64; 3])| std::array::from_fn(|k| p[k] + if inside[v] { 0.1 * random(v, k) } else { 0.0 });
    mesh.set_points(mesh.points().iter().enumerate().map(shift).collect()).unwrap();
    let dual = mesh.dual().unwrap();
    assert!((dual.volumes.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    for (i, faces) in faces_of(&dual).into_iter().enumerate() {
        assert!(size(faces.iter().map(|face| face.0).fold([0.0; 3], add)) < 1e-15, "cell {i}");
    }
    // The centroids of the cells make up the centroid of the cube.
    let moment = dual.volumes.iter().zip(dual.mesh.points()).map(|(&v, &p)| scaled(v, p)).fold([0.0; 3], add);
    assert!(size(sub(moment, [0.5; 3])) < 1e-14, "{moment:?}");
}

#[test]
fn normals_of_curved_surfaces_are_halfway_between_their_cells() {
    let mesh = generate("sphere:8", 0).unwrap();
    let dual = mesh.dual().unwrap();
    assert!(dual.boundary_faces.is_empty());
    assert_eq!(2 * dual.faces.len(), 3 * dual.cells.len());
    for face in &dual.faces {
        // Of the sphere around the middle of its box: the normal is perpendicular to the radius.
        let [low, high] = mesh.bounds();
        let radius = sub(face.centroid, scaled(0.5, add(low, high)));
        assert!(dot(face.normal, unit(radius).1).abs() < 0.02, "{face:?}");
        let [a, b] = face.cells.map(|c| dual.mesh.points()[c as usize]);
        assert!(dot(face.normal, unit(sub(b, a)).1) > 0.9);
    }
    // A rectangle bent by a right angle.
    let points = vec![[0.0; 3], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]];
    let bent = Mesh::new(points, Cells::of(CellKind::Quad, vec![0, 1, 3, 2, 0, 4, 5, 1])).unwrap().dual().unwrap();
    let half = 0.5f64.sqrt();
    assert!(size(sub(bent.faces[0].normal, [-half, 0.0, half])) < 1e-15, "{:?}", bent.faces);
    assert!(bent.boundary_faces.iter().any(|face| face.normal == [0.0, 0.0, 1.0]));
}

#[test]
fn lines_have_vertices_for_faces() {
    let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [1.0, 2.0, 0.0]];
    let line = Mesh::from_edges(points, vec![[0, 1], [2, 1]]).unwrap();
    let dual = line.dual().unwrap();
    let half = 0.5f64.sqrt();
    assert_eq!(dual.volumes, [1.0, 2.0]);
    assert_eq!((dual.faces[0].area, dual.faces[0].centroid), (1.0, [1.0, 0.0, 0.0]));
    assert!(size(sub(dual.faces[0].normal, [half, half, 0.0])) < 1e-15);
    assert_eq!(dual.boundary_faces[0].normal, [-1.0, 0.0, 0.0]);
}

#[test]
fn renaming_vertices_changes_no_value() {
    for mesh in
        [generate("box:6", 3).unwrap(), generate("hexes:5", 3).unwrap(), generate("torus:12x8", 3).unwrap(), mixed()]
    {
        let n = mesh.points().len();
        let name = |v: u32| (n as u32 - 1 - v).wrapping_add(7) % n as u32;
        let mut points = vec![[0.0; 3]; n];
        (0..n).for_each(|v| points[name(v as u32) as usize] = mesh.points()[v]);
        let (mut cells, mut reversed) = (Cells::new(), Cells::new());
        for c in 0..mesh.cells().len() {
            let renamed: Vec<u32> = mesh.cells().corners(c).iter().map(|&v| name(v)).collect();
            cells.push(mesh.cells().kind(c), &renamed);
            let last = mesh.cells().len() - 1 - c;
            reversed.push(mesh.cells().kind(last), mesh.cells().corners(last));
        }
        // All but the corners of the cells, whose names are other ones.
        let nameless = |dual: Dual| Dual { mesh: dual.mesh.with_cells(dual.mesh.cells().clone()).unwrap(), ..dual };
        let dual = nameless(mesh.dual().unwrap());
        assert_eq!(nameless(Mesh::new(points, cells).unwrap().dual().unwrap()), dual);
        // In another order of cells, faces are seen from the other side.
        let back = Mesh::new(mesh.points().to_vec(), reversed).unwrap().dual().unwrap();
        assert!(back.volumes.iter().rev().eq(&dual.volumes));
        assert!(back.mesh.points().iter().rev().eq(dual.mesh.points()));
        let last = dual.volumes.len() as u32 - 1;
        let turned = |face: &Face| {
            let [a, b] = face.cells.map(|c| last - c);
            Face { cells: [b, a], normal: face.normal.map(|x| 0.0 - x), ..*face }
        };
        let sorted = |faces: Vec<Face>| {
            let mut faces = faces;
            faces.sort_by(|a, b| (a.cells, a.centroid).partial_cmp(&(b.cells, b.centroid)).unwrap());
            faces
        };
        assert_eq!(sorted(back.faces.iter().map(turned).collect()), sorted(dual.faces.clone()));
    }
}

#[test]
fn boundary_faces_know_their_group() {
    let bar = generate("bar:9x3x3", 0).unwrap();
    let dual = bar.dual().unwrap();
    let [low, high] = bar.bounds();
    for face in &dual.boundary_faces {
        let name = face.group.map(|g| &*bar.groups()[g].name);
        let expected = match face.normal[0] {
            x if x < -0.9 => Some("left"),
            x if x > 0.9 => Some("right"),
            _ => None,
        };
        assert_eq!(name, expected, "{face:?} in {low:?} {high:?}");
    }
    // Vertices name the faces whose corners they are; edges do so themselves.
    let mut cells = Cells::of(CellKind::Quad, vec![0, 1, 2, 3]);
    cells.extend(CellKind::Vertex, vec![3, 2, 1]);
    cells.extend(CellKind::Edge, vec![2, 1]);
    let square = vec![[0.0; 3], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
    let mut mesh = Mesh::new(square, cells).unwrap();
    mesh.add_group(Group { name: "points".into(), dimension: 0, cells: vec![1, 2, 3] }).unwrap();
    mesh.add_group(Group { name: "edge".into(), dimension: 1, cells: vec![4] }).unwrap();
    mesh.add_group(Group { name: "inside".into(), dimension: 2, cells: vec![0] }).unwrap();
    let groups: Vec<_> = mesh.dual().unwrap().boundary_faces.iter().map(|face| face.group).collect();
    assert_eq!(groups, [None, Some(1), Some(0), None]);
}

#[test]
fn collapsed_hexes_are_wedges() {
    // The wedge of `mixed` as a hex with two pairs of equal corners.
    let mesh = mixed();
    let mut cells = Cells::new();
    for (kind, corners) in mesh.cells().iter() {
        match kind {
            CellKind::Wedge => cells.push(CellKind::Hex, &[1, 5, 10, 10, 2, 6, 11, 11]),
            _ => cells.push(kind, corners),
        }
    }
    let collapsed = Mesh::new(mesh.points().to_vec(), cells).unwrap().dual().unwrap();
    check_cells("collapsed", &collapsed, 3);
    let dual = mesh.dual().unwrap();
    assert_eq!(collapsed.faces.len(), dual.faces.len());
    assert_eq!(collapsed.boundary_faces.len(), dual.boundary_faces.len());
    assert!((collapsed.volumes[3] - 0.5).abs() < 1e-15);
}

#[test]
fn meshes_without_a_dual_are_refused() {
    let message = |points: &[[f64; 3]], kind, corners: &[u32]| {
        Mesh::new(points.to_vec(), Cells::of(kind, corners.to_vec())).unwrap().dual().unwrap_err().to_string()
    };
    let fan: Vec<[f64; 3]> = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]];
    let error = message(&fan, CellKind::Triangle, &[0, 1, 2, 0, 1, 3, 0, 1, 4]);
    assert!(error.contains("vertices [0, 1]") && error.contains("cells [0, 1, 2]"), "{error}");
    let error = message(&fan, CellKind::Tet, &[0, 1, 2, 4]);
    assert!(error.contains("cell 0 (tet) has volume 0"), "{error}");
    let far = fan.iter().map(|p| p.map(|x| x * 1e200)).collect::<Vec<_>>();
    assert!(message(&far, CellKind::Tet, &[0, 1, 2, 3]).contains("volume"));
    let flat = fan.iter().map(|&[x, y, z]| [x * 1e160, y * 1e160, z * 1e-100]).collect::<Vec<_>>();
    assert!(message(&flat, CellKind::Tet, &[0, 3, 1, 2]).contains("face of cell 0 has area"));
    assert!(message(&fan, CellKind::Quad, &[0, 1, 0, 1]).contains("volume 0"));
    assert!(message(&fan, CellKind::Vertex, &[0]).contains("no dual"));
    assert!(Mesh::default().dual().is_err());
    assert!(message(&fan, CellKind::Edge, &[0, 1, 0, 2, 0, 3]).contains("vertices [0]"));
}

#[test]
fn sides_that_are_one_close_the_boundary() {
    for (spec, axes) in [("quads:4x3", 2), ("sheet:5", 2), ("hexes:4x3x5", 3), ("bar:5x3x3", 3)] {
        let mesh = generate(spec, 1).unwrap();
        let mut dual = mesh.dual().unwrap();
        let inner = dual.faces.len();
        for k in 0..axes {
            dual.periodic(|face| face.normal[k] < -0.5, |face| face.normal[k] > 0.5).unwrap();
        }
        assert!(
            dual.boundary_faces.is_empty() && dual.faces[..inner].iter().all(|face| face.shift == [0.0; 3]),
            "{spec}"
        );
        assert_eq!((dual.mesh.cells().len(), dual.mesh.primal().is_some()), (dual.faces.len(), true));
        let mut sums = vec![[0.0; 3]; dual.volumes.len()];
        for face in &dual.faces {
            let [a, b] = face.cells.map(|c| c as usize);
            assert!(a < b);
            // The second lies where the normal points.
            let way = sub(add(dual.mesh.points()[b], face.shift), dual.mesh.points()[a]);
            assert!(dot(way, face.normal) > 0.0, "{spec} {face:?}");
            sums[a] = add(sums[a], scaled(face.area, face.normal));
            sums[b] = sub(sums[b], scaled(face.area, face.normal));
        }
        assert!(sums.iter().all(|&sum| size(sum) < 1e-12), "{spec}");
    }
}

#[test]
fn sides_that_are_not_the_same_are_refused() {
    let said = |dual: &mut Dual, axes: [usize; 2]| {
        let [k, l] = axes;
        let before = dual.clone();
        let error = dual.periodic(|face| face.normal[k] < -0.5, |face| face.normal[l] > 0.5).unwrap_err();
        assert_eq!(*dual, before);
        error.to_string()
    };
    let dual = |spec: &str| generate(spec, 1).unwrap().dual().unwrap();
    assert!(said(&mut dual("quads:4x3"), [0, 1]).contains("these have 2 and 3"));
    assert!(said(&mut dual("quads:4x4"), [0, 1]).contains("there is none at"));
    // Its points are moved at random.
    assert!(said(&mut dual("box:4"), [0, 0]).contains("there is none at"));
    assert!(said(&mut dual("quads:2x4"), [0, 0]).contains("cell 0 is on both"));
    assert!(said(&mut dual("torus:8x6"), [2, 2]).contains("these have 0 and 0"));
}
