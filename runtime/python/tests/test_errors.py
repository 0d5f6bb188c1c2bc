"""What breaks a rule is an error of its own, which says where it is and what to write instead."""

import math
import re

import meshweft
import numpy as np
import pytest

MESH = meshweft.Mesh.generate("sheet:4")


def build(kernel=lambda p, own, around: own, mesh=MESH, made_by=meshweft.update, **members):
    """A program with fields of all shapes and one kernel, whose sweep is its step unless `members` say otherwise."""
    of = {
        "t": meshweft.shared(),
        "v": meshweft.shared(3),
        "n": meshweft.shared(integer=True),
        "m": meshweft.private((3, 3)),
        "rate": meshweft.parameter(1.0),
        "g": meshweft.globals_(),
        "edges": meshweft.edges(),
        "step": lambda self, stages: stages.sweep(self.kernel),
        **members,
        "kernel": made_by(kernel),
    }
    return meshweft.Simulation(mesh, type("Program", (meshweft.Program,), of)(), backend="serial")


def fails(words, error=meshweft.ProgramError, line=None, **members):
    with pytest.raises(error) as raised:
        build(**members)
    message = str(raised.value)
    assert words in message, message
    assert "\n" not in message
    if line is not None:
        assert message.startswith(f"{__file__}:{line}: "), message


def line_of(kernel, of=0):
    return kernel.__code__.co_firstlineno + of


def kernel_if(p, own, around):
    if own.t > 0:
        own.t = -own.t
    return own


def kernel_and(p, own, around):
    return own.replace(t=meshweft.select(own.t > 0 and own.t < 1, 1.0, 2.0))


def kernel_chain(p, own, around):
    return own.replace(t=meshweft.select(0 < own.t < 1, 1.0, 2.0))


def kernel_max(p, own, around):
    return own.replace(t=max(own.t, 0.0))


def kernel_assert(p, own, around):
    assert own.t >= 0
    return own


@pytest.mark.parametrize("kernel", [kernel_if, kernel_and, kernel_chain, kernel_max, kernel_assert])
def test_python_does_not_decide_by_symbols(kernel):
    fails("write meshweft.select(condition, yes, no)", kernel=kernel, line=line_of(kernel, 1))


def kernel_float(p, own, around):
    return own.replace(t=float(own.t))


def kernel_math(p, own, around):
    return own.replace(t=math.sqrt(own.t))


def kernel_range(p, own, around):
    return own.replace(t=sum(k for k in range(own.n)))


@pytest.mark.parametrize("kernel", [kernel_float, kernel_math, kernel_range])
def test_symbols_are_no_numbers_of_python(kernel):
    fails("use the functions of meshweft", kernel=kernel, line=line_of(kernel, 1))


def test_numpy_in_kernels_is_what_meshweft_has():
    def by_numpy(p, own, around):
        v = np.array([0.0, 1.0, 2.0]) * own.t + np.float32(2) * own.v + np.eye(3) @ own.v
        t = np.where(own.t > 0, np.linalg.norm(own.v), np.dot(own.v, np.cross(own.v, [1, 0, 0])))
        return own.replace(v=v, t=t + np.sqrt(np.abs(own.t)) + np.maximum(own.t, np.float64(0.5)) * np.int64(2))

    def by_meshweft(p, own, around):
        v = meshweft.vector(0, 1, 2) * own.t + 2 * own.v + meshweft.identity(3) @ own.v
        t = meshweft.select(own.t > 0, own.v.length(), own.v @ own.v.cross([1, 0, 0]))
        return own.replace(v=v, t=t + meshweft.sqrt(abs(own.t)) + meshweft.maximum(own.t, 0.5) * 2)

    digests = set()
    for kernel in (by_numpy, by_meshweft):
        sim = build(kernel, initial=lambda self, mesh: {"t": mesh.points[:, 0], "v": mesh.points})
        sim.step(3)
        digests.add(sim.digest())
    assert len(digests) == 1


def kernel_sinh(p, own, around):
    return own.replace(t=np.sinh(own.t))


def test_numpy_functions_that_no_engine_has_are_named():
    fails("numpy.sinh knows no symbols", kernel=kernel_sinh, line=line_of(kernel_sinh, 1))


