"""Gray-Scott reaction and diffusion, with noise."""

import meshweft
import numpy as np

F, K, DU, DV = 0.037, 0.06, 0.08, 0.04


class GrayScott(meshweft.Program):
    u, v = meshweft.shared(), meshweft.shared()
    edges = meshweft.edges()

    @meshweft.update
    def react(p, own, around, noise):
        lu, lv = around.sum(lambda other: (other.u - own.u, other.v - own.v))
        reaction = own.u * own.v * own.v
        return own.replace(
            u=own.u + DU * lu - reaction + F * (1 - own.u) + noise * p.normal(1),
            v=own.v + DV * lv + reaction - (F + K) * own.v + noise * p.normal(2),
        )

    def initial(self, mesh):
        spot = np.arange(len(mesh)) % 9 == 0
        return {"u": np.where(spot, 0.5, 1), "v": np.where(spot, 0.25, 0)}

    def step(self, stages):
        stages.jacobi(self.react, noise=1e-3)
