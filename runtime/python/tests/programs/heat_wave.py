"""A nonlinear heat wave, u_t = (u u_x)_x, by Crank-Nicolson with steps that grow as it cools."""

import meshweft
import numpy as np

WEIGHT = 0.5 * 100 * 100  # 1 / 2h², for 100 edges on a rod of length 1


class Rod(meshweft.Program):
    temperature, conductivity = meshweft.shared(), meshweft.shared()
    predicted = meshweft.private()
    rate, dt, time = meshweft.globals_(), meshweft.globals_(), meshweft.globals_()
    edges = meshweft.edges()

    @meshweft.map
    def conduct(p, own):
        return own.replace(conductivity=own.temperature)

    @meshweft.measure("maximum")
    def fastest(p, own, around):
        return WEIGHT * around.sum(lambda other: own.conductivity + other.conductivity)

    @meshweft.scalar
    def choose(p, share):
        dt = share / p.globals.rate
        return p.globals.replace(dt=dt, time=p.globals.time + dt)

    @meshweft.update
    def predict(p, own, around):
        flow = around.sum(lambda other: (own.conductivity + other.conductivity) * (other.temperature - own.temperature))
        temperature = own.temperature + 0.5 * WEIGHT * p.globals.dt * flow
        return own.replace(temperature=temperature, predicted=temperature)

    @meshweft.update
    def relax(p, own, around):
        def flow(other):
            conductivity = own.conductivity + other.conductivity
            return conductivity * other.temperature, conductivity

        flow, weight = around.sum(flow)
        half = 0.5 * WEIGHT * p.globals.dt
        return own.replace(temperature=(own.predicted + half * flow) / (1 + half * weight))

    def initial(self, mesh):
        return {"temperature": np.maximum(1 - 25 * (mesh.points[:, 0] - 0.5) ** 2, 0)}

    def step(self, stages):
        stages.map(self.conduct)
        stages.reduce(self.fastest, "rate")
        stages.scalar(self.choose, share=4)
        stages.jacobi(self.predict)
        stages.sweep(self.relax, 10)
        stages.sweep_backward(self.relax, 10)
