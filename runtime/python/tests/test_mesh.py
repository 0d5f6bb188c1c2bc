"""Meshes from arrays, files, meshio and PyVista, and input that is none."""

import pickle

import meshweft
import numpy as np
import pytest

THREE = np.zeros((3, 3))

HOSTILE = [
    ("coordinate that is not finite", [[0, 0, np.nan]], {}),
    ("points have shape (n, 3) or (n, 2), not (2,)", [0, 1], {}),
    ("points have shape (n, 3) or (n, 2), not (3, 4)", np.zeros((3, 4)), {}),
    ("points are no numbers", "abc", {}),
    ("points are no numbers", [[0, 0, 0], [1]], {}),
    ("corners from 0 to 3, but there are 3 points", THREE, {"triangle": [[0, 1, 3]]}),
    ("corners from -1 to 1, but there are 3 points", THREE, {"triangle": [[0, 1, -1]]}),
    ("corners from 0 to 1099511627776", THREE, {"triangle": [[0, 1, 2**40]]}),
    ("integers of shape (cells, 3), not float64", THREE, {"triangle": [[0.0, 1, 2]]}),
    ("integers of shape (cells, 3), not int64 of (1, 2)", THREE, {"triangle": [[0, 1]]}),
    ("do not have 3 corners each", THREE, {"triangle": [[0, 1, 2], [0, 1]]}),
    ("unknown cells blob: one of vertex, edge", THREE, {"blob": [[0, 1, 2]]}),
]


@pytest.mark.parametrize("words, points, cells", HOSTILE)
def test_arrays_that_are_no_mesh_are_errors(words, points, cells):
    with pytest.raises(meshweft.MeshError) as raised:
        meshweft.Mesh(points, **cells)
    assert words in str(raised.value)


def test_small_meshes_are_meshes():
    assert len(meshweft.Mesh(np.zeros((0, 3)))) == 0
    flat = meshweft.Mesh([[0, 0], [1, 1]], edge=[[0, 1]])
    assert flat.points.tolist() == [[0, 0, 0], [1, 1, 0]] and flat.edges.tolist() == [[0, 1]]
    graph = meshweft.Mesh.from_graph(3, [[0, 2]])
    assert len(graph) == 3 and graph.edges.tolist() == [[0, 2]]


def test_what_there_is_not_is_an_error_that_lists_what_there_is(tmp_path):
    mesh = meshweft.Mesh.generate("sheet:4")
    for words, ask in [
        ("there are sheet:NXxNY, box:NXxNYxNZ", lambda: meshweft.Mesh.generate("blob:3")),
        ("is too large", lambda: meshweft.Mesh.generate("box:1000000")),
        ("No such file", lambda: meshweft.Mesh.read("/nonexistent.vtu")),
        ("can read .obj .ply", lambda: mesh.write(tmp_path / "mesh.zzz")),
        ("3 values of 1 components for 16 points", lambda: mesh.with_field("a", np.zeros(3))),
        ("a has shape (n,) or (n, components)", lambda: mesh.with_field("a", np.zeros((16, 2, 2)))),
        ("no field \"b\", but a", lambda: mesh.with_field("a", np.zeros(16)).field("b")),
    ]:
        with pytest.raises(meshweft.MeshError) as raised:
            ask()
        assert words in str(raised.value)


def same(a, b):
    assert np.array_equal(a.points, b.points)
    assert a.cells.keys() == b.cells.keys()
    assert all(np.array_equal(a.cells[kind], b.cells[kind]) for kind in a.cells)
    assert a.fields.keys() >= b.fields.keys()
    assert all(np.array_equal(a.fields[name], b.fields[name]) for name in b.fields)


def with_fields(spec):
    mesh = meshweft.Mesh.generate(spec)
    return mesh.with_field("heat", np.arange(len(mesh)) / 3).with_field("wind", mesh.points * 2)


@pytest.mark.parametrize("spec", ["sheet:5", "box:3", "hexes:3", "quads:4", "chain:6"])
def test_meshio_takes_and_gives_all_of_it(spec, tmp_path):
    meshio = pytest.importorskip("meshio", reason="meshio is not installed")
    mesh = with_fields(spec)
    same(meshweft.Mesh.from_meshio(mesh.to_meshio()), mesh)
    meshio.write(tmp_path / "mesh.vtu", mesh.to_meshio())
    same(meshweft.Mesh.read(tmp_path / "mesh.vtu"), mesh)
    mesh.write(tmp_path / "ours.vtu")
    same(meshweft.Mesh.from_meshio(meshio.read(tmp_path / "ours.vtu")), mesh)
    with pytest.raises(meshweft.MeshError, match="cells triangle6 are not known"):
        meshweft.Mesh.from_meshio(meshio.Mesh(np.zeros((6, 3)), [("triangle6", [[0, 1, 2, 3, 4, 5]])]))


@pytest.mark.parametrize("spec", ["sheet:5", "box:3", "hexes:3", "quads:4", "chain:6"])
def test_pyvista_takes_and_gives_all_of_it(spec):
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    mesh = with_fields(spec)
    same(meshweft.Mesh.from_pyvista(mesh.to_pyvista()), mesh)


def test_meshes_are_pickled():
    mesh = with_fields("box:3")
    same(pickle.loads(pickle.dumps(mesh)), mesh)


def test_pyvista_surfaces_become_meshes():
    pyvista = pytest.importorskip("pyvista", reason="PyVista is not installed")
    sphere = meshweft.Mesh.from_pyvista(pyvista.Sphere())
    assert len(sphere) == 842 and len(sphere.triangles) == 1680


def test_a_simulation_becomes_a_grid_that_has_moved():
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    sim = meshweft.examples.cloth("sheet:6")
    sim.step(2)
    grid = sim.to_pyvista()
    assert np.allclose(grid.points, sim["position"])
    assert set(sim.fields) <= set(grid.point_data.keys())


def test_groups_and_duals():
    mesh = meshweft.Mesh.generate("sheet:3")
    assert mesh.groups == {}
    dual = mesh.dual()
    assert len(dual.mesh) == len(dual.volumes) == 8
    assert np.isclose(dual.volumes.sum(), 1)
    ends = dual.mesh.points[dual.faces]
    assert (((ends[:, 1] - ends[:, 0]) * dual.normals).sum(axis=1) > 0).all()
    assert dual.areas.shape == (8,) and dual.centroids.shape == (8, 3)


def test_groups_of_a_file(tmp_path):
    (tmp_path / "mesh.msh").write_text(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n1 7 \"rim\"\n2 8 \"plate\"\n$EndPhysicalNames\n"
        "$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n"
        "$Elements\n3\n1 1 2 7 1 1 2\n2 2 2 8 1 1 2 3\n3 2 2 8 1 1 3 4\n$EndElements\n"
    )
    groups = meshweft.Mesh.read(tmp_path / "mesh.msh").groups
    assert groups["rim"].tolist() == [True, True, False, False] and groups["plate"].all()
