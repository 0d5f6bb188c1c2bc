"""The Ising model by Metropolis, in integers."""

import meshweft


class Ising(meshweft.Program):
    spin = meshweft.shared(integer=True)
    energy, total = meshweft.globals_(), meshweft.globals_()
    edges = meshweft.edges()

    @meshweft.update
    def metropolis(p, own, around, beta):
        field = around.sum(lambda other: other.spin)
        flips = p.uniform(1) < meshweft.exp(-beta * (2.0 * meshweft.real(own.spin * field)))
        return own.replace(spin=meshweft.select(flips, -own.spin, own.spin))

    @meshweft.measure("sum", "energy", "J")
    def energy_of(p, own, around):
        return meshweft.real(own.spin * around.sum(lambda other: other.spin)) * -0.5

    @meshweft.scalar
    def gather(p):
        return p.globals.replace(total=p.globals.total + p.globals.energy)

    def initial(self, mesh):
        return {"spin": 1}

    def step(self, stages):
        stages.sweep(self.metropolis, beta=0.4)
        stages.reduce(self.energy_of, into="energy")
        stages.scalar(self.gather)
