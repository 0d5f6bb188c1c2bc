"""Temperatures of a plate whose rim is held."""

import meshweft


class Plate(meshweft.Program):
    temperature = meshweft.shared()
    edges = meshweft.edges()

    @meshweft.update
    def relax(p, own, around):
        total, count = around.sum(lambda other: (other.temperature, 1.0))
        return own.replace(temperature=total / count)

    def initial(self, mesh):
        return {"temperature": mesh.points[:, 0] * mesh.points[:, 1]}

    def fixed(self, mesh):
        return mesh.boundary

    def step(self, stages):
        stages.sweep(self.relax, 5)