NAMES = [
    ("the vertex has no speed, but t, v, n, m", lambda p, own, around: own.replace(t=own.speed)),
    ("the vertex has no speed, but t, v, n, m", lambda p, own, around: own.replace(speed=1.0)),
    ("the program has no speed, but rate", lambda p, own, around: own.replace(t=p.speed)),
    ("the record of globals has no speed, but g", lambda p, own, around: own.replace(t=p.globals.speed)),
    ("the program has no star links, but edges", lambda p, own, around: own.replace(t=around.links.sum(lambda o: o.t))),
    ("a neighbor has no m, but t, v, n", lambda p, own, around: own.replace(t=around.sum(lambda o: o.m[0, 0]))),
]


@pytest.mark.parametrize("words, kernel", NAMES)
def test_unknown_names_list_those_that_there_are(words, kernel):
    fails(words, kernel=kernel, line=line_of(kernel))


RESULTS = [
    ("returns NoneType, and must return the new vertex", lambda p, own, around: None),
    ("returns Real, and must return the new vertex", lambda p, own, around: own.t),
    ("must return the new vertex", lambda p, own, around: p),
    ("t is a number, not <a vector of 3 reals>", lambda p, own, around: own.replace(t=own.v)),
    ("v has 3 components, not 2", lambda p, own, around: own.replace(v=meshweft.vector(1, 2))),
    ("m is a matrix of 3 rows, not Vector", lambda p, own, around: own.replace(m=own.v)),
    ("a real stands where an integer is: meshweft.integer(...)", lambda p, own, around: own.replace(n=own.t)),
    ("an integer stands where a real is: meshweft.real(...)", lambda p, own, around: own.replace(t=own.n)),
    ("a condition stands where a real is: write meshweft.select", lambda p, own, around: own.replace(t=own.t > 0)),
    ("str 'warm' stands where a real is", lambda p, own, around: own.replace(t="warm")),
    ("does not fit into the 32 bits", lambda p, own, around: own.replace(n=2**40)),
]


@pytest.mark.parametrize("words, kernel", RESULTS)
def test_what_a_kernel_returns_fits_the_fields(words, kernel):
    fails(words, kernel=kernel)
    fails(f"test_errors.py:{line_of(kernel)}: ", kernel=kernel)


VALUES = [
    ("integers are not divided", lambda p, own, around: own.replace(t=own.n / 2)),
    ("a real stands where a condition is", lambda p, own, around: own.replace(t=meshweft.select(own.t, 1.0, 2.0))),
    ("only vectors have components", lambda p, own, around: own.replace(t=own.t[0])),
    ("a real has no x", lambda p, own, around: own.replace(t=own.t.x)),
    ("has no component 5", lambda p, own, around: own.replace(t=own.v[5])),
    ("has no number [3, 0]", lambda p, own, around: own.replace(t=own.m[3, 0])),
    ("vectors of 3 and 2 reals", lambda p, own, around: own.replace(v=own.v + [1, 2])),
    ("write a @ b for a product", lambda p, own, around: own.replace(m=own.m * own.m)),
    ("m.T @ v in place of v @ m", lambda p, own, around: own.replace(v=own.v @ own.m)),
    ("a seed is an integer", lambda p, own, around: own.replace(t=p.uniform(0.5))),
    ("begins with 1 numbers and goes on with 2", lambda p, own, around: own.replace(t=around.fold(0.0, lambda s, o: (s, s)))),
    ("NoneType None stands where a real is", lambda p, own, around: own.replace(t=around.sum(lambda o: None))),
    ("write meshweft.select(condition, 1.0, 0.0)", lambda p, own, around: own.replace(t=around.sum(lambda o: o.t > 0))),
]


@pytest.mark.parametrize("words, kernel", VALUES)
def test_values_that_do_not_go_together_are_refused_where_they_meet(words, kernel):
    fails(words, kernel=kernel, line=line_of(kernel))


