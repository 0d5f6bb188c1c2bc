"""Simulations: a program on a mesh, stepped by its owner."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
import time
import warnings
import webbrowser
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Sequence

import numpy as np

from . import _meshweft
from ._mesh import Mesh, numbers, whole
from ._meshweft import Error, ProgramError
from ._program import Program


class Metric(NamedTuple):
    """One measured quantity."""

    value: float
    unit: str


class Loop(NamedTuple):
    """How often an `until`, or a `fixpoint`, went round.

    `times`: how often it was begun; `total`: its iterations, of all times together; `last`: those of the last time; `longest`: the most of any
    time; `ran_out`: how often it ended at its limit; `limit`: the limit at which it ended so last, 0 if it never did.
    """

    times: int
    total: int
    last: int
    longest: int
    ran_out: int
    limit: int


class ConvergenceWarning(UserWarning):
    """A loop of a step ended at its limit: its test did not hold."""


class Hosts:
    """Workers on other hosts, which join with the token: `meshweft worker --join FILE`, or `meshweft.work(token)` in Python.

    `listen`: where this host is to be reached; port 0 takes any free one. A simulation that is given them waits until all are there.
    """

    def __init__(self, workers: int, listen: str = "0.0.0.0:0") -> None:
        if not isinstance(listen, str):
            raise Error(f"hosts listen at an address such as \"0.0.0.0:0\", not at {listen!r}")
        self._hosts = _meshweft.Hosts(whole(workers, 1, 1024, f"{workers!r} workers"), listen)

    @property
    def token(self) -> str:
        """What workers join with: one line, which is a secret."""
        return self._hosts.token()


def work(token: str) -> None:
    """Works for the simulation of another host that has this token, until it is over."""
    if not isinstance(token, str):
        raise Error(f"a worker joins with a token, which is a text, not {token!r}")
    _meshweft.work(token)


def _options(
    backend: str,
    threads: int | None,
    order: str | None,
    precision: str,
    adapter: int,
    processes: int | None = None,
    hosts: Hosts | None = None,
) -> dict[str, Any]:
    # All that can be refused is, before workers start or are waited for.
    for what, value, known in (("backend", backend, ("cpu", "gpu", "serial")), ("precision", precision, ("f32", "f64", "i32"))):
        if value not in known:
            raise Error(f"unknown {what} {value!r}: one of {', '.join(known)}")
    if order is not None and not isinstance(order, str):
        raise Error(f"an order is a word such as \"blocked\", not {order!r}")
    if hosts is not None and not isinstance(hosts, Hosts):
        raise Error(f"hosts are a meshweft.Hosts, not {type(hosts).__name__}")
    if processes is not None and hosts is not None:
        raise Error("a simulation runs on processes of this machine or on hosts: give one of the two")
    if (processes is not None or hosts is not None) and backend != "cpu":
        raise Error(f"processes and hosts update on their cores, not on {backend}")
    if (processes is not None or hosts is not None) and precision == "i32":
        raise Error("processes and hosts compute in f32 or f64, not in i32")
    return {
        "backend": backend,
        "threads": 0 if threads is None else whole(threads, 1, 4096, f"{threads!r} threads"),
        "order": order,
        "precision": precision,
        "adapter": whole(adapter, 0, 2**32 - 1, f"adapter {adapter!r}"),
        "processes": 0 if processes is None else whole(processes, 1, 1024, f"{processes!r} processes"),
        "worker": [sys.executable, "-c", "from meshweft._meshweft import work_attached; work_attached()"],
        "hosts": None if hosts is None else hosts._hosts,
    }


def _must_be_whole(data: dict[str, Any]) -> None:
    """Refuses a program that has numbers with a fraction: in integers they would be others."""
    lists = {"the start": data["initial"], "globals": data["start"], "parameters": data["values"]}
    for what, values in [*lists.items(), *((f"star {star['name']}", star["data"]) for star in data["stars"])]:
        values = np.asarray(values)
        for value in values[(values != np.floor(values)) | ~(abs(values) < 2.0**31)][:1]:
            raise ProgramError(f"precision i32 is for programs of integers of 32 bits, but {what} has {value}")


class Simulation:
    """A program on a mesh, with its state.

    `mesh`: a mesh, or the word for one that `Mesh.generate` takes.
    `backend`: `"cpu"`, the cores of this machine; `"gpu"`; or `"serial"`, the oracle, one vertex after the other. `threads`: one a core unless said.
    `order`: of sweeps, such as `"blocked"`, `"color"`, `"priority-dag"`, `"jacobi"`: another order is another result, and nothing else is.
    `processes`: so many processes of this machine share the mesh, each with `threads`; `hosts`: other machines do. The bits are those of one.
    `precision`: `"f32"`, `"f64"` or, for programs of integers, `"i32"`.

    Fields are in the order of the mesh's vertices: `sim["temperature"]` is an array, and can be set.
    """

    def __init__(
        self,
        mesh: "Mesh | str",
        program: Program,
        *,
        backend: str = "cpu",
        threads: int | None = None,
        order: str | None = None,
        precision: str = "f32",
        adapter: int = 0,
        processes: int | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        if isinstance(program, type) or not isinstance(program, Program):
            raise Error(f"a simulation takes a mesh and an instance of a program, such as Heat(), not {program!r}")
        if isinstance(mesh, str):
            mesh = Mesh.generate(mesh)
        if not isinstance(mesh, Mesh):
            raise Error(f"a simulation takes a meshweft.Mesh, not {type(mesh).__name__}")
        options = _options(backend, threads, order, precision, adapter, processes, hosts)
        data = program._data(mesh)
        if precision == "i32":
            _must_be_whole(data)
        self._start(_meshweft.build(data, mesh._mesh, options), mesh, program, type(program).__name__)

    def _start(self, core: Any, mesh: Mesh, program: Program | None, name: str) -> None:
        self._core, self.mesh, self.program, self._name = core, mesh, program, name
        self._known = self._parameters()
        self._ran_out = 0
        # Loops have a test, or repeat a quiet kernel.
        self._has_loops = program is None or any(kernel.purpose == "test" or kernel.is_quiet for kernel in program._declared.kernels)
        self._time_parameter = None if program is None else program._time_parameter()

    @classmethod
    def _of_example(cls, core: Any, name: str) -> "Simulation":
        made = cls.__new__(cls)
        made._start(core, Mesh._of(core.mesh()), None, name)
        return made

    def _parameters(self) -> Any:
        return None if self.program is None else (self.program._values(), self.program._time_step())

    def _tell_parameters(self) -> None:
        parameters = self._parameters()
        if parameters != self._known:
            if self.program is not None and self.program._time_parameter() != self._time_parameter:
                raise ProgramError("time_step names the same parameter all along, or none: build another simulation")
            self._core.set_parameters(*parameters)
            self._known = parameters

    def step(self, count: int = 1, *, progress: bool = False) -> None:
        """Takes so many time steps. Other threads of Python run meanwhile, and an interrupt (Ctrl-C) ends it between two steps.

        `progress`: shows how far it is. Where a loop ends at its limit, that is a `ConvergenceWarning`.
        """
        if not isinstance(count, (int, np.integer)) or not 0 <= count < 2**63:
            raise Error(f"{count!r} steps: a number of them, 0 or more")
        self._tell_parameters()
        if not progress:
            self._core.step(count)
            self._warn()
            return
        show = _Progress(count)
        try:
            self._core.step(count, show)
            self._core.wait()
            show.end(count)
        except BaseException:
            show.end(None)
            raise
        self._warn()

    def step_until(self, time: float) -> None:
        """Takes as many steps as it takes to be at that time, in seconds: the last is shorter where the program names the parameter that is its
        `time_step`, and ends exactly there."""
        end = numbers(time, "a time", Error)
        if end.shape or not np.isfinite(end):
            raise Error(f"a time is finite, a number of seconds, not {time!r}")
        self._tell_parameters()
        if self._core.time_step() <= 0.0 and self.time < end:
            raise Error("steps of no time come to no other: time_step must be above 0")
        self._core.step(2**63 - 1, None, float(end))
        self._warn()

    def _warn(self) -> None:
        """Warns of loops that have ended at their limit since it was last called."""
        if not self._has_loops:
            return
        loops = self.loops
        ran_out = sum(loop.ran_out for loop in loops.values())
        if ran_out > self._ran_out:
            of = [f"{name} at its limit of {loop.limit}, {loop.ran_out} of {loop.times} times" for name, loop in loops.items() if loop.ran_out]
            advice = "give it more iterations, ask for less, or take shorter steps; sim.loops tells more"
            warnings.warn(f"a loop has ended before it was done: {'; '.join(of)}: {advice}", ConvergenceWarning, stacklevel=3)
        self._ran_out = ran_out

    def wait(self) -> None:
        """Waits for all steps that were asked for: a GPU works on while Python does. Reading a field waits, too."""
        self._core.wait()

    def __iter__(self) -> Iterator["Simulation"]:
        """Steps without end: `for _ in sim: ...` looks at each."""
        while True:
            self.step()
            yield self

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return self._core.steps()

    @property
    def rounds(self) -> int:
        """Rounds of sweeps taken so far: each updates every vertex once."""
        return self._core.rounds()

    @property
    def time(self) -> float:
        """Simulated time in seconds."""
        return self._core.time()

    @property
    def precision(self) -> str:
        """The number type of the state: `f32`, `f64` or `i32`."""
        return self._core.precision()

    @property
    def order(self) -> str:
        """The order of sweeps, with the size of its blocks."""
        return self._core.order()

    @property
    def threads(self) -> int:
        """Threads that update vertices."""
        return self._core.threads()

    @property
    def adapter(self) -> str | None:
        """The GPU that updates run on, if they do."""
        return self._core.adapter()

    @property
    def setup(self) -> dict[str, float]:
        """Seconds that each stage of building took."""
        return dict(self._core.setup())

    @property
    def fields(self) -> list[str]:
        """Names of the fields of the state."""
        return [name for name, _, _ in self._core.fields()]

    def _shape(self, name: str, components: int) -> tuple[int, ...]:
        declared = [] if self.program is None else [*self.program._declared.shared, *self.program._declared.private]
        for part in declared:
            if part.name == name:
                return part.shape
        return () if components == 1 else (components,)

    def __getitem__(self, name: str) -> Any:
        """A field, shape (vertices, ...), in the order of the mesh's vertices; (cells, ...) of a field of cells. A copy."""
        if not isinstance(name, str):
            raise Error(f"unknown field {name!r}: one of {', '.join(self.fields)}")
        components, values = self._core.field(name)
        shape = self._shape(name, components)
        values = values.reshape(-1, *shape)
        return values.transpose(0, 2, 1) if len(shape) == 2 else values

    def __setitem__(self, name: str, values: Any) -> None:
        components = {part: components for part, components, _ in self._core.fields()}.get(name)
        if components is None:
            raise Error(f"unknown field {name!r}: one of {', '.join(self.fields)}")
        shape = self._shape(name, components)
        is_integer = {part: is_integer for part, _, is_integer in self._core.fields()}[name]
        array = numbers(values, name, Error)
        count = self.mesh._mesh.cell_count() if self._core.is_of_cells(name) else len(self.mesh)
        try:
            array = np.broadcast_to(array, (count, *shape))
        except ValueError:
            of = "cells" if self._core.is_of_cells(name) else "vertices"
            raise Error(f"{name} has shape {(count, *shape)}, one for each of the {count} {of}, not {array.shape}") from None
        if is_integer and not (np.all(array == np.floor(array)) and np.all(abs(array) < 2.0**31)):
            raise Error(f"{name} is made of integers of 32 bits, and some of these are none")
        if len(shape) == 2:
            array = array.transpose(0, 2, 1)
        self._core.set_field(name, np.ascontiguousarray(array).reshape(-1))

    @property
    def globals(self) -> dict[str, Any]:
        """What stages measured and computed: numbers, and arrays of vectors, by name."""
        found = {}
        for name, components, _ in self._core.globals():
            values = self._core.global_(name)
            found[name] = values[0] if components == 1 else np.asarray(values)
        return found

    @property
    def metrics(self) -> dict[str, Metric]:
        """Measures all quantities that the program labels."""
        self._tell_parameters()
        return {name: Metric(value, unit) for name, unit, value in self._core.metrics()}

    @property
    def loops(self) -> dict[str, Loop]:
        """How often each loop of the program went round, by the name of its test or kernel."""
        return {name: Loop(*found) for name, found in self._core.loops()}

    def digest(self) -> str:
        """BLAKE3 of the whole state in the order of the mesh's vertices: the same bits on every engine, and from a program in Rust."""
        return self._core.digest()

    def save(self) -> Any:
        """The state, in memory, for `restore`."""
        return self._core.save()

    def restore(self, saved: Any) -> None:
        """Goes back to a saved state. Heals a simulation that diverged."""
        if not isinstance(saved, _meshweft.Saved):
            raise Error(f"restore takes what save returned, not {type(saved).__name__}")
        self._core.restore(saved)

    def checkpoint(self, folder: "str | os.PathLike[str]") -> None:
        """Writes the state to a folder, for `resume` in this or another process, on any number of threads."""
        self._core.checkpoint(os.fspath(folder))

    def resume(self, folder: "str | os.PathLike[str]") -> None:
        """Goes on from the newest checkpoint of a folder."""
        self._core.resume(os.fspath(folder))

    def _moved(self, positions: str | None, chosen: Sequence[str] | None = None) -> tuple[Mesh, dict[str, Any]]:
        names = self.fields if chosen is None else [chosen] if isinstance(chosen, str) else list(chosen)
        if positions is None and "position" in self.fields and not self._core.is_of_cells("position"):
            positions = "position"
        mesh = self.mesh
        fields = {name: self[name] for name in names}
        if positions is not None:
            points = np.asarray(self[positions], dtype=float)
            if points.shape != (len(mesh), 3):
                raise Error(f"{positions} has shape {points.shape}, and positions have {(len(mesh), 3)}")
            mesh = Mesh._of(mesh._mesh.with_points(np.ascontiguousarray(points).reshape(-1)))
        flat = {name: values.reshape(len(values), -1) for name, values in fields.items()}
        flat = {name: values[:, 0] if values.shape[1] == 1 else values for name, values in flat.items()}
        for name in [name for name in flat if self._core.is_of_cells(name)]:
            mesh = mesh.with_field(name, flat.pop(name), of_cells=True)
        return mesh, flat

    def write(self, path: "str | os.PathLike[str]", positions: str | None = None, *, fields: Sequence[str] | None = None) -> None:
        """Writes the mesh with its fields: `.vtu` for ParaView, `.ply`, `.obj`. `positions`: the field that moves it; `position` if there is one.
        `fields`: those that are written; all unless said."""
        mesh, values_of = self._moved(positions, fields)
        for name, values in values_of.items():
            mesh = mesh.with_field(name, values)
        mesh.write(path)

    def to_pyvista(self, positions: str | None = None) -> Any:
        """The mesh with all fields, as a grid of PyVista."""
        mesh, fields = self._moved(positions)
        return mesh.to_pyvista(**fields)

    def plot(self, color: str | None = None, positions: str | None = None, **more: Any) -> Any:
        """Draws it with PyVista. `color`: a field; the first scalar one unless said. `more`: as PyVista's `plot` takes it."""
        grid = self.to_pyvista(positions)
        if color is None:
            scalars = [name for name, components, _ in self._core.fields() if components == 1]
            color = scalars[0] if scalars else None
        return grid.plot(scalars=color, **more)

    def view(self, color: str | None = None) -> str:
        """Shows it in a page that follows its steps: pauses, single steps, fields, cuts, curves; in the browser, or in a notebook. Returns the address.

        `color`: the field that colors it at first; unless said, the first scalar one, or none where the points move.
        Only this machine reaches the page, and only with the whole address. While the page has it paused, `step` waits. The page lasts as long
        as the simulation.
        """
        if color is not None and color not in self.fields:
            raise Error(f"unknown field {color!r}: one of {', '.join(self.fields)}")
        url = self._core.view(self._name, color, _is_notebook())
        show(url)
        return url

    def __repr__(self) -> str:
        return f"<Simulation of {self._name} on {len(self.mesh)} vertices, {self.precision}, {self.order}, after {self.steps} steps>"


