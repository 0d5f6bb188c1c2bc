"""Cloth of springs by vertex block descent: each vertex goes to the minimum of its own quadratic model."""

import meshweft
import numpy as np


class Cloth(meshweft.Program):
    position = meshweft.shared(3)
    velocity, before, target = (meshweft.private(3) for _ in range(3))
    edges = meshweft.edges(rest=1)
    mass = meshweft.parameter(0.01)
    stiffness = meshweft.parameter(200.0)
    gravity = meshweft.parameter((0.0, 0.0, -9.81))
    dt = meshweft.parameter(1 / 60)

    @meshweft.map
    def predict(p, own):
        target = own.position + own.velocity * p.dt + p.gravity * (p.dt * p.dt)
        return own.replace(before=own.position, target=target, position=target)

    @meshweft.update
    def descend(p, own, around):
        def spring(other, edge):
            along = own.position - other.position
            length = along.length()
            unit = along / length
            squeezed = meshweft.minimum(edge.rest / length, 1.0)  # else the model may have no minimum
            nn = meshweft.outer(unit, unit)
            hessian = (nn + (meshweft.identity(3) - nn) * (1.0 - squeezed)) * p.stiffness
            return unit * (p.stiffness * (edge.rest - length)), hessian

        inertia = p.mass / (p.dt * p.dt)
        force, hessian = around.sum(spring)
        force = force - (own.position - own.target) * inertia
        own.position += (hessian + meshweft.identity(3) * inertia).solve(force)
        return own

    @meshweft.map
    def finish(p, own):
        return own.replace(velocity=(own.position - own.before) / p.dt)

    def stars(self, mesh):
        x, y, z = (mesh.points[mesh.edges[:, 0]] - mesh.points[mesh.edges[:, 1]]).T
        return {"edges": (mesh.edges, {"rest": np.sqrt(x * x + y * y + z * z)})}

    def initial(self, mesh):
        return {"position": mesh.points}

    def fixed(self, mesh):
        return mesh.boundary & (mesh.points[:, 1] > 0.5)

    def step(self, stages):
        stages.map(self.predict)
        stages.sweep(self.descend, 5)
        stages.map(self.finish)