def test_symbols_do_not_leave_their_kernel():
    kept = []

    def keep(p, own, around):
        kept.append(own.t)
        return own

    build(keep)
    fails("a symbol of kernel kernel is used in kernel kernel", kernel=lambda p, own, around: own.replace(t=kept[0]))
    with pytest.raises(meshweft.ProgramError, match="while a kernel is traced alone"):
        kept[0] + 1


@pytest.mark.parametrize("which", [0, -1])
@pytest.mark.parametrize("loop", ["sum", "fold"])
def test_symbols_do_not_leave_their_loop(loop, which):
    def kernel(p, own, around):
        kept = []
        if loop == "sum":
            around.sum(lambda other: kept.append(other.t) or other.t)
        else:
            around.fold(0.0, lambda so_far, other: kept.append(so_far) or other.t)
        return own.replace(t=kept[which])

    fails("is used outside of the loop over elements", kernel=kernel)
    fails("test_errors.py:", kernel=kernel)


STAGES = [
    ("sweep takes a kernel of the program, such as self.NAME", lambda self, stages: stages.sweep(print)),
    ("of another program", lambda self, stages: stages.sweep(meshweft.update(kernel_if))),
    ("map takes kernels made by @meshweft.map; kernel is made by @meshweft.update", lambda self, stages: stages.map(self.kernel)),
    ("reduce takes kernels made by @meshweft.measure", lambda self, stages: stages.reduce(self.kernel, "g")),
    ("the program has no global h, but g", lambda self, stages: stages.reduce(self.kernel, "h")),
    ("fixpoint takes a quiet kernel", lambda self, stages: stages.fixpoint(self.kernel, 3)),
    ("sweep takes so many rounds, 0 or more, not -1", lambda self, stages: stages.sweep(self.kernel, -1)),
    ("sweep takes so many rounds, 0 or more, not 1.5", lambda self, stages: stages.sweep(self.kernel, 1.5)),
    ("kernel kernel has no setting omega, but none", lambda self, stages: stages.sweep(self.kernel, omega=1.5)),
]


@pytest.mark.parametrize("words, step", STAGES)
def test_stages_take_kernels_of_their_kind(words, step):
    fails(words, step=step, line=line_of(step))


def test_loops_of_stages_hold_some():
    held = meshweft.test(lambda p: p.globals.g > 1)
    for step in (lambda self, stages: stages.until(self.held, 3), lambda self, stages: stages.until(self.held, 3).__enter__()):
        fails("until has no stages in Program.step: write `with stages.until(...):`", step=step, held=held)
    twice = lambda self, stages: stages.until(self.kernel, 3)
    fails("until takes kernels made by @meshweft.test", step=twice, line=line_of(twice))


def test_settings_have_values():
    takes = lambda p, own, around, omega: own
    fails("setting omega of kernel kernel has no value", kernel=takes)
    fails("is a number, not 'x'", kernel=takes, step=lambda self, stages: stages.sweep(self.kernel, omega="x"))
    build(lambda p, own, around, omega=1.5: own)


STARTS = [
    ("v has shape (16, 3) for 16 vertices, not (5,)", {"initial": lambda self, mesh: {"v": np.zeros(5)}}),
    ("has no field w, but t, v, n, m", {"initial": lambda self, mesh: {"w": 1}}),
    ("t is made of numbers, not of str", {"initial": lambda self, mesh: {"t": "x"}}),
    ("Program.initial returns a dict by names, not NoneType", {"initial": lambda self, mesh: None}),
    ("n is an integer of 32 bits", {"initial": lambda self, mesh: {"n": 0.5}}),
    ("n is an integer of 32 bits", {"initial": lambda self, mesh: {"n": 2**31}}),
    ("fixed has shape (16,)", {"fixed": lambda self, mesh: [True] * 3}),
    ("has no star z, but edges", {"stars": lambda self, mesh: {"z": [[0, 1]]}}),
    ("corners from 0 to 100, but there are 16 vertices", {"stars": lambda self, mesh: {"edges": [[0, 100]]}}),
    ("corners from -1 to 0, but there are 16 vertices", {"stars": lambda self, mesh: {"edges": [[0, -1]]}}),
    ("integers of shape (elements, 2), not int64 of (1, 3)", {"stars": lambda self, mesh: {"edges": [[0, 1, 2]]}}),
    ("integers of shape (elements, 2), not float64", {"stars": lambda self, mesh: {"edges": [[0.0, 1.0]]}}),
    ("element 1 of star edges has a vertex twice: [3, 3]. Leave it out", {"stars": lambda self, mesh: {"edges": [[0, 1], [3, 3]]}}),
    ("do not have 2 corners each", {"stars": lambda self, mesh: {"edges": [[0, 1], [2]]}}),
    ("star edges has no data w", {"stars": lambda self, mesh: {"edges": (None, {"w": 1})}}),
    ("data w of star edges has no values", {"edges": meshweft.edges(w=1)}),
    ("parameter rate is nan, which is not finite", {"rate": meshweft.parameter(math.nan)}),
    ("step is a word of programs", {"step": meshweft.shared()}),
    ("no parameter is named vertex", {"vertex": meshweft.parameter()}),
]