def _is_notebook() -> bool:
    return "ipykernel" in sys.modules


def show(url: str) -> None:
    """Tells where a page is, and opens it in the browser, if there is one here; in a notebook, within its page, if that is on this machine."""
    if _is_notebook():
        from IPython.display import HTML, IFrame, display  # type: ignore[import-not-found, unused-ignore]

        display(IFrame(url, width="100%", height=600), HTML(f'<a href="{url}" target="_blank">in a page of its own</a>'))
        return
    print(f"view: {url}", file=sys.stderr)
    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        # Arguments of a process can be read by all users: what the browser is given is a file of this user's that leads there.
        door = tempfile.NamedTemporaryFile("w", prefix="meshweft-view-", suffix=".html", delete=False)
        with door:
            door.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={url}">')
        atexit.register(Path(door.name).unlink, missing_ok=True)
        webbrowser.open(Path(door.name).as_uri())


class _Progress:
    """One line on standard error, or of a notebook."""

    def __init__(self, count: int) -> None:
        self._count, self._begun, self._shown = count, time.monotonic(), 0.0
        self._is_terminal = sys.stderr.isatty() or _is_notebook()

    def __call__(self, taken: int) -> None:
        now = time.monotonic()
        if self._is_terminal and now - self._shown > 0.2:
            self._shown = now
            rate = taken / max(now - self._begun, 1e-9)
            print(f"\r{taken} of {self._count} steps, {rate:.0f} a second ", end="", file=sys.stderr, flush=True)

    def end(self, taken: int | None) -> None:
        if self._is_terminal and self._shown:
            if taken is not None:
                self._shown = 0.0
                self(taken)
            print(file=sys.stderr)


def adapters() -> list[str]:
    """Names of the GPUs that there are, by number: `Simulation(..., backend="gpu", adapter=0)` takes the first."""
    return _meshweft.adapters()
