"""What programs in Python cost: start, calls, and updates beside the same kernel compiled, in Taichi and in Newton. `python docs/perf/python.py`, with nothing
else running; Taichi and Newton are measured if they are installed."""

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


class Cloth(meshweft.Program):
    """A cloth of Saint Venant and Kirchhoff by vertex block descent: each vertex goes to the minimum of its own quadratic model."""

    position = meshweft.shared(3)
    velocity, before, target = (meshweft.private(3) for _ in range(3))
    triangles = meshweft.triangles(rest=4, area=1)
    mass, dt = meshweft.parameter(0.001), meshweft.parameter(1 / 600)
    mu, bulk = meshweft.parameter(1000.0), meshweft.parameter(1000.0)
    gravity = meshweft.parameter((0.0, 0.0, -9.81))

    @meshweft.map
    def predict(p, own):
        target = own.position + own.velocity * p.dt + p.gravity * (p.dt * p.dt)
        return own.replace(before=own.position, target=target, position=target)

    @meshweft.update
    def descend(p, own, around):
        def triangle(b, c, its):
            left, right = b.position - own.position, c.position - own.position
            # The deformation gradient by columns, strain, stress, and how the gradient follows the vertex.
            f, g = left * its.rest[0] + right * its.rest[2], left * its.rest[1] + right * its.rest[3]
            ff, gg, fg = (f.dot(f) - 1.0) * 0.5, (g.dot(g) - 1.0) * 0.5, f.dot(g) * 0.5
            spread = p.bulk * (ff + gg)
            s, t, st = p.mu * 2.0 * ff + spread, p.mu * 2.0 * gg + spread, p.mu * 2.0 * fg
            x, y = its.rest[0] + its.rest[2], its.rest[1] + its.rest[3]
            along, across = s * x + st * y, st * x + t * y
            q = f * x + g * y
            stiff = meshweft.maximum(x * along + y * across, 0.0)
            stretch = (meshweft.outer(f, f) + meshweft.outer(g, g)) * (p.mu * (x * x + y * y))
            hessian = meshweft.identity(3) * stiff + meshweft.outer(q, q) * (p.mu + p.bulk) + stretch
            return (f * along + g * across) * its.area, hessian * its.area

        inertia = p.mass / (p.dt * p.dt)
        force, hessian = around.sum(triangle)
        force = force - (own.position - own.target) * inertia
        own.position += (hessian + meshweft.identity(3) * inertia).solve(force)
        return own

    @meshweft.map
    def finish(p, own):
        return own.replace(velocity=(own.position - own.before) / p.dt)

    def stars(self, mesh):
        corners = mesh.points[mesh.cells["triangle"], :2]
        turned = [np.roll(corners, -k, axis=1) for k in range(3)]
        edges = np.stack([np.stack([x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]], axis=-1) for x in turned], axis=1)
        area = np.abs(np.linalg.det(edges)) / 2
        return {"triangles": (mesh.cells["triangle"], {"rest": np.linalg.inv(edges).reshape(-1, 3, 4), "area": area})}

    def initial(self, mesh):
        return {"position": mesh.points}

    def fixed(self, mesh):
        return mesh.points[:, 1] == mesh.points[:, 1].max()

    def step(self, stages):
        stages.map(self.predict)
        stages.sweep(self.descend, 10)
        stages.map(self.finish)


class Chain(meshweft.Program):
    x = meshweft.shared()
    edges = meshweft.edges()
    rate = meshweft.parameter(0.1)

    @meshweft.update
    def relax(p, own, around):
        return own.replace(x=own.x + p.rate * around.sum(lambda other: other.x - own.x))

    def step(self, stages):
        stages.sweep(self.relax)


def grid(size):
    """A square sheet of so many vertices a side, 2 cm apart, as Newton's."""
    x, y = np.meshgrid(np.arange(size) * 0.02, np.arange(size) * 0.02)
    v = np.arange(size * size).reshape(size, size)
    a, b, c, d = (of.ravel() for of in (v[:-1, :-1], v[:-1, 1:], v[1:, :-1], v[1:, 1:]))
    points = np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], axis=1)
    return meshweft.Mesh(points, triangle=np.concatenate([np.stack([a, b, d], 1), np.stack([a, d, c], 1)]))


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


def in_newton(size, iterations=10):
    import newton
    import warp as wp

    wp.config.quiet = True
    wp.set_device("cpu")
    build = newton.ModelBuilder()
    build.add_cloth_grid(
        pos=wp.vec3(0, 0, 4), rot=wp.quat_identity(), vel=wp.vec3(0, 0, 0), dim_x=size - 1, dim_y=size - 1, cell_x=0.02, cell_y=0.02,
        mass=0.001, edge_ke=0.0, edge_kd=0.0, particle_radius=0.005, tri_ke=1e3, tri_ka=1e3, tri_kd=0.0, fix_top=True,
    )
    build.color()
    model = build.finalize(device="cpu")
    solver = newton.solvers.SolverVBD(model=model, iterations=iterations, particle_enable_self_contact=False, particle_enable_tile_solve=False)
    states, control = [model.state(), model.state()], model.control()

    def step():
        states[0].clear_forces()
        solver.step(states[0], states[1], control, None, 1 / 600)
        states.reverse()

    step(), step()

    def trial(steps=5):
        return timed(lambda: [step() for _ in range(steps)]) / (steps * iterations * model.particle_count)

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
        sim = meshweft.Simulation(grid(200), Cloth(), threads=threads)
        show(f"cloth of 200 x 200, Python, threads: {threads}", median(lambda: update(sim)), 1e9, "ns an update")
    try:
        show("cloth of 200 x 200, Newton, one thread", in_newton(200), 1e9, "ns an update")
    except ImportError:
        print("Newton is not installed")
    for threads in (1, 2):
        try:
            show(f"heat on {MESH}, Taichi, colored, threads: {threads}", in_taichi(threads), 1e9, "ns an update")
        except ImportError:
            print("Taichi is not installed")


if __name__ == "__main__":
    main()
