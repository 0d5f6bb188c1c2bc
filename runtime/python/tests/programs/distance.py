"""Shortest ways along edges, by their lengths: a front runs over the mesh, and what is at rest costs nothing."""

import meshweft
import numpy as np


class Distance(meshweft.Program):
    distance = meshweft.shared()
    edges = meshweft.edges(length=1)

    @meshweft.update(quiet=True)
    def reach(p, own, around):
        own.distance = around.fold(
            own.distance, lambda least, other, edge: meshweft.minimum(least, other.distance + edge.length)
        )
        return own

    @meshweft.measure("sum", "total")
    def total(p, own, around):
        return own.distance

    def stars(self, mesh):
        x, y, z = (mesh.points[mesh.edges[:, 0]] - mesh.points[mesh.edges[:, 1]]).T
        return {"edges": (mesh.edges, {"length": np.sqrt(x * x + y * y + z * z)})}

    def initial(self, mesh):
        return {"distance": np.where(np.arange(len(mesh)) == 0, 0, 1000)}

    def step(self, stages):
        stages.sweep(self.reach)
