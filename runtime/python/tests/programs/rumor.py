"""How many steps a rumor takes to everyone, in integers: all at once, by a fixpoint."""

import meshweft

NEVER = 2**30


class Rumor(meshweft.Program):
    steps = meshweft.shared(integer=True)
    edges = meshweft.edges()

    @meshweft.update(quiet=True)
    def tell(p, own, around):
        return own.replace(steps=around.fold(own.steps, lambda least, other: meshweft.minimum(least, other.steps + 1)))

    def initial(self, mesh):
        return {"steps": [0] + [NEVER] * (len(mesh) - 1)}

    def step(self, stages):
        stages.fixpoint(self.tell, 1000)
