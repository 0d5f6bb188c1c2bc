"""Conjugate gradients for (1 + L) x = b, with L the Laplacian of the graph, until the residual is small."""

import meshweft
import numpy as np


class Poisson(meshweft.Program):
    p = meshweft.shared()
    x, r, q = meshweft.shared(), meshweft.shared(), meshweft.shared()
    rr, pq, old, alpha, beta = (meshweft.globals_() for _ in range(5))
    edges = meshweft.edges()

    @meshweft.update
    def multiply(p, own, around):
        return own.replace(q=own.p + around.sum(lambda other: own.p - other.p))

    @meshweft.measure("sum")
    def residual(p, own, around):
        return own.r * own.r

    @meshweft.measure("sum")
    def curvature(p, own, around):
        return own.p * own.q

    @meshweft.scalar
    def choose(p):
        return p.globals.replace(alpha=p.globals.rr / p.globals.pq, old=p.globals.rr)

    @meshweft.map
    def descend(p, own):
        return own.replace(x=own.x + own.p * p.globals.alpha, r=own.r - own.q * p.globals.alpha)

    @meshweft.scalar
    def turn(p):
        return p.globals.replace(beta=p.globals.rr / p.globals.old)

    @meshweft.map
    def direct(p, own):
        return own.replace(p=own.r + own.p * p.globals.beta)

    @meshweft.test
    def arrived(p):
        return p.globals.rr < 1e-8

    def initial(self, mesh):
        b = np.arange(len(mesh)) % 7 - 3.0
        return {"r": b, "p": b}

    def step(self, stages):
        stages.reduce(self.residual, "rr")
        with stages.until(self.arrived, 200):
            stages.jacobi(self.multiply)  # it changes nothing that neighbors read
            stages.reduce(self.curvature, "pq")
            stages.scalar(self.choose)
            stages.map(self.descend)
            stages.reduce(self.residual, "rr")
            stages.scalar(self.turn)
            stages.map(self.direct)
