"""Upwind advection between the cells of a mesh: a wind along x."""

import meshweft


class Advection(meshweft.Program):
    density = meshweft.shared()
    volume = meshweft.private()
    faces = meshweft.edges(flow=1)  # how much flows out of this cell a second
    dt = meshweft.parameter(0.002)

    def __init__(self, dual, **parameters):
        super().__init__(**parameters)
        self.dual = dual

    @meshweft.update
    def transport(p, own, around):
        out = around.sum(lambda other, face: face.flow * meshweft.select(face.flow > 0, own.density, other.density))
        own.density -= p.dt * out / own.volume
        return own

    def stars(self, mesh):
        flow = self.dual.areas * self.dual.normals[:, 0]
        # Out of the first cell, into the second.
        return {"faces": (self.dual.faces, {"flow": [(out, -out) for out in flow]})}

    def initial(self, mesh):
        return {"density": mesh.points[:, 0] < 0.5, "volume": self.dual.volumes}

    def step(self, stages):
        stages.jacobi(self.transport)
