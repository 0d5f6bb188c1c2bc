"""Sums over elements of four to eight corners, every corner with a weight of its own."""

import meshweft
import numpy as np


def weigh(values):
    """The `k`-th value has the weight `3^k`."""
    total = 0.0
    for x in reversed(values):
        total = total * 3 + x
    return total


class Corners(meshweft.Program):
    x = meshweft.shared()
    of = meshweft.private(4)
    quads = meshweft.quads(weight=1)
    pyramids = meshweft.pyramids(weight=1)
    wedges = meshweft.wedges(weight=1)
    hexes = meshweft.hexes(weight=1)

    @meshweft.update
    def add(p, own, around):
        weighed = lambda *of: of[-1].weight * weigh([other.x for other in of[:-1]])
        quads = around.quads.sum(lambda a, b, c, of: of.weight * (a.x + 10 * b.x + 100 * c.x))
        pyramids, wedges, hexes = around.pyramids.sum(weighed), around.wedges.sum(weighed), around.hexes.sum(weighed)
        return own.replace(of=meshweft.vector(quads, pyramids, wedges, hexes), x=own.x * 0.5 + quads / 4096)

    def stars(self, mesh):
        some = lambda corners: mesh.cells["hex"][:, :corners]  # the first corners of each hex, whatever shape they have
        weighed = lambda of: (of, {"weight": of % 5 + np.arange(of.shape[1])})
        return {name: weighed(some(k)) for name, k in (("quads", 4), ("pyramids", 5), ("wedges", 6), ("hexes", 8))}

    def initial(self, mesh):
        return {"x": np.arange(len(mesh)) % 11}

    def step(self, stages):
        stages.sweep(self.add)