@pytest.mark.parametrize("words, members", STARTS)
def test_what_a_program_says_of_its_mesh_fits_it(words, members):
    fails(words, **members)


def test_a_start_that_is_no_number_names_the_vertex():
    fails("t of vertex 0 at (0, 0, 0) is NaN at the start", error=meshweft.Error, initial=lambda self, mesh: {"t": math.nan})
    weights = lambda self, mesh: {"edges": (None, {"w": math.nan})}
    fails("w of star edges is NaN for element 0", error=meshweft.Error, edges=meshweft.edges(w=1), stars=weights)


def test_declarations_are_checked_where_they_stand():
    for declare in (lambda: meshweft.shared(5), lambda: meshweft.shared("x"), lambda: meshweft.edges(length="x")):
        with pytest.raises(meshweft.ProgramError, match=re.escape(f"{__file__}:{line_of(declare)}: shape")):
            declare()
    with pytest.raises(meshweft.ProgramError, match="integers are numbers"):
        meshweft.shared(3, integer=True)
    with pytest.raises(meshweft.ProgramError, match="a measure is a sum, a minimum or a maximum"):
        meshweft.measure("mean")
    with pytest.raises(meshweft.ProgramError, match=r"test_errors.py:\d+: .*takes \(p, own, around\)"):
        meshweft.update(lambda p, own: own)
    with pytest.raises(meshweft.ProgramError, match="at most 4"):
        meshweft.update(lambda p, own, around, a, b, c, d, e: own)


def test_parameters_are_checked():
    class Heat(meshweft.Program):
        rate = meshweft.parameter(0.5)
        t = meshweft.shared()

        def step(self, stages):
            pass

    class Hot(Heat):
        rate = 0.75

    assert Hot().rate == 0.75 and Heat().rate == 0.5 and Heat(rate=2).rate == 2
    assert [part.default for part in Hot._declared.parameters] == [0.75]
    with pytest.raises(meshweft.ProgramError, match="Heat has no parameter speed, but rate"):
        Heat(speed=1)
    with pytest.raises(meshweft.ProgramError, match=r"parameter rate has shape \(\), not \(2,\)"):
        meshweft.Simulation(MESH, Heat(rate=[1, 2]))
    for step in (None, "a", math.nan, [1, 2], 1j):
        with pytest.raises(meshweft.ProgramError, match="time_step is"):
            meshweft.Simulation(MESH, Heat(time_step=step))
    sim = meshweft.Simulation(MESH, Heat())
    sim.program.rate = "fast"
    with pytest.raises(meshweft.ProgramError, match="parameter rate is made of numbers"):
        sim.step()
    sim.program.rate = 0.5
    sim.step()
    with pytest.raises(meshweft.Error, match="an instance of a program, such as Heat()"):
        meshweft.Simulation(MESH, Heat)
    with pytest.raises(meshweft.Error, match="takes a meshweft.Mesh, not int"):
        meshweft.Simulation(3, Heat())


