"""Free fall, with steps that move nothing by more than 5 cm."""

import meshweft


class Fall(meshweft.Program):
    height, speed = meshweft.private(), meshweft.private()
    dt = meshweft.parameter(0.1)

    @meshweft.map
    def move(p, own):
        own.speed += p.dt
        own.height -= own.speed * p.dt
        return own

    @meshweft.measure("maximum", "fastest", "m/s")
    def fastest(p, own, around):
        return own.speed

    def initial(self, mesh):
        return {"height": 100.0, "speed": 1.0}

    def step(self, stages):
        stages.map(self.move)


def adapt(sim):
    """What the application does before each step."""
    sim.program.dt = sim.program.time_step = 0.05 / sim.metrics["fastest"].value
