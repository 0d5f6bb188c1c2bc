"""Physics on meshes: write a vertex update once, and it runs on every core and on GPUs, in any order, with the same bits every time.

>>> import meshweft
>>> class Heat(meshweft.Program):
...     temperature = meshweft.shared()
...     edges = meshweft.edges()
...     rate = meshweft.parameter(0.5)
...
...     @meshweft.update
...     def relax(p, own, around):
...         total, count = around.sum(lambda other: (other.temperature, 1.0))
...         return own.replace(temperature=own.temperature + p.rate * (total / count - own.temperature))
...
...     def initial(self, mesh):
...         return {"temperature": mesh.points[:, 2]}
...
...     def step(self, stages):
...         stages.sweep(self.relax, 3)
>>> sim = meshweft.Simulation(meshweft.Mesh.generate("sphere:3"), Heat(rate=0.9))
>>> sim.step(10)
>>> sim["temperature"].shape == (len(sim.mesh),)
True
"""

from . import _levels

_levels.load()

from ._meshweft import DivergedError, Error, MeshError, ProgramError, __version__
from ._mesh import Dual, Laplacian, Mesh, Walls
from ._program import (
    Program,
    Stages,
    directed_edges,
    edges,
    globals_,
    hexes,
    map,
    measure,
    parameter,
    private,
    pyramids,
    quads,
    scalar,
    shared,
    test,
    tets,
    triangles,
    update,
    vertices,
    wedges,
)
from ._simulation import ConvergenceWarning, Hosts, Loop, Metric, Simulation, adapters, work
from ._symbol import (
    acos,
    atan2,
    clip,
    cos,
    exp,
    floor,
    identity,
    integer,
    log,
    matrix,
    maximum,
    minimum,
    outer,
    real,
    select,
    sign,
    sin,
    sqrt,
    tanh,
    vector,
)
from . import examples

__all__ = [name for name in dir() if not name.startswith("_")] + ["__version__"]
