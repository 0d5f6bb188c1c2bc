"""Walkers that toss coins."""

import meshweft


class Walk(meshweft.Program):
    position, heads = meshweft.private(), meshweft.private()

    @meshweft.map
    def wander(p, own):
        own.position += p.normal(2)
        own.heads += meshweft.select(p.uniform(1) < 0.5, 1.0, 0.0)
        return own

    def step(self, stages):
        stages.map(self.wander)
