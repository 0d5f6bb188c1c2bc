"""The rod of the README: temperatures even out."""

import meshweft


class Rod(meshweft.Program):
    temperature = meshweft.shared()
    edges = meshweft.edges()

    @meshweft.update
    def relax(p, own, around):
        own.temperature += 0.1 * around.sum(lambda other: other.temperature - own.temperature)
        return own

    def initial(self, mesh):
        return {"temperature": mesh.points[:, 0]}

    def step(self, stages):
        stages.sweep(self.relax, 4)
