"""PageRank of a graph without geometry, until its largest change is small."""

import meshweft
import numpy as np

LINKS = np.array([(v, (v * v + 3 * k + 1) % 50) for v in range(50) for k in range(1 + v % 3)])
LINKS = LINKS[LINKS[:, 0] != LINKS[:, 1]]


class PageRank(meshweft.Program):
    share = meshweft.shared()
    rank, change, degree = meshweft.private(), meshweft.private(), meshweft.private()
    change_of_all = meshweft.globals_(1.0)
    links = meshweft.directed_edges()

    @meshweft.map
    def divide(p, own):
        return own.replace(share=own.rank / own.degree)

    @meshweft.update
    def gather(p, own, around, jump):
        rank = jump + 0.85 * around.sum(lambda other: other.share)
        return own.replace(rank=rank, change=abs(rank - own.rank))

    @meshweft.measure("sum")
    def changed(p, own, around):
        return own.change

    @meshweft.test
    def settled(p):
        return p.globals.change_of_all < 1e-6

    def stars(self, mesh):
        return {"links": LINKS}

    def initial(self, mesh):
        degree = np.bincount(LINKS[:, 0], minlength=len(mesh))
        return {"rank": 1 / len(mesh), "change": 1, "degree": np.maximum(degree, 1)}

    def step(self, stages):
        with stages.until(self.settled, 200):
            stages.map(self.divide)
            stages.jacobi(self.gather, jump=0.15 / 50)
            stages.reduce(self.changed, into="change_of_all")
