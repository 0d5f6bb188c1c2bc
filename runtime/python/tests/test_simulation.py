"""A simulation in the hands of its owner: parameters, threads, interrupts, states that are kept, runs that fail."""

import doctest
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import meshweft
import numpy as np
import pytest


class Heat(meshweft.Program):
    temperature = meshweft.shared()
    edges = meshweft.edges()
    rate = meshweft.parameter(0.1)
    wind = meshweft.parameter((0.0, 0.0, 0.0))
    largest = meshweft.globals_()

    @meshweft.update
    def relax(p, own, around):
        own.temperature += p.rate * around.sum(lambda other: other.temperature - own.temperature) + p.wind.x
        return own

    @meshweft.measure("maximum", "hottest", "K")
    def hottest(p, own, around):
        return own.temperature

    def initial(self, mesh):
        return {"temperature": mesh.points[:, 0]}

    def step(self, stages):
        stages.sweep(self.relax, 3)
        stages.reduce(self.hottest, "largest")


def heat(mesh="sheet:20", program=None, **options):
    return meshweft.Simulation(meshweft.Mesh.generate(mesh), program or Heat(), **options)


def test_parameters_change_between_steps():
    changed, once = heat(), heat(program=Heat(rate=0.2))
    changed.step(2)
    before = changed.digest()
    changed.program.rate = 0.0
    changed.step()
    assert changed.digest() == before
    changed.restore(heat().save())
    changed.program.rate = 0.2
    changed.step(2), once.step(2)
    assert changed.digest() == once.digest()
    changed.program.wind = np.zeros(3)
    changed.step()
    before = changed["temperature"]
    changed.program.rate = 0
    changed.program.wind[0] = 0.5  # in place
    changed.step()
    assert np.allclose(changed["temperature"], before + 1.5)
    changed.program.time_step = 0.25
    time_before = changed.time
    changed.step()
    assert changed.time == time_before + 0.25
    changed.program.rate = float("nan")
    with pytest.raises(meshweft.ProgramError, match="parameter rate is nan"):
        changed.step()
    changed.program.rate = "warm"
    with pytest.raises(meshweft.ProgramError, match="parameter rate is made of numbers"):
        changed.step()


