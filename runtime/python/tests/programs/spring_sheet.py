"""A sheet of masses, springs and dashpots that hangs from its rim."""

import meshweft
import numpy as np


class Sheet(meshweft.Program):
    position = meshweft.shared(3)
    velocity = meshweft.shared(3)
    edges = meshweft.edges(rest=1)
    stiffness = meshweft.parameter(500.0)
    damping = meshweft.parameter(0.5)
    gravity = meshweft.parameter((0.0, 0.0, -9.81))
    dt = meshweft.parameter(0.01)

    @meshweft.update
    def move(p, own, around):
        def force(other, edge):
            along = other.position - own.position
            length = along.length()
            spring = p.stiffness * (length - edge.rest) / length
            return along * spring + (other.velocity - own.velocity) * p.damping

        velocity = own.velocity + (around.sum(force) + p.gravity) * p.dt
        return own.replace(velocity=velocity, position=own.position + velocity * p.dt)

    def stars(self, mesh):
        x, y, z = (mesh.points[mesh.edges[:, 0]] - mesh.points[mesh.edges[:, 1]]).T
        return {"edges": (mesh.edges, {"rest": np.sqrt(x * x + y * y + z * z)})}

    def initial(self, mesh):
        return {"position": mesh.points}

    def fixed(self, mesh):
        return mesh.boundary

    def step(self, stages):
        stages.sweep(self.move)
