"""Heat on a surface by finite elements, explicitly: cotangents as data of triangles by corner, lumped areas."""

import meshweft
import numpy as np


class Heat(meshweft.Program):
    temperature = meshweft.shared()
    triangles = meshweft.triangles(area=1, next=1, last=1)
    diffusivity = meshweft.parameter(1.0)
    dt = meshweft.parameter(1e-3)

    @meshweft.update
    def conduct(p, own, around):
        flow, area = around.sum(
            lambda b, c, of: (
                of.next * (b.temperature - own.temperature) + of.last * (c.temperature - own.temperature),
                of.area,
            )
        )
        own.temperature += p.dt * p.diffusivity * flow / area
        return own

    @meshweft.measure("maximum", "hottest", "K")
    def hottest(p, own, around):
        return own.temperature

    def stars(self, mesh):
        corners = mesh.triangles
        turned = np.stack([np.roll(corners, -k, axis=1) for k in range(3)], axis=1)  # triangle, corner, vertices from it on
        a, b, c = np.moveaxis(mesh.points[turned], 2, 0)
        dot = lambda u, v: u[..., 0] * v[..., 0] + u[..., 1] * v[..., 1] + u[..., 2] * v[..., 2]
        normal = np.cross(b - a, c - a)
        twice = np.sqrt(dot(normal, normal))
        half_cotangent = lambda at, u, v: 0.5 * dot(u - at, v - at) / twice
        return {"triangles": (corners, {"area": twice / 6, "next": half_cotangent(c, a, b), "last": half_cotangent(b, a, c)})}

    def initial(self, mesh):
        return {"temperature": np.where(mesh.points[:, 0] > 0, 1, 0)}

    def step(self, stages):
        stages.jacobi(self.conduct)
