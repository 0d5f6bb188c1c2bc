"""A linear elastic plate of triangles that is pulled: stiffness as data of triangles by corner, explicit steps."""

import meshweft
import numpy as np

FIRST, SECOND = 1.0, 0.5  # Lamé's parameters, N/m


class Plate(meshweft.Program):
    displacement = meshweft.shared(2)
    velocity = meshweft.private(2)
    triangles = meshweft.triangles(area=1, own=(2, 2), next=(2, 2), last=(2, 2))
    dt = meshweft.parameter(0.02)
    pull = meshweft.parameter((0.1, 0.0))

    @meshweft.update
    def kick(p, own, around):
        force, mass = around.sum(
            lambda b, c, of: (
                of.own @ own.displacement + of.next @ b.displacement + of.last @ c.displacement,
                of.area,
            )
        )
        own.velocity = (own.velocity + (p.pull - force / mass) * p.dt) * 0.99
        return own

    @meshweft.map
    def drift(p, own):
        own.displacement += own.velocity * p.dt
        return own

    def stars(self, mesh):
        corners = mesh.triangles
        turned = np.stack([np.roll(corners, -k, axis=1) for k in range(3)], axis=1)  # triangle, corner, vertices from it on
        a, b, c = np.moveaxis(mesh.points[turned][..., :2], 2, 0)
        cross = lambda u, v: u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
        twice = cross(b - a, c - a)

        def gradient(u, v):  # of the function that is 1 at the corner across of the edge from u to v
            return np.stack([u[..., 1] - v[..., 1], v[..., 0] - u[..., 0]], axis=-1) / twice[..., None]

        def stiffness(g, h):
            ones = np.eye(2) * (g[..., 0] * h[..., 0] + g[..., 1] * h[..., 1])[..., None, None]
            gh, hg = g[..., :, None] * h[..., None, :], h[..., :, None] * g[..., None, :]
            return (FIRST * gh + SECOND * (hg + ones)) * (0.5 * twice)[..., None, None]

        at_a, at_b, at_c = gradient(b, c), gradient(c, a), gradient(a, b)
        data = {"own": stiffness(at_a, at_a), "next": stiffness(at_a, at_b), "last": stiffness(at_a, at_c)}
        return {"triangles": (corners, {"area": twice / 6, **data})}

    def fixed(self, mesh):
        return mesh.points[:, 0] <= 0

    def step(self, stages):
        stages.jacobi(self.kick)
        stages.map(self.drift)
