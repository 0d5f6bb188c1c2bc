"""The rod of "Write a program": the steady temperature of a heated rod, both ends held at 0."""

import meshweft


class Rod(meshweft.Program):
    temperature = meshweft.shared()
    change = meshweft.private()
    edges = meshweft.edges(weight=1)
    source = meshweft.parameter(8.0)
    length = meshweft.parameter(1 / 20)

    @meshweft.update
    def relax(p, own, around):
        flow, weight = around.sum(lambda other, edge: (edge.weight * other.temperature, edge.weight))
        temperature = (p.source * p.length + flow) / weight
        return own.replace(temperature=temperature, change=abs(temperature - own.temperature))

    @meshweft.measure("maximum", "largest change", "K")
    def largest_change(p, own, around):
        return own.change

    def stars(self, mesh):
        ends = mesh.points[mesh.edges, 0]
        return {"edges": (mesh.edges, {"weight": 1 / abs(ends[:, 0] - ends[:, 1])})}

    def fixed(self, mesh):
        x = mesh.points[:, 0]
        return (x <= 0) | (x >= 1)

    def step(self, stages):
        stages.sweep(self.relax, 20)