def test_loops_tell_how_often_they_went_round():
    class Halves(meshweft.Program):
        x = meshweft.shared()
        largest = meshweft.globals_()

        @meshweft.map
        def halve(p, own):
            return own.replace(x=own.x * 0.5)

        @meshweft.measure("maximum")
        def most(p, own, around):
            return own.x

        @meshweft.test
        def small(p):
            return p.globals.largest < 0.2

        def initial(self, mesh):
            return {"x": 1.0}

        def step(self, stages):
            stages.reduce(self.most, "largest")
            with stages.until(self.small, 2):
                stages.map(self.halve)
                stages.reduce(self.most, "largest")

    sim = meshweft.Simulation("chain:3", Halves())
    with pytest.warns(meshweft.ConvergenceWarning, match="small at its limit of 2, 1 of 3 times: give it more"):
        sim.step(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step()  # which warns of nothing new
        sim.step_until(sim.time)
    (found,) = sim.loops.values()
    assert list(sim.loops) == ["small"]
    assert found == (4, 3, 0, 2, 1, 2)  # 0.25 at the limit of the first step, 0.125 after the second


def test_measured_quantities_and_globals():
    sim = heat()
    assert sim.metrics["hottest"] == (1.0, "K")
    sim.step()
    assert sim.globals["largest"] == sim.metrics["hottest"].value == sim["temperature"].max()
    assert (sim.steps, sim.rounds, sim.time) == (1, 3, 1.0)


def test_a_kernel_may_call_another():
    class Watched(Heat):
        @meshweft.measure("maximum", "change", "K")
        def change(p, own, around):
            return abs(Heat.relax(p, own.replace(), around).temperature - own.temperature)

    sim = meshweft.Simulation("sheet:5", Watched(rate=0.2), precision="f64")
    flows, (a, b) = np.zeros(len(sim.mesh)), sim.mesh.edges.T
    difference = sim["temperature"][b] - sim["temperature"][a]
    np.add.at(flows, a, difference)
    np.add.at(flows, b, -difference)
    assert np.isclose(sim.metrics["change"].value, 0.2 * abs(flows).max()) and abs(flows).max() > 0.1


def test_fields_are_arrays_of_their_shape():
    class All(meshweft.Program):
        x, v, m = meshweft.shared(), meshweft.shared(3), meshweft.private((2, 2))
        n = meshweft.private(integer=True)

        def initial(self, mesh):
            return {"m": [[1, 2], [3, 4]], "n": np.arange(len(mesh))}

        def step(self, stages):
            pass

    for precision, real in (("f32", np.float32), ("f64", np.float64)):
        sim = meshweft.Simulation(meshweft.Mesh.generate("chain:5"), All(), precision=precision)
        assert sim.fields == ["x", "v", "m", "n"]
        assert [(sim[name].shape, sim[name].dtype) for name in sim.fields] == [
            ((5,), real),
            ((5, 3), real),
            ((5, 2, 2), real),
            ((5,), np.int32),
        ]
        assert sim["m"][3].tolist() == [[1, 2], [3, 4]] and sim["n"].tolist() == [0, 1, 2, 3, 4]
        sim["m"] = sim["m"] * 2
        sim["v"] = (1, 2, 3)
        sim["n"] = sim["n"] + 7
        assert sim["m"][0].tolist() == [[2, 4], [6, 8]] and sim["v"][4].tolist() == [1, 2, 3] and sim["n"][1] == 8


def test_a_run_that_diverges_says_where_and_is_healed():
    class Square(meshweft.Program):
        x = meshweft.private()

        @meshweft.map
        def grow(p, own):
            return own.replace(x=own.x * own.x + 1)

        def initial(self, mesh):
            return {"x": 2}

        def step(self, stages):
            stages.map(self.grow)

    sim = meshweft.Simulation(meshweft.Mesh.generate("chain:3"), Square())
    sim.step()
    saved = sim.save()
    with pytest.raises(meshweft.DivergedError, match=r"x of vertex 0 at \(0, 0, 0\) is inf after step 7"):
        sim.step(20)
    with pytest.raises(meshweft.DivergedError):
        sim.step()
    sim.restore(saved)
    assert (sim.steps, sim["x"].tolist()) == (1, [5, 5, 5])
    sim.step()


def test_states_are_kept_in_memory_and_in_folders(tmp_path):
    oracle = heat(backend="serial")
    oracle.step(7)
    sim = heat(threads=1)
    sim.step(3)
    saved = sim.save()
    sim.checkpoint(tmp_path)
    sim.step(4)
    assert sim.digest() == oracle.digest()
    sim.restore(saved)
    sim.step(4)
    assert sim.digest() == oracle.digest()
    for threads in (2, 3):
        resumed = heat(threads=threads)
        resumed.resume(tmp_path)
        assert resumed.steps == 3
        resumed.step(4)
        assert resumed.digest() == oracle.digest()
    other = heat("sheet:21")
    for refused in (lambda: other.restore(saved), lambda: other.resume(tmp_path)):
        with pytest.raises(meshweft.Error):
            refused()


def test_other_threads_run_while_steps_are_taken():
    sim = heat("sheet:200", threads=1)
    counted, seen, done = 0, [], threading.Event()

    def step():
        sim.step(150)
        done.set()

    thread = threading.Thread(target=step)
    thread.start()
    while not done.is_set():
        counted += 1
        if counted % 50 == 0:
            seen.append((sim.steps, float(sim["temperature"].max())))  # between two steps of the other thread
        time.sleep(1e-4)
    thread.join()
    assert counted > 20
    assert sim.steps == 150
    assert sorted(seen) == sorted(seen, key=lambda at: at[0])
    oracle = heat("sheet:200", backend="serial")
    oracle.step(150)
    assert sim.digest() == oracle.digest()


def test_threads_share_one_simulation():
    sim = heat()
    threads = [threading.Thread(target=lambda: [sim.step() for _ in range(20)]) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    oracle = heat(backend="serial")
    oracle.step(80)
    assert (sim.steps, sim.digest()) == (80, oracle.digest())


def test_programs_are_traced_in_several_threads_at_once():
    digests = []

    def run():
        for _ in range(10):
            sim = heat("sheet:5", backend="serial")
            sim.step()
            digests.append(sim.digest())

    threads = [threading.Thread(target=run) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(digests) == 40 and len(set(digests)) == 1


@pytest.mark.skipif(os.name == "nt", reason="no signals")
@pytest.mark.parametrize("progress", [False, True])
def test_an_interrupt_ends_a_long_call_between_two_steps(progress):
    # Where a shell has started this in the background, nobody would hear of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sim = heat("sheet:100", threads=1)
    timer = threading.Timer(0.4, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sim.step(10**9, progress=progress)
    assert time.monotonic() - begun < 3
    taken = sim.steps
    assert 0 < taken < 10**9
    sim.step()
    oracle = heat("sheet:100", threads=1)
    oracle.step(taken + 1)
    assert sim.digest() == oracle.digest()


def test_a_script_that_is_interrupted_ends():
    script = textwrap.dedent(
        """
        import meshweft, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sim = meshweft.examples.spring("box:10", threads=1)
        print("ready", flush=True)
        sim.step(10**9)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert "KeyboardInterrupt" in errors and process.returncode != 0


def test_progress_is_no_part_of_the_result(capfd):
    sim, silent = heat(), heat()
    sim.step(5, progress=True), silent.step(5)
    assert sim.digest() == silent.digest()
    assert capfd.readouterr().err == "", "nothing where nobody looks"


def test_iteration_takes_steps():
    for sim in heat():
        if sim.steps == 3:
            break
    assert sim.steps == 3 and "after 3 steps" in repr(sim)


def test_files_for_paraview(tmp_path):
    sim = heat()
    sim.step()
    sim.write(tmp_path / "heat.vtu")
    mesh = meshweft.Mesh.read(tmp_path / "heat.vtu")
    assert np.array_equal(mesh.field("temperature"), sim["temperature"])
    for fields in ([], ["temperature"], "temperature"):
        sim.write(tmp_path / "some.vtu", fields=fields)
        assert list(meshweft.Mesh.read(tmp_path / "some.vtu").fields) == ([fields] if isinstance(fields, str) else fields)
    with pytest.raises(meshweft.Error, match='unknown field "heat"'):
        sim.write(tmp_path / "none.vtu", fields=["heat"])


def test_simulations_are_not_pickled():
    with pytest.raises(TypeError):
        pickle.dumps(heat())


@pytest.mark.parametrize("name", meshweft.examples.__all__)
def test_examples_have_the_digest_of_the_oracle(name):
    example = getattr(meshweft.examples, name)
    meshes = {"heat": "torus:12x8", "wave": "disk:8", "spring": "box:6", "cloth": "sheet:10"}
    meshes |= {"softbody": "bar:5x3x3", "xpbd": "bar:5x3x3", "shallow_water": "sheet:9", "airfoil": "airfoil:16x8"}
    meshes |= {"poisson": "bar:5x3x3", "elasticity": "bar:5x3x3", "vibration": "bar:5x3x3"}
    small = meshes.get(name, "uniform:8x6")
    digests = set()
    for backend, threads in (("serial", None), ("cpu", 1), ("cpu", 3)):
        sim = example(small, backend=backend, threads=threads)
        sim.step(3)
        digests.add(sim.digest())
        assert all(np.isfinite(metric.value) for metric in sim.metrics.values())
    assert len(digests) == 1
    assert "Settings:" in example.__doc__ or "settings" in example.__doc__


class Means(meshweft.Program):
    """The mean height of each cell, and how often it was taken."""

    height = meshweft.shared()
    mean = meshweft.shared(of_cells=True)
    taken = meshweft.private(integer=True, of_cells=True)
    corners = meshweft.directed_edges()

    def parts(self, mesh):
        return [np.zeros((sum(map(len, mesh.cells.values())), 3)), np.ones((2, 3))]

    def stars(self, mesh):
        links = [
            (v, len(mesh) + cell)
            for kind, corners in mesh.cells.items()
            for cell, of in zip(mesh.cell_numbers[kind].tolist(), corners.tolist())
            for v in of
        ]
        return {"corners": np.array(links)}

    def initial(self, mesh):
        cells = sum(map(len, mesh.cells.values()))
        return {"height": mesh.points[:, 0], "taken": np.arange(cells)}

    @meshweft.update
    def take(p, own, around):
        total, count = around.sum(lambda corner: (corner.height, 1.0))
        return own.replace(mean=total / count, taken=own.taken + 1)

    def step(self, stages):
        with stages.on(1):
            stages.sweep(self.take)


@pytest.mark.parametrize("backend", ["serial", "cpu"])
def test_fields_of_cells_are_arrays_over_the_cells(tmp_path, backend):
    # A file has its kinds of cells among each other.
    points = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 0, 0], [2, 1, 0], [3, 0, 0]]
    rows = ["# vtk DataFile Version 3.0", "a", "ASCII", "DATASET UNSTRUCTURED_GRID", f"POINTS {len(points)} double"]
    rows += [" ".join(map(str, point)) for point in points]
    rows += ["CELLS 4 17", "3 0 1 2", "4 1 4 5 2", "3 0 2 3", "3 4 6 5", "CELL_TYPES 4", "5", "9", "5", "5"]
    path = tmp_path / "mixed.vtk"
    path.write_text("\n".join(rows) + "\n")
    mesh = meshweft.Mesh.read(path)
    expected = [2 / 3, 6 / 4, 1 / 3, 7 / 3]
    assert {kind: list(numbers) for kind, numbers in mesh.cell_numbers.items()} == {"triangle": [0, 2, 3], "quad": [1]}
    sim = meshweft.Simulation(mesh, Means(), precision="f64", backend=backend)
    sim.step()
    assert np.allclose(sim["mean"], expected)
    assert sim["taken"].tolist() == [1, 2, 3, 4] and sim["height"].shape == (7,)
    sim["mean"] = 2 * sim["mean"]
    assert np.allclose(sim["mean"], 2 * np.array(expected))
    with pytest.raises(meshweft.Error, match=r"mean has shape \(4,\), one for each of the 4 cells, not \(7,\)"):
        sim["mean"] = np.zeros(7)
    sim.write(tmp_path / "means.vtu")
    written = meshweft.Mesh.read(tmp_path / "means.vtu")
    assert np.allclose(written.cell_fields["mean"], 2 * np.array(expected))
    assert list(written.fields) == ["height"] and list(written.cell_fields) == ["mean", "taken"]
    # Copies have their cells kind by kind, and the fields with them.
    copy = pickle.loads(pickle.dumps(written))
    assert np.allclose(copy.cell_fields["mean"], 2 * np.array(expected)[[0, 2, 3, 1]])


def test_steps_end_at_a_time_and_last_as_long_as_they_say():
    class Fall(meshweft.Program):
        height = meshweft.private()
        dt = meshweft.parameter(0.1)
        lasts = meshweft.globals_()
        time_step = "dt"

        @meshweft.scalar
        def choose(p):
            return p.globals.replace(lasts=0.5 * p.dt)

        @meshweft.map
        def fall(p, own):
            return own.replace(height=own.height - p.globals.lasts)

        def step(self, stages):
            stages.scalar(self.choose)
            stages.map(self.fall)
            stages.lasts("lasts")

    sim = meshweft.Simulation("chain:3", Fall(), precision="f64")
    sim.step()
    assert sim.time == 0.05
    sim.program.dt = 0.2
    sim.step_until(0.3)
    # Halves of what is left, until that is next to nothing.
    assert abs(sim.time - 0.3) < 1e-12 and np.allclose(sim["height"], -0.3)
    sim.step()
    assert np.isclose(sim.time, 0.4)

    class Whole(meshweft.Program):
        height = meshweft.private()
        dt = meshweft.parameter(0.1)
        time_step = "dt"

        @meshweft.map
        def fall(p, own):
            return own.replace(height=own.height - p.dt)

        def step(self, stages):
            stages.map(self.fall)

    sim = meshweft.Simulation("chain:3", Whole(), precision="f64")
    sim.step_until(0.25)
    assert (sim.time, sim.steps) == (0.25, 3) and np.allclose(sim["height"], -0.25)
    sim.step_until(0.2)
    assert sim.steps == 3, "it is there"
    # Sums that are rounded end where they should, and no step of next to no time is taken.
    for time, steps in ((0.3, 3), (1.0, 10)):
        sim = meshweft.Simulation("chain:3", Whole(), precision="f64")
        sim.step_until(time)
        assert (sim.time, sim.steps) == (time, steps)
    sim.program.time_step = 0.5
    with pytest.raises(meshweft.ProgramError, match="names the same parameter all along"):
        sim.step()
    for time in (float("nan"), float("inf")):
        with pytest.raises(meshweft.Error, match="a time is finite"):
            sim.step_until(time)


def test_what_parts_say_is_checked():
    def refused(**members):
        program = type("Wrong", (Means,), members)()
        with pytest.raises(meshweft.Error) as raised:
            meshweft.Simulation("sheet:3", program)
        return str(raised.value)

    assert "part 1 of Wrong has points of shape (vertices, 3), not (3,)" in refused(parts=lambda self, mesh: [np.zeros(3)])
    few = refused(parts=lambda self, mesh: [np.zeros((3, 3))], stars=lambda self, mesh: {}, initial=lambda self, mesh: {})
    assert "field mean is of cells, of which the mesh has 8, and part 1 has 3 vertices" in few
    assert "time_step is 'dt', which is no parameter of Wrong" in refused(time_step="dt")

    def step(self, stages):
        with stages.on(3):
            stages.sweep(self.take)

    assert "stages are told for part 3, but there are 3: 0 is the mesh" in refused(step=step)
    assert "on has no stages in Wrong.step: write `with stages.on(...):`" in refused(step=lambda self, stages: stages.on(1))
    assert "fixed has shape (9,), a truth for each vertex, not (0,)" in refused(fixed=lambda self, mesh: [])
    assert "height is made of numbers" in refused(initial=lambda self, mesh: {"height": [[1], [1, 2]]})
    assert "on part -1: a whole number" in refused(step=lambda self, stages: stages.on(-1))
    assert "no global dt" in refused(step=lambda self, stages: stages.lasts("dt"))


def test_examples_have_settings():
    soft, stiff = meshweft.examples.cloth("sheet:8"), meshweft.examples.cloth("sheet:8", gravity=1.6)
    soft.step(5), stiff.step(5)
    assert soft.digest() != stiff.digest()
    for words, ask in [
        ("unknown setting \"stiffness\": there are dt", lambda: meshweft.examples.cloth(stiffness=1)),
        ("is no number", lambda: meshweft.examples.cloth(stretch="soft")),
        ("setting stretch is a number or a word", lambda: meshweft.examples.cloth(stretch=[1])),
        ("is made of numbers, not of object", lambda: meshweft.examples.cloth(stretch=object())),
        ("in f32 or f64, not in i32", lambda: meshweft.examples.cloth("sheet:5", precision="i32")),
        ("not on int", lambda: meshweft.examples.cloth(3)),
        ("no mesh generator is named", lambda: meshweft.examples.cloth("blob:3")),
    ]:
        with pytest.raises(meshweft.Error) as raised:
            ask()
        assert words in str(raised.value)


def test_the_examples_of_the_reference_hold():
    import meshweft._mesh, meshweft._program, meshweft._simulation, meshweft._symbol

    for module in (meshweft, meshweft._mesh, meshweft._program, meshweft._simulation, meshweft._symbol):
        found = doctest.testmod(module)
        assert found.failed == 0, module.__name__
    assert doctest.testmod(meshweft).attempted > 4
