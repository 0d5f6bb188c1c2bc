"""What programs in Python cost: start, calls, and updates beside the same kernel compiled and in Taichi. `python docs/perf/python.py`, with nothing
else running; Taichi is measured if it is installed."""

import statistics
import subprocess
import sys
import tempfile
import time

import meshweft
import numpy as np

MESH = "torus:400x300"


class Heat(meshweft.Program):
    """Implicit Euler by Gauss-Seidel, as the example `heat` has it."""

    temperature = meshweft.shared()
    before, mass = meshweft.private(), meshweft.private()
    edges = meshweft.edges(weight=1)
    spread = meshweft.parameter(1.0)

    @meshweft.map
    def remember(p, own):
        return own.replace(before=own.temperature)

    @meshweft.update
    def relax(p, own, around):
        flow, weight = around.sum(lambda other, edge: (edge.weight * other.temperature, edge.weight))
        own.temperature = (own.mass * own.before + p.spread * flow) / (own.mass + p.spread * weight)
        return own

    def stars(self, mesh):
        return {"edges": (None, {"weight": 1.0})}

    def initial(self, mesh):
        return {"temperature": 300 + 100 * (mesh.points[:, 0] > 0), "mass": 1.0}

    def step(self, stages):
        stages.map(self.remember)
        stages.sweep(self.relax, 10)


class Chain(meshweft.Program):
    x = meshweft.shared()
    edges = meshweft.edges()
    rate = meshweft.parameter(0.1)

    @meshweft.update
    def relax(p, own, around):
        return own.replace(x=own.x + p.rate * around.sum(lambda other: other.x - own.x))

    def step(self, stages):
        stages.sweep(self.relax)


def median(trial, trials=5):
    """The median and the least of some trials in seconds."""
    times = sorted(trial() for _ in range(trials))
    return statistics.median(times), times[0]


def timed(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def first_step():
    script = "import time; begun = time.perf_counter()\n" + source() + (
        'sim = meshweft.Simulation(meshweft.Mesh.generate("torus:40x30"), Heat()); sim.step()\nprint(time.perf_counter() - begun)'
    )
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(script)
        file.flush()
        return float(subprocess.run([sys.executable, file.name], check=True, capture_output=True, text=True).stdout)


def source():
    import inspect

    return "import meshweft\nimport numpy as np\n" + inspect.getsource(Heat)


def calls(program_steps=100_000):
    sim = meshweft.Simulation(meshweft.Mesh.generate("chain:3"), Chain(), threads=1)
    sim.step(1000)
    inside = timed(lambda: sim.step(program_steps)) / program_steps

    def loop():
        for _ in range(program_steps):
            sim.step()

    return timed(loop) / program_steps - inside, inside


def update(sim, steps=10, rounds=10):
    """Seconds an update."""
    sim.step(2)
    return timed(lambda: (sim.step(steps), sim.wait())) / (steps * rounds * len(sim.mesh))


def in_taichi(threads):
    import taichi as ti

    ti.init(arch=ti.cpu, cpu_max_num_threads=threads, log_level=ti.ERROR, default_fp=ti.f32)
    mesh = meshweft.Mesh.generate(MESH)
    n, pairs = len(mesh), np.concatenate([mesh.edges, mesh.edges[:, ::-1]])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    offsets = np.searchsorted(pairs[:, 0], np.arange(n + 1))
    # A coloring, greedy, and the vertices color by color.
    colors = np.full(n, -1)
    for v in range(n):
        taken = set(colors[pairs[offsets[v] : offsets[v + 1], 1]])
        colors[v] = next(c for c in range(n) if c not in taken)
    order, starts = np.argsort(colors, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(colors))])
    field = lambda values, kind: (of := ti.field(kind, len(values)), of.from_numpy(values.astype(np.int32 if kind == ti.i32 else np.float32)))[0]
    first, others, by_color = field(offsets, ti.i32), field(pairs[:, 1], ti.i32), field(order, ti.i32)
    weights, mass = field(np.ones(len(pairs)), ti.f32), field(np.ones(n), ti.f32)
    temperature = field(300 + 100 * (mesh.points[:, 0] > 0), ti.f32)
    before = field(np.zeros(n), ti.f32)

    @ti.kernel
    def remember():
        for v in temperature:
            before[v] = temperature[v]

    @ti.kernel
    def relax(begin: ti.i32, end: ti.i32):
        for k in range(begin, end):
            v = by_color[k]
            flow, weight = 0.0, 0.0
            for e in range(first[v], first[v + 1]):
                flow += weights[e] * temperature[others[e]]
                weight += weights[e]
            temperature[v] = (mass[v] * before[v] + flow) / (mass[v] + weight)

    def step():
        remember()
        for _ in range(10):
            for begin, end in zip(starts, starts[1:]):
                relax(int(begin), int(end))

    step()
    ti.sync()

    def trial(steps=10):
        begun = time.perf_counter()
        for _ in range(steps):
            step()
        ti.sync()
        return (time.perf_counter() - begun) / (steps * 10 * n)

    return median(trial)


def main():
    show = lambda what, times, scale, unit: print(f"{what:58} {times[0] * scale:8.2f}  (least {times[1] * scale:.2f}) {unit}")
    show("import to the end of the first step, a new process", median(first_step), 1, "s")
    over, inside = zip(*(calls() for _ in range(5)))
    show("one step of 3 vertices, inside of step(100_000)", (statistics.median(inside), min(inside)), 1e6, "µs")
    show("what a call of step() from Python costs more", (statistics.median(over), min(over)), 1e6, "µs")
    for threads in (1, 2):
        written = lambda order: meshweft.Simulation(meshweft.Mesh.generate(MESH), Heat(), threads=threads, order=order)
        compiled = lambda order: meshweft.examples.heat(MESH, threads=threads, order=order)
        for order in ("blocked", "color"):
            for name, build in (("compiled example", compiled), ("Python", written)):
                sim = build(order)
                show(f"heat on {MESH}, {name}, {order}, threads: {threads}", median(lambda: update(sim)), 1e9, "ns an update")
    for threads in (1, 2):
        try:
            show(f"heat on {MESH}, Taichi, colored, threads: {threads}", in_taichi(threads), 1e9, "ns an update")
        except ImportError:
            print("Taichi is not installed")


if __name__ == "__main__":
    main()