def test_options_are_checked():
    sim = build(initial=lambda self, mesh: {"t": 0.5})
    for words, options in [
        ("unknown order \"zigzag\"", {"order": "zigzag"}),
        ("unknown backend 'tpu'", {"backend": "tpu"}),
        ("an order is a word", {"order": 5}),
        ("unknown precision 'f16': one of f32, f64, i32", {"precision": "f16"}),
        ("unknown precision None", {"precision": None}),
        ("precision i32 is for programs of integers of 32 bits, but the start has 0.5", {"precision": "i32"}),
        ("0 threads: a whole number from 1 to 4096", {"threads": 0}),
        ("'2' threads: a whole number", {"threads": "2"}),
        ("True threads: a whole number", {"threads": True}),
        ("1000000 threads: a whole number", {"threads": 10**6}),
        ("18446744073709551616 threads", {"threads": 2**64}),
        ("adapter -1: a whole number", {"adapter": -1}),
        ("'2' processes: a whole number", {"processes": "2"}),
        ("hosts are a meshweft.Hosts, not str", {"hosts": "token"}),
        ("0 processes", {"processes": 0}),
        ("not on serial", {"processes": 2, "backend": "serial"}),
    ]:
        with pytest.raises(meshweft.Error) as raised:
            meshweft.Simulation(MESH, sim.program, **options)
        assert words in str(raised.value)


@pytest.mark.parametrize("options", [{"precision": "f16"}, {"precision": "i32"}, {"order": "zigzag"}, {"backend": "gpu"}, {"processes": 2}])
def test_what_is_refused_is_before_workers_are_waited_for(options):
    with pytest.raises(meshweft.Error):
        meshweft.Simulation(MESH, build().program, hosts=meshweft.Hosts(1, "127.0.0.1:0"), **options)


def test_hosts_are_checked():
    for words, ask in [
        ("0 workers: a whole number from 1 to 1024", lambda: meshweft.Hosts(0)),
        ("4294967296 workers", lambda: meshweft.Hosts(2**32)),
        ("is no address to listen at", lambda: meshweft.Hosts(1, "nowhere")),
        ("hosts listen at an address", lambda: meshweft.Hosts(1, 5)),
        ("the join token is empty", lambda: meshweft.work("")),
        ("a worker joins with a token", lambda: meshweft.work(None)),
        ("no command starts workers", lambda: starts_workers_by([])),
    ]:
        with pytest.raises(meshweft.Error) as raised:
            ask()
        assert words in str(raised.value)


def starts_workers_by(command):
    options = meshweft._simulation._options("cpu", None, None, "f32", 0, 2)
    meshweft._meshweft.build(build().program._data(MESH), MESH._mesh, {**options, "worker": command})


def test_an_error_of_the_author_stays_what_it_is():
    def kernel(p, own, around):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        build(kernel)
    build()  # and the next program is traced as ever


def test_fields_and_steps_are_checked():
    sim = build()
    for words, name, values in [
        ("v has shape (16, 3), one for each of the 16 vertices, not (4,)", "v", np.zeros(4)),
        ("t of vertex 0 would be NaN", "t", math.nan),
        ("unknown field 'w': one of t, v, n, m", "w", 1),
        ("t is made of numbers", "t", "x"),
        ("t is made of numbers, not of complex: complex numbers have two parts", "t", 1j),
        ("integers of 32 bits", "n", 0.5),
        ("integers of 32 bits", "n", 2**31),
        ("unknown field 0: one of t", 0, 1),
    ]:
        with pytest.raises(meshweft.Error) as raised:
            sim[name] = values
        assert words in str(raised.value)
    for name in ("w", 0, None, ["t"]):
        with pytest.raises(meshweft.Error, match="unknown field"):
            sim[name]
    with pytest.raises(meshweft.Error, match='unknown field "q"'):
        sim.write("a.vtu", positions="q")
    with pytest.raises(meshweft.Error, match="restore takes what save returned, not int"):
        sim.restore(5)
    with pytest.raises(meshweft.Error, match="it is of another one"):
        sim.restore(build(mesh=meshweft.Mesh.generate("sheet:5")).save())
    for count in (-1, 1.5, 2**70, None):
        with pytest.raises(meshweft.Error, match="steps: a number of them, 0 or more"):
            sim.step(count)
    with pytest.raises(meshweft.Error, match="holds no checkpoint"):
        sim.resume("/nonexistent")
