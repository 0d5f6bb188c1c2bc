"""Meshes: from files, generators, arrays, meshio and PyVista."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from ._meshweft import Mesh as _Mesh
from ._meshweft import MeshError

_KINDS = {"vertex": 1, "edge": 2, "triangle": 3, "quad": 4, "tet": 4, "pyramid": 5, "wedge": 6, "hex": 8}
_OF_MESHIO = {
    "vertex": "vertex",
    "line": "edge",
    "triangle": "triangle",
    "quad": "quad",
    "tetra": "tet",
    "pyramid": "pyramid",
    "wedge": "wedge",
    "hexahedron": "hex",
}
_OF_VTK = {1: "vertex", 3: "edge", 5: "triangle", 9: "quad", 10: "tet", 14: "pyramid", 13: "wedge", 12: "hex"}


class Dual(NamedTuple):
    """The cells of a mesh as vertices, for finite volumes."""

    mesh: "Mesh"
    """Centroids of the cells, and an edge for each face between two of them."""
    volumes: Any
    """Volume of each cell; of a surface its area."""
    faces: Any
    """The two cells of each face, shape (faces, 2)."""
    normals: Any
    """Unit vectors from the first cell to the second, shape (faces, 3)."""
    areas: Any
    """Area of each face; of a surface the length of the edge."""
    centroids: Any
    """Of the faces, shape (faces, 3)."""


class Mesh:
    """Points in space and cells between them, which do not change.

    `points`: shape (n, 3) or (n, 2), in meters in the examples. `cells`: arrays of corners, shape (cells, corners), by kind: `triangle=...`, `edge=...`,
    `tet=...`, `quad`, `pyramid`, `wedge`, `hex`, `vertex`.

    >>> import meshweft
    >>> mesh = meshweft.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], triangle=[[0, 1, 2]])
    >>> len(mesh), mesh.edges.tolist()
    (3, [[0, 1], [0, 2], [1, 2]])
    """

    def __init__(self, points: Any, **cells: Any) -> None:
        points = _numbers(points, "points")
        if points.ndim != 2 or points.shape[1] not in (2, 3):
            raise MeshError(f"points have shape (n, 3) or (n, 2), not {points.shape}")
        if points.shape[1] == 2:
            points = np.concatenate([points, np.zeros((len(points), 1))], axis=1)
        arrays = []
        for kind, corners in cells.items():
            if kind not in _KINDS:
                raise MeshError(f"unknown cells {kind}: one of {', '.join(_KINDS)}")
            try:
                corners = np.asarray(corners)
            except ValueError:
                raise MeshError(f"cells {kind} do not have {_KINDS[kind]} corners each") from None
            if corners.ndim != 2 or corners.shape[1] != _KINDS[kind] or corners.size and corners.dtype.kind not in "iu":
                raise MeshError(f"cells {kind} are integers of shape (cells, {_KINDS[kind]}), not {corners.dtype} of {corners.shape}")
            if corners.size and not 0 <= corners.min() <= corners.max() < len(points):
                raise MeshError(f"cells {kind} have corners from {corners.min()} to {corners.max()}, but there are {len(points)} points")
            arrays.append((kind, np.ascontiguousarray(corners, dtype=np.uint32)))
        self._mesh = _Mesh(np.ascontiguousarray(points), arrays)

    @classmethod
    def _of(cls, mesh: _Mesh) -> "Mesh":
        made = cls.__new__(cls)
        made._mesh = mesh
        return made

    @classmethod
    def generate(cls, spec: str, seed: int = 1) -> "Mesh":
        """A mesh by a word such as `sheet:100`, `torus:80x60`, `box:20`; an unknown one is an error that lists them."""
        return cls._of(_Mesh.generate(spec, seed))

    @classmethod
    def read(cls, path: "str | os.PathLike[str]") -> "Mesh":
        """A mesh of a file: VTU, VTK, PLY, OBJ, STL, OFF, Gmsh, TetGen."""
        return cls._of(_Mesh.read(os.fspath(path)))

    @classmethod
    def from_graph(cls, vertices: int, edges: Any) -> "Mesh":
        """A graph without geometry: so many vertices, all at the origin, and edges between them, shape (edges, 2)."""
        return cls(np.zeros((vertices, 3)), edge=edges)

    @classmethod
    def from_meshio(cls, mesh: Any) -> "Mesh":
        """A mesh of meshio, with its fields over points. Cells of second order are an error."""
        cells: dict[str, list[Any]] = {}
        for block in mesh.cells:
            if block.type not in _OF_MESHIO:
                raise MeshError(f"cells {block.type} are not known: {', '.join(_OF_MESHIO)}")
            cells.setdefault(_OF_MESHIO[block.type], []).append(block.data)
        made = cls(mesh.points, **{kind: np.concatenate(all) for kind, all in cells.items()})
        for name, values in mesh.point_data.items():
            made = made.with_field(name, values)
        return made

    @classmethod
    def from_pyvista(cls, mesh: Any) -> "Mesh":
        """A mesh of PyVista, with its fields over points."""
        mesh = mesh.cast_to_unstructured_grid()
        cells: dict[str, Any] = {}
        for number, corners in mesh.cells_dict.items():
            if int(number) not in _OF_VTK:
                raise MeshError(f"cells of VTK's type {number} are not known: {sorted(_OF_VTK)}")
            cells[_OF_VTK[int(number)]] = corners
        made = cls(np.asarray(mesh.points, dtype=float), **cells)
        for name in mesh.point_data.keys():
            made = made.with_field(name, np.asarray(mesh.point_data[name]))
        return made

    def __len__(self) -> int:
        """Number of vertices."""
        return self._mesh.vertex_count()

    @property
    def points(self) -> Any:
        """Coordinates, shape (n, 3). A copy."""
        return self._mesh.points()

    @property
    def edges(self) -> Any:
        """Pairs of vertices that share an edge of a cell, each once, shape (edges, 2)."""
        return self._mesh.edges()

    @property
    def triangles(self) -> Any:
        """Triangles, and quads cut in two, shape (triangles, 3)."""
        return self._mesh.triangles()

    @property
    def tets(self) -> Any:
        """Tetrahedra, and other solid cells cut into such, shape (tets, 4)."""
        return self._mesh.tets()

    @property
    def cells(self) -> dict[str, Any]:
        """Corners of the cells of each kind."""
        return dict(self._mesh.cells())

    def elements(self, shape: str) -> Any:
        """Elements for a star: `edge`, `triangle` and `tet` as above, others the cells of that kind."""
        if shape in ("edge", "triangle", "tet"):
            return {"edge": self._mesh.edges, "triangle": self._mesh.triangles, "tet": self._mesh.tets}[shape]()
        return self.cells.get(shape, np.zeros((0, _KINDS[shape]), dtype=np.uint32))

    @property
    def boundary(self) -> Any:
        """Whether each vertex lies on the boundary, shape (n,)."""
        return self._mesh.boundary()

    @property
    def groups(self) -> dict[str, Any]:
        """Named groups of a file: whether each vertex is a corner of one of its cells, shape (n,), by name."""
        return dict(self._mesh.groups())

    def dual(self) -> Dual:
        """Its cells as vertices, with volumes, and the faces between them."""
        mesh, *rest = self._mesh.dual()
        return Dual(Mesh._of(mesh), *rest)

    @property
    def bounds(self) -> Any:
        """Smallest and largest coordinates, shape (2, 3)."""
        return np.asarray(self._mesh.bounds())

    @property
    def fields(self) -> dict[str, Any]:
        """Fields over the points, by name: shape (n,) or (n, components)."""
        return {name: self.field(name) for name in self._mesh.field_names()}

    def field(self, name: str) -> Any:
        """One of them."""
        components, values = self._mesh.field(name)
        return values if components == 1 else values.reshape(-1, components)

    def with_field(self, name: str, values: Any) -> "Mesh":
        """The same mesh with a field over its points, shape (n,) or (n, components)."""
        values = _numbers(values, name)
        if values.ndim not in (1, 2):
            raise MeshError(f"{name} has shape (n,) or (n, components), not {values.shape}")
        components = 1 if values.ndim == 1 else values.shape[1]
        return Mesh._of(self._mesh.with_field(name, components, np.ascontiguousarray(values).reshape(-1)))

    def write(self, path: "str | os.PathLike[str]") -> None:
        """Writes it: VTU, PLY or OBJ by the ending of the name."""
        self._mesh.write(os.fspath(path))

    def to_meshio(self) -> Any:
        """As a mesh of meshio."""
        import meshio  # type: ignore[import-untyped]

        of = {ours: theirs for theirs, ours in _OF_MESHIO.items()}
        cells = [(of[kind], corners) for kind, corners in self.cells.items()]
        return meshio.Mesh(self.points, cells, point_data=self.fields)

    def to_pyvista(self, **fields: Any) -> Any:
        """As a grid of PyVista, with the fields over its points and those given."""
        import pyvista

        of = {ours: theirs for theirs, ours in _OF_VTK.items()}
        grid = pyvista.UnstructuredGrid({of[kind]: corners for kind, corners in self.cells.items()}, self.points)
        for name, values in {**self.fields, **fields}.items():
            grid.point_data[name] = values
        return grid

    def __reduce__(self) -> Any:
        return _unpickled, (self.points, self.cells, self.fields)

    def __repr__(self) -> str:
        cells = ", ".join(f"{len(corners)} {kind}" for kind, corners in self.cells.items())
        return f"<Mesh of {len(self)} vertices, {cells or 'no cells'}>"


def _unpickled(points: Any, cells: dict[str, Any], fields: dict[str, Any]) -> Mesh:
    mesh = Mesh(points, **cells)
    for name, values in fields.items():
        mesh = mesh.with_field(name, values)
    return mesh


def _numbers(values: Any, name: str) -> Any:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise MeshError(f"{name} are no numbers: {error}") from None
