"""Waves on a membrane with a held rim, by leapfrog."""

import meshweft
import numpy as np


class Wave(meshweft.Program):
    height = meshweft.shared()
    speed = meshweft.private()
    edges = meshweft.edges()
    stiffness = meshweft.parameter(0.2)
    time_step = 0.5

    @meshweft.update
    def kick(p, own, around, dt):
        own.speed += dt * p.stiffness * around.sum(lambda other: other.height - own.height)
        return own

    @meshweft.map
    def drift(p, own, dt):
        own.height += dt * own.speed
        return own

    @meshweft.measure("sum", "energy", "J")
    def energy(p, own, around):
        stretch = around.sum(lambda other: (other.height - own.height) ** 2)
        return 0.5 * own.speed**2 + 0.25 * p.stiffness * stretch

    def initial(self, mesh):
        x, y = mesh.points[:, 0] - 0.5, mesh.points[:, 1] - 0.5
        return {"height": np.maximum(0.1 - x * x - y * y, 0)}

    def fixed(self, mesh):
        return mesh.boundary

    def step(self, stages):
        stages.jacobi(self.kick, dt=self.time_step)
        stages.map(self.drift, dt=self.time_step)
