"""Percolation: sites are open at random; each open cluster takes the smallest number in it, by a fixpoint."""

import meshweft


class Percolation(meshweft.Program):
    label = meshweft.shared(integer=True)  # -1 where it is closed
    edges = meshweft.edges()
    chance = meshweft.parameter(0.6)

    @meshweft.map
    def open(p, own):
        return own.replace(label=meshweft.select(p.uniform(7) < p.chance, p.vertex, -1))

    @meshweft.update(quiet=True)
    def join(p, own, around):
        def least(label, other):
            return meshweft.select((other.label >= 0) & (other.label < label), other.label, label)

        return own.replace(label=around.fold(own.label, least))

    def step(self, stages):
        stages.map(self.open)
        stages.fixpoint(self.join, 10_000)
