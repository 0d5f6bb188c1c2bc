"""Programs: a class whose fields are declared and whose kernels are plain functions, traced once."""

from __future__ import annotations

import inspect
import math
import operator
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Iterator, Mapping, Sequence

import numpy as np

from ._mesh import Mesh, numbers, whole
from ._meshweft import ProgramError
from ._symbol import Integer, Matrix, Real, Trace, Truth, Vector, at, refuse, vector


class Declaration:
    """A number, vector or matrix that a program declares: of a vertex, a parameter, a global, or of an element."""

    def __init__(self, group: str, shape: Any = (), integer: bool = False, default: Any = 0.0, of_cells: bool = False) -> None:
        if isinstance(shape, int):
            shape = () if shape == 1 else (shape,)
        try:
            shape = tuple(operator.index(n) for n in shape)
        except TypeError:
            raise refuse(f"shape {shape!r}: a number (), a vector (n,) or a square matrix (n, n) with n from 1 to 4") from None
        self.group, self.shape, self.is_integer, self.default, self.is_of_cells = group, shape, integer, default, of_cells
        if len(self.shape) > 2 or any(not 1 <= n <= 4 for n in self.shape) or len(set(self.shape)) > 1:
            raise refuse(f"shape {self.shape}: a number (), a vector (n,) or a square matrix (n, n) with n from 1 to 4")
        if integer and self.shape:
            raise refuse("integers are numbers: declare several")
        self.components = int(np.prod(self.shape))
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None or self.group not in ("parameter", "global"):
            return self
        return instance.__dict__.get(self.name, self.default)

    def part(self) -> tuple[str, int, bool]:
        return self.name, self.components, self.is_integer

    def flat(self, value: Any) -> list[float]:
        """The numbers of a value of it, a matrix column after column."""
        if type(value) is float and not self.shape and not self.is_integer and math.isfinite(value):
            return [value]  # most are: quick
        array = numbers(value, f"{self.group} {self.name}", ProgramError)
        if not np.isfinite(array).all():
            raise ProgramError(f"{self.group} {self.name} is {value!r}, which is not finite")
        _must_be_whole(self, array)
        if array.shape != self.shape:
            try:
                array = np.broadcast_to(array, self.shape)
            except ValueError:
                raise ProgramError(f"{self.group} {self.name} has shape {self.shape}, not {array.shape}") from None
        return array.T.reshape(-1).tolist()

    def symbols(self, make: Callable[[int], int], trace: Trace, first: int) -> Any:
        """The value whose first number is input `first`."""
        reals = [Real(trace, make(first + k)) for k in range(self.components)]
        if self.is_integer:
            return reals[0]._unary("held")
        if not self.shape:
            return reals[0]
        return Vector(reals) if len(self.shape) == 1 else Matrix(self.shape[0], reals)

    def reals(self, value: Any, trace: Trace) -> list[int]:
        """The numbers of what a kernel says it is, as the formula has them."""
        if self.is_integer:
            return [trace.integer(value)._unary("hold")._value]
        if not self.shape:
            if isinstance(value, (Vector, Matrix)):
                raise refuse(f"{self.name} is a number, not {value!r}")
            return [trace.real(value)._value]
        if len(self.shape) == 1:
            value = vector(value)
        elif not isinstance(value, Matrix):
            raise refuse(f"{self.name} is a matrix of {self.shape[0]} rows, not {type(value).__name__}")
        if len(value._reals) != self.components:
            raise refuse(f"{self.name} has {self.components} components, not {len(value._reals)}")
        return [real._seen_by(trace)._value for real in value._reals]


def shared(shape: Any = (), *, integer: bool = False, of_cells: bool = False) -> Any:
    """Declares a field that neighbors read, such as a position: a number, a vector `shared(3)` or a matrix `shared((3, 3))`.

    `of_cells`: it is of the cells of the mesh, and not of its points: its values are those of the first of the program's `parts`, which has a vertex
    for each cell.
    """
    return Declaration("shared", shape, integer, of_cells=of_cells)


def private(shape: Any = (), *, integer: bool = False, of_cells: bool = False) -> Any:
    """Declares a field that only its vertex reads, such as a mass. `of_cells`: as for `shared`."""
    return Declaration("private", shape, integer, of_cells=of_cells)


def parameter(default: Any = 0.0, shape: Any = None, *, integer: bool = False) -> Any:
    """Declares a number, vector or matrix that all kernels read, and that may change between steps."""
    return Declaration("parameter", np.shape(default) if shape is None else shape, integer, default)


def globals_(default: Any = 0.0, shape: Any = None, *, integer: bool = False) -> Any:
    """Declares a number that all kernels read as `p.globals.NAME` and stages write. `default`: at the start."""
    return Declaration("global", np.shape(default) if shape is None else shape, integer, default)


class Star:
    """What lies around a vertex: elements of one kind, each with data."""

    def __init__(self, shape: str, corners: int, data: Mapping[str, Any], directed: bool = False) -> None:
        self.shape, self.corners, self.is_directed, self.name = shape, corners, directed, ""
        self.data: list[Declaration] = []
        for name, of in data.items():
            declaration = of if isinstance(of, Declaration) else Declaration("data", of)
            declaration.group, declaration.name = "data", name
            self.data.append(declaration)
        self.reals = sum(of.components for of in self.data)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


def vertices(**data: Any) -> Star:
    """Declares a star of single vertices: what lies around one and joins it to no other, as a face of the boundary does around a cell. `Program.stars`
    says which, and `formula` of `around.NAME.sum` is given the data alone."""
    return Star("vertex", 1, data)


def edges(**data: Any) -> Star:
    """Declares a star of edges, those of the mesh unless `Program.stars` says others. `data`: names and shapes of what each has: `edges(length=1)`."""
    return Star("edge", 2, data)


def directed_edges(**data: Any) -> Star:
    """Declares a star of edges `[from, to]`, of which only `to` sees `from`. `Program.stars` says which."""
    return Star("edge", 2, data, directed=True)


def triangles(**data: Any) -> Star:
    """Declares a star of triangles, those of the mesh unless `Program.stars` says others."""
    return Star("triangle", 3, data)


def quads(**data: Any) -> Star:
    """Declares a star of quads, those of the mesh unless `Program.stars` says others."""
    return Star("quad", 4, data)


def tets(**data: Any) -> Star:
    """Declares a star of tetrahedra (or hinges), those of the mesh unless `Program.stars` says others."""
    return Star("tet", 4, data)


def pyramids(**data: Any) -> Star:
    """Declares a star of pyramids, those of the mesh unless `Program.stars` says others."""
    return Star("pyramid", 5, data)


def wedges(**data: Any) -> Star:
    """Declares a star of wedges, those of the mesh unless `Program.stars` says others."""
    return Star("wedge", 6, data)


def hexes(**data: Any) -> Star:
    """Declares a star of hexahedra, those of the mesh unless `Program.stars` says others."""
    return Star("hex", 8, data)


class Record:
    """The values of some declared numbers, by name. `replace` makes another one; they can be set, too."""

    def __init__(self, what: str, values: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_what", what)
        object.__setattr__(self, "_values", dict(values))

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise refuse(f"{self._what} has no {name}, but {', '.join(self._values) or 'nothing'}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self.__getattr__(name)
        self._values[name] = value

    def replace(self, **values: Any) -> "Record":
        """The same with other values."""
        for name in values:
            self.__getattr__(name)
        return Record(self._what, {**self._values, **values})

    def __repr__(self) -> str:
        return f"<{self._what}: {', '.join(self._values)}>"


class Given(Record):
    """What a kernel is given besides its vertex: parameters by name, and `globals`, `step`, `vertex`, random numbers."""

    globals: Record

    def uniform(self, seed: int) -> Real:
        """A random number, uniform in [0, 1): another one for each vertex, step, stage, round and seed."""
        trace = Trace.here()
        return Real(trace, trace.do("random", _seed(seed), False))

    def normal(self, seed: int) -> Real:
        """A random number, normal with mean 0 and variance 1."""
        trace = Trace.here()
        return Real(trace, trace.do("random", _seed(seed), True))

    @property
    def step(self) -> Integer:
        """Steps taken before this one."""
        return Real(Trace.here(), Trace.here().do("input", "step", 0))._unary("held")

    @property
    def vertex(self) -> Integer:
        """The number of the vertex along the curve."""
        return Real(Trace.here(), Trace.here().do("input", "vertex", 0))._unary("held")


def _seed(seed: Any) -> int:
    if not isinstance(seed, (int, np.integer)) or not -(2**31) <= seed < 2**31:
        raise refuse(f"a seed is an integer of 32 bits, a number of Python, not {seed!r}")
    return int(seed)


def _flatten(value: Any, leaves: list[Any]) -> Any:
    """Takes apart what a loop gathers. Returns what puts it together again from reals."""
    if isinstance(value, tuple) or isinstance(value, list):
        parts = [_flatten(part, leaves) for part in value]
        kind = type(value)
        return lambda reals: kind(part(reals) for part in parts)
    if isinstance(value, dict):
        named = {name: _flatten(part, leaves) for name, part in value.items()}
        return lambda reals: {name: part(reals) for name, part in named.items()}
    if isinstance(value, (Vector, Matrix)):
        leaves.extend(value._reals)
        if isinstance(value, Vector):
            n = len(value)
            return lambda reals: Vector([next(reals) for _ in range(n)])
        rows = value._rows
        return lambda reals: Matrix(rows, [next(reals) for _ in range(rows * rows)])
    if isinstance(value, Truth):
        raise refuse("a loop over elements gathers numbers: write meshweft.select(condition, 1.0, 0.0)")
    leaves.append(value if isinstance(value, Integer) else Trace.here().real(value))
    if isinstance(value, Integer):
        return lambda reals: next(reals)._unary("held")
    return lambda reals: next(reals)


def _slot(leaf: Any) -> int:
    """The real that holds a leaf."""
    return leaf._unary("hold")._value if isinstance(leaf, Integer) else leaf._seen_by(Trace.here())._value


class StarView:
    """The elements around the vertex that is updated."""

    def __init__(self, star: Star, index: int, shared: Sequence[Declaration]) -> None:
        self._star, self._index, self._shared = star, index, shared

    def fold(self, start: Any, formula: Callable[..., Any]) -> Any:
        """Gathers something over the elements, one after the other: `formula(gathered, *others, data)` is what is gathered after one of them.

        `others`: shared fields of the other vertices of the element, in the order that keeps its orientation with the vertex itself first. `data`
        is given only if the star has some.
        """
        trace = Trace.here()
        leaves: list[Any] = []
        build = _flatten(start, leaves)
        names = [f"part{k}" for k in range(len(leaves))]
        slots = [(name, isinstance(leaf, Integer), _slot(leaf)) for name, leaf in zip(names, leaves)]
        gathered = self._open(trace, slots)
        following: list[Any] = []
        new = formula(build(iter(gathered)), *self._element(trace))
        _flatten(new, following)
        return self._close(trace, leaves, following, build)

    def sum(self, formula: Callable[..., Any]) -> Any:
        """Adds up `formula(*others, data)` over the elements, component by component, from zeros."""
        trace = Trace.here()
        # How much it adds up is known once it has run: first on a copy of the formula, which is thrown away.
        with Trace(trace.name, trace) as attempt:
            self._open(attempt, [("unknown", False, attempt.real(0.0)._value)])
            leaves: list[Any] = []
            _flatten(formula(*self._element(attempt)), leaves)
        shape = [isinstance(leaf, Integer) for leaf in leaves]
        zeros: list[Any] = [trace.integer(0) if is_integer else trace.real(0.0) for is_integer in shape]
        slots = [(f"sum{k}", is_integer, _slot(zero)) for k, (zero, is_integer) in enumerate(zip(zeros, shape))]
        gathered = self._open(trace, slots)
        terms: list[Any] = []
        build = _flatten(formula(*self._element(trace)), terms)
        so_far = [real._unary("held") if is_integer else real for real, is_integer in zip(gathered, shape)]
        return self._close(trace, zeros, [a + b for a, b in zip(so_far, terms)], build)

    def count(self) -> Real:
        """The number of elements around the vertex, as a real."""
        return self.fold(0.0, lambda n, *_: n + 1.0)

    def _open(self, trace: Trace, slots: list[tuple[str, bool, int]]) -> list[Real]:
        star = self._star
        opened = trace.do("open", self._index, star.name, star.corners - 1, star.reals, slots)
        return [Real(trace, value) for value in opened]

    def _element(self, trace: Trace) -> list[Any]:
        arguments: list[Any] = []
        for other in range(self._star.corners - 1):
            arguments.append(_record("a neighbor", self._shared, trace, lambda k: trace.do("other", other, k)))
        if self._star.data:
            arguments.append(_record("an element", self._star.data, trace, lambda k: trace.do("data", k)))
        return arguments

    def _close(self, trace: Trace, leaves: list[Any], following: list[Any], build: Any) -> Any:
        kinds = [[isinstance(leaf, Integer) for leaf in of] for of in (leaves, following)]
        if kinds[0] != kinds[1]:
            raise refuse(
                f"a loop over elements begins with {len(leaves)} numbers and goes on with {len(following)}, or with others of them integers"
            )
        results = trace.do("close", [_slot(leaf) for leaf in following])
        return build(iter([Real(trace, value) for value in results]))


def _record(what: str, declarations: Sequence[Declaration], trace: Trace, make: Callable[[int], int]) -> Record:
    values, first = {}, 0
    for declaration in declarations:
        values[declaration.name] = declaration.symbols(make, trace, first)
        first += declaration.components
    return Record(what, values)


class Around:
    """What lies around a vertex: `around.NAME` is a star, and `around.sum` and `around.fold` go along the only one."""

    def __init__(self, stars: Sequence[Star], shared: Sequence[Declaration]) -> None:
        self._stars = {star.name: StarView(star, index, shared) for index, star in enumerate(stars)}

    def __getattr__(self, name: str) -> StarView:
        try:
            return self._stars[name]
        except KeyError:
            raise refuse(f"the program has no star {name}, but {', '.join(self._stars) or 'none'}") from None

    def _only(self) -> StarView:
        if len(self._stars) != 1:
            raise refuse(f"the program has {len(self._stars)} stars: write around.NAME.sum(...) with one of {', '.join(self._stars)}")
        return next(iter(self._stars.values()))

    def sum(self, formula: Callable[..., Any]) -> Any:
        """As `StarView.sum` of the only star."""
        return self._only().sum(formula)

    def fold(self, start: Any, formula: Callable[..., Any]) -> Any:
        """As `StarView.fold` of the only star."""
        return self._only().fold(start, formula)

    def count(self) -> Real:
        """As `StarView.count` of the only star."""
        return self._only().count()


class Kernel:
    """A formula of a program, as a plain function."""

    def __init__(self, function: Callable[..., Any], purpose: str, quiet: bool = False, metric: Any = None) -> None:
        self.function, self.purpose, self.is_quiet, self.metric = function, purpose, quiet, metric
        self.name = function.__name__
        self.__doc__ = function.__doc__
        given = {"map": 2, "scalar": 1, "test": 1}.get(purpose, 3)
        parameters = list(inspect.signature(function).parameters.values())
        words = ", ".join(("p", "own", "around")[:given])
        if len(parameters) < given:
            raise refuse(f"kernel {self.name} takes ({words}), and names of settings after that")
        self.settings = [parameter.name for parameter in parameters[given:]]
        if len(self.settings) > 4:
            raise refuse(f"kernel {self.name} has {len(self.settings)} settings, at most 4")
        self.defaults = {p.name: p.default for p in parameters[given:] if p.default is not inspect.Parameter.empty}

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        """What the formula makes of them, for another kernel: `Heat.relax(p, own, around).temperature`."""
        return self.function(*arguments)

    @property
    def place(self) -> str:
        """Where it stands."""
        code = self.function.__code__
        return f"{code.co_filename}:{code.co_firstlineno}: kernel {self.name}"

    def __repr__(self) -> str:
        return f"<{self.purpose} kernel {self.name}>"

    def trace(self, declared: "Declared") -> Trace:
        """Runs it once on symbols."""
        with Trace(self.name) as trace:
            make = lambda group: lambda k: trace.do("input", group, k)
            given = Given("the program", _record("", declared.parameters, trace, make("parameters"))._values)
            object.__setattr__(given, "globals", _record("the record of globals", declared.globals, trace, make("globals")))
            settings = [Real(trace, trace.do("input", "settings", k)) for k in range(len(self.settings))]
            arguments: list[Any] = [given]
            if self.purpose not in ("scalar", "test"):
                own = {
                    **_record("", declared.shared, trace, make("shared"))._values,
                    **_record("", declared.private, trace, make("private"))._values,
                }
                arguments.append(Record("the vertex", own))
            if self.purpose not in ("scalar", "test", "map"):
                arguments.append(Around(declared.stars, declared.shared))
            result = self.function(*arguments, *settings)
            with at(self.place):
                trace.do("finish", self._outputs(result, declared, trace))
        return trace

    def _outputs(self, result: Any, declared: "Declared", trace: Trace) -> list[int]:
        name = self.place
        if self.purpose in ("map", "update", "scalar"):
            what = "its new globals: return p.globals.replace(...)" if self.purpose == "scalar" else "the new vertex: return own.replace(...)"
            if not isinstance(result, Record):
                raise ProgramError(f"{name} returns {type(result).__name__}, and must return {what}")
            parts = declared.globals if self.purpose == "scalar" else [*declared.shared, *declared.private]
            if list(result._values) != [part.name for part in parts]:
                raise ProgramError(f"{name} returns {result!r}, and must return {what}")
            return [value for part in parts for value in part.reals(result._values[part.name], trace)]
        if self.purpose == "test":
            return [trace.truth(result)._value]
        if isinstance(result, (Vector, Matrix, Record, tuple)) or result is None:
            raise ProgramError(f"{name} measures one number a vertex, and returns {type(result).__name__}")
        return [trace.real(result)._value]


def _decorator(purpose: str, **more: Any) -> Callable[..., Any]:
    return lambda function: Kernel(function, purpose, **more)


def map(function: Callable[..., Any]) -> Any:
    """A kernel `(p, own)` that returns the new vertex from the old one."""
    return Kernel(function, "map")


def update(function: Callable[..., Any] | None = None, *, quiet: bool = False) -> Any:
    """A kernel `(p, own, around)` that returns the new vertex from the old one and its neighbors. More arguments are settings.

    `quiet`: it may be left out where nothing has changed since it last ran there.
    """
    return _decorator("update", quiet=quiet) if function is None else Kernel(function, "update", quiet)


def measure(how: str, label: str | None = None, unit: str = "") -> Any:
    """A kernel `(p, own, around)` that returns a number for each vertex, combined over the mesh: `"sum"`, `"minimum"` or `"maximum"`. With a label
    it is one of the metrics."""
    if how not in ("sum", "minimum", "maximum"):
        raise refuse(f"a measure is a sum, a minimum or a maximum, not {how!r}")
    return _decorator(how, metric=None if label is None else (label, unit))


def scalar(function: Callable[..., Any]) -> Any:
    """A kernel `(p)` that returns the new globals, once for the whole mesh."""
    return Kernel(function, "scalar")


def test(function: Callable[..., Any]) -> Any:
    """A kernel `(p)` that returns a condition on parameters and globals, once for the whole mesh."""
    return Kernel(function, "test")


def _made(purposes: Sequence[str]) -> str:
    return "@meshweft." + ("measure" if "sum" in purposes or purposes[0] in ("minimum", "maximum") else purposes[0])


def _setting(kernel: Kernel, name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise refuse(f"setting {name} of kernel {kernel.name} is a number, not {value!r}") from None


class Stages:
    """Receives the stages of a step, in order. Nothing runs while it is told."""

    def __init__(self, program: "Program") -> None:
        self._kernels = {id(kernel): number for number, kernel in enumerate(program._declared.kernels)}
        self._globals = program._declared.globals
        self._list: list[dict[str, Any]] = []
        self._loops: list[dict[str, Any]] = []

    def _add(self, what: str, kernel: Any, purposes: Sequence[str], count: int, settings: dict[str, float]) -> dict[str, Any]:
        number = self._kernels.get(id(kernel))
        if number is None:
            of = f"kernel {kernel.name} of another program" if isinstance(kernel, Kernel) else repr(kernel)
            raise refuse(f"{what} takes a kernel of the program, such as self.NAME, not {of}")
        if not isinstance(count, (int, np.integer)) or not 0 <= count < 2**32:
            raise refuse(f"{what} takes so many rounds, 0 or more, not {count!r}")
        if kernel.purpose not in purposes:
            raise refuse(f"{what} takes kernels made by {_made(purposes)}; {kernel.name} is made by {_made([kernel.purpose])}")
        if what == "fixpoint" and not kernel.is_quiet:
            raise refuse(f"fixpoint takes a quiet kernel, since others may change by themselves: @meshweft.update(quiet=True) on {kernel.name}")
        unknown = [name for name in settings if name not in kernel.settings]
        if unknown:
            raise refuse(f"kernel {kernel.name} has no setting {unknown[0]}, but {', '.join(kernel.settings) or 'none'}")
        values = {**kernel.defaults, **settings}
        missing = [name for name in kernel.settings if name not in values]
        if missing:
            raise refuse(f"setting {missing[0]} of kernel {kernel.name} has no value")
        return self._tell(what, int(count), number, [_setting(kernel, name, values[name]) for name in kernel.settings])

    def _tell(self, what: str, count: int, kernel: int = 0, settings: Sequence[float] = ()) -> dict[str, Any]:
        self._list.append({"what": what, "kernel": kernel, "settings": list(settings), "count": count, "repeat": []})
        return self._list[-1]

    def map(self, kernel: Any, **settings: float) -> None:
        """Updates every vertex by itself."""
        self._add("map", kernel, ["map"], 0, settings)

    def sweep(self, kernel: Any, rounds: int = 1, **settings: float) -> None:
        """Updates every vertex so many times in place, in the order of the schedule (Gauss-Seidel)."""
        self._add("sweep", kernel, ["update"], rounds, settings)

    def sweep_backward(self, kernel: Any, rounds: int = 1, **settings: float) -> None:
        """Sweeps in the reverse order."""
        self._add("sweep_backward", kernel, ["update"], rounds, settings)

    def jacobi(self, kernel: Any, rounds: int = 1, **settings: float) -> None:
        """Updates every vertex so many times from the old values of all neighbors."""
        self._add("jacobi", kernel, ["update"], rounds, settings)

    def fixpoint(self, kernel: Any, most: int, **settings: float) -> None:
        """Updates every vertex from old values until that changes nothing, at most so many times. The kernel must be quiet."""
        self._add("fixpoint", kernel, ["update"], most, settings)

    def reduce(self, kernel: Any, into: str, **settings: float) -> None:
        """Measures every vertex, and writes the combination into a global."""
        self._add("reduce", kernel, ["sum", "minimum", "maximum"], self._place(into), settings)

    def _place(self, of: str) -> int:
        first = 0
        for part in self._globals:
            if part.name == of:
                if part.components != 1:
                    raise refuse(f"global {of} is not a number")
                return first
            first += part.components
        raise refuse(f"the program has no global {of}, but {', '.join(part.name for part in self._globals) or 'none'}")

    def scalar(self, kernel: Any, **settings: float) -> None:
        """Computes new globals."""
        self._add("scalar", kernel, ["scalar"], 0, settings)

    def lasts(self, global_: str) -> None:
        """The step lasts as long as a global says when it is over, in seconds, which must be above 0. `time_step` is then the longest that it may."""
        self._tell("lasts", self._place(global_))

    def on(self, part: int) -> ContextManager[None]:
        """The stages that are told inside of the `with` update the vertices of one part alone: 0 those of the mesh, then those of `parts`."""
        part = whole(part, 0, 2**32 - 1, f"on part {part!r}", ProgramError)
        self._loops.append(self._tell("on", part))
        return self._inside(self._loops[-1]["repeat"])

    def until(self, test: Any, most: int, **settings: float) -> ContextManager[None]:
        """Repeats the stages that are told inside of the `with` until a test holds, at most so many times. The test comes first."""
        self._loops.append(self._add("until", test, ["test"], most, settings))
        return self._inside(self._loops[-1]["repeat"])

    @contextmanager
    def _inside(self, repeat: list[dict[str, Any]]) -> Iterator[None]:
        outside, self._list = self._list, repeat
        try:
            yield
        finally:
            self._list = outside


def _is_value(of: Any) -> bool:
    return isinstance(of, (int, float, tuple, list, np.ndarray, np.generic))


class Declared:
    """What a class declares, in order."""

    def __init__(self, program: type) -> None:
        members: dict[str, Any] = {}
        for base in reversed(program.__mro__):
            for name, member in list(vars(base).items()):
                inherited = members.get(name)
                if isinstance(inherited, Declaration) and inherited.group in ("parameter", "global") and _is_value(member):
                    # Another value for what a base class declares.
                    member = Declaration(inherited.group, inherited.shape, inherited.is_integer, member)
                    member.name = name
                    setattr(base, name, member)
                members[name] = member
        twice = [name for name, member in members.items() if isinstance(member, (Declaration, Star, Kernel)) and member.name != name]
        if twice:
            raise refuse(f"{twice[0]} is another name of {members[twice[0]].name}: declare it by itself")
        of = lambda kind: [member for member in members.values() if isinstance(member, kind)]
        fields = of(Declaration)
        self.shared = [field for field in fields if field.group == "shared"]
        self.private = [field for field in fields if field.group == "private"]
        self.parameters = [field for field in fields if field.group == "parameter"]
        self.globals = [field for field in fields if field.group == "global"]
        self.stars: list[Star] = of(Star)
        self.kernels: list[Kernel] = of(Kernel)
        # What stands in a class and means something else already.
        for name in ("initial", "fixed", "parts", "stars", "step", "time_step"):
            if isinstance(members.get(name), (Declaration, Star, Kernel)):
                raise refuse(f"{name} is a word of programs: give it another name")
        for what, all, words in (
            ("field", [*self.shared, *self.private], ("replace",)),
            ("parameter", self.parameters, ("globals", "normal", "replace", "step", "uniform", "vertex")),
            ("global", self.globals, ("replace",)),
            ("star", self.stars, ("count", "fold", "sum")),
        ):
            for member in all:
                if member.name in words or member.name.startswith("_"):
                    raise refuse(f"no {what} is named {member.name}: give it another name")


class Program:
    """A physical model on a mesh: subclass it, declare fields, parameters and stars, write kernels, and say what a step does.

    Parameters are arguments of the class, by name, and attributes of its instances that may change between steps.
    """

    time_step: "float | str" = 1.0
    """The time that a step advances, in seconds; or the name of the parameter that says so, which `Simulation.step_until` shortens."""

    _declared: Declared

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._declared = Declared(cls)

    def __init__(self, **parameters: Any) -> None:
        known = [parameter.name for parameter in self._declared.parameters]
        for name, value in parameters.items():
            if name not in known and name != "time_step":
                raise refuse(f"{type(self).__name__} has no parameter {name}, but {', '.join(known) or 'none'}")
            setattr(self, name, value)

    def initial(self, mesh: Mesh) -> Mapping[str, Any]:
        """The state at the start: arrays by the names of fields, or one value for all. Zero where nothing is said.

        Arrays are over the vertices of the mesh, of a field of cells over these, or over the vertices of all parts.
        """
        return {}

    def fixed(self, mesh: Mesh) -> Any:
        """Which vertices keep their state, whatever the kernels say: an array of truths over those of the mesh, or of all parts, or None."""
        return None

    def parts(self, mesh: Mesh) -> Sequence[Any]:
        """Where the vertices are that the program has beside those of the mesh, part by part: arrays of shape (vertices, 3). They are numbered
        behind those of the mesh, one part after the other, and `stages.on(1)` updates the first part alone."""
        return []

    def stars(self, mesh: Mesh) -> Mapping[str, Any]:
        """Elements of the stars by name, shape (elements, corners), where they are not those of the mesh; with data, `(elements, {name: values})`.

        Values of data have shape (elements, ...), or (elements, corners, ...) where the corners of an element see different ones. For the
        elements of the mesh give None in place of an array.
        """
        return {}

    def step(self, stages: Stages) -> None:
        """Tells the stages of a step. Asked once, when a simulation is built."""
        raise ProgramError(f"{type(self).__name__} says nothing of its steps: write def step(self, stages)")

    def _values(self) -> list[float]:
        return [x for parameter in self._declared.parameters for x in parameter.flat(getattr(self, parameter.name))]

    def _time_parameter(self) -> int | None:
        """Which number of the parameters is the time step."""
        if not isinstance(self.time_step, str):
            return None
        first = 0
        for parameter in self._declared.parameters:
            if parameter.name == self.time_step and not parameter.shape and not parameter.is_integer:
                return first
            first += parameter.components
        raise ProgramError(f"time_step is {self.time_step!r}, which is no parameter of {type(self).__name__} that is a real number")

    def _time_step(self) -> float:
        place = self._time_parameter()
        if place is not None:
            return self._values()[place]
        if type(self.time_step) is float and math.isfinite(self.time_step):
            return self.time_step  # most are: quick
        step = numbers(self.time_step, "time_step", ProgramError)
        if step.shape != () or not math.isfinite(step):
            raise ProgramError(f"time_step is a finite number, not {self.time_step!r}")
        return float(step)

    def _data(self, mesh: Mesh) -> dict[str, Any]:
        """All of it as data."""
        declared = self._declared
        stages = Stages(self)
        self.step(stages)
        for what in [loop["what"] for loop in stages._loops if not loop["repeat"]]:
            raise ProgramError(f"{what} has no stages in {type(self).__name__}.step: write `with stages.{what}(...):` and stages inside of it")
        kernels = []
        for kernel in declared.kernels:
            kernels.append(
                {
                    "name": kernel.name,
                    "purpose": kernel.purpose,
                    "is_quiet": kernel.is_quiet,
                    "metric": kernel.metric,
                    "formula": kernel.trace(declared).formula,
                }
            )
        parts = [_places(points, f"part {number} of {type(self).__name__}") for number, points in enumerate(self.parts(mesh), 1)]
        total = len(mesh) + sum(len(points) for points in parts)
        try:
            given = self.fixed(mesh)
            fixed = np.zeros(0 if given is None else total, bool)
            if given is not None:
                own = fixed if np.shape(given) == (total,) else fixed[: len(mesh)]
                own[:] = np.broadcast_to(np.asarray(given), len(own))
        except ValueError:
            raise ProgramError(f"fixed has shape ({len(mesh)},), a truth for each vertex, not {np.shape(given)}") from None
        return {
            "name": f"{type(self).__module__}.{type(self).__qualname__}",
            "shared": [part.part() for part in declared.shared],
            "private": [part.part() for part in declared.private],
            "parameters": [part.part() for part in declared.parameters],
            "globals": [part.part() for part in declared.globals],
            "stars": self._star_data(mesh, total),
            "kernels": kernels,
            "parts": [points.reshape(-1) for points in parts],
            "of_cells": [part.name for part in [*declared.shared, *declared.private] if part.is_of_cells],
            "initial": self._initial(mesh, parts),
            "fixed": fixed,
            "start": [x for part in declared.globals for x in part.flat(part.default)],
            "values": self._values(),
            "time_step": self._time_step(),
            "time_parameter": self._time_parameter(),
            "step": stages._list,
        }

    def _initial(self, mesh: Mesh, beside: Sequence[Any]) -> Any:
        parts = [*self._declared.shared, *self._declared.private]
        given = _mapping(self.initial(mesh), f"{type(self).__name__}.initial")
        unknown = [name for name in given if name not in [part.name for part in parts]]
        if unknown:
            raise ProgramError(f"{type(self).__name__} has no field {unknown[0]}, but {', '.join(part.name for part in parts)}")
        total = len(mesh) + sum(len(points) for points in beside)

        def column(part: Declaration) -> Any:
            first, count = (len(mesh), len(beside[0])) if part.is_of_cells and beside else (0, len(mesh))
            value = numbers(given.get(part.name, 0.0), part.name, ProgramError)
            if value.shape in ((), part.shape, (total, *part.shape)):
                return rows(part, value, total, "vertices")
            own = rows(part, value, count, "cells" if first else "vertices")
            return np.concatenate([np.zeros((first, own.shape[1])), own, np.zeros((total - first - count, own.shape[1]))])

        columns = [column(part) for part in parts]
        return np.ascontiguousarray(np.concatenate([np.zeros((total, 0)), *columns], axis=1)).reshape(-1)

    def _star_data(self, mesh: Mesh, total: int) -> list[dict[str, Any]]:
        given, stars = _mapping(self.stars(mesh), f"{type(self).__name__}.stars"), []
        for star in self._declared.stars:
            of = given.pop(star.name, None)
            elements, data = of if isinstance(of, tuple) and len(of) == 2 and isinstance(of[1], Mapping) else (of, {})
            is_given = elements is not None
            if not is_given:
                elements = mesh.elements(star.shape)
            try:
                elements = np.asarray(elements)
            except ValueError:
                raise ProgramError(f"elements of star {star.name} do not have {star.corners} corners each") from None
            if star.corners == 1 and elements.ndim == 1:
                elements = elements[:, None]
            if elements.size == 0:
                elements = elements.reshape(-1, star.corners).astype(np.uint32)
            if elements.ndim != 2 or elements.shape[1] != star.corners or elements.dtype.kind not in "iu":
                raise ProgramError(
                    f"elements of star {star.name} are integers of shape (elements, {star.corners}), not {elements.dtype} of {elements.shape}"
                )
            if elements.size and not 0 <= elements.min() <= elements.max() < total:
                raise ProgramError(
                    f"elements of star {star.name} have corners from {elements.min()} to {elements.max()}, but there are {total} vertices"
                )
            # The mesh's own that are folded count for nothing.
            ordered = np.sort(elements, axis=1) if is_given else elements[:0]
            twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
            if twice.size:
                raise ProgramError(
                    f"element {twice[0]} of star {star.name} has a vertex twice: {elements[twice[0]].tolist()}. Leave it out, or take a star of "
                    "meshweft.vertices() for what is at one vertex alone"
                )
            elements = np.ascontiguousarray(elements, dtype=np.uint32)
            stars.append(
                {
                    "name": star.name,
                    "shape": star.shape,
                    "is_directed": star.is_directed,
                    "elements": elements.reshape(-1),
                    "parts": [part.part() for part in star.data],
                    "data": _element_data(star, len(elements), dict(data)),
                }
            )
        if given:
            raise ProgramError(f"{type(self).__name__} has no star {next(iter(given))}, but {', '.join(star.name for star in self._declared.stars)}")
        return stars


def _places(points: Any, what: str) -> Any:
    array = numbers(points, what, ProgramError)
    if array.ndim != 2 or array.shape[1] != 3:
        raise ProgramError(f"{what} has points of shape (vertices, 3), not {array.shape}")
    return np.ascontiguousarray(array)


def _mapping(of: Any, what: str) -> dict[str, Any]:
    if not isinstance(of, Mapping):
        raise ProgramError(f"{what} returns a dict by names, not {type(of).__name__}")
    return dict(of)


def _element_data(star: Star, elements: int, data: dict[str, Any]) -> Any:
    columns, by_corner = [], False
    for part in star.data:
        if part.name not in data:
            raise ProgramError(f"data {part.name} of star {star.name} has no values: Program.stars gives them")
        array = numbers(data.pop(part.name), f"data {part.name} of star {star.name}", ProgramError)
        by_corner = by_corner or array.shape == (elements, star.corners, *part.shape)
        columns.append((part, array))
    if data:
        raise ProgramError(f"star {star.name} has no data {next(iter(data))}")
    made = []
    for part, array in columns:
        if array.shape == (elements, star.corners, *part.shape):
            made.append(rows(part, array.reshape(elements * star.corners, *part.shape), elements * star.corners, "corners"))
        else:
            of = rows(part, array, elements, "elements")
            made.append(np.repeat(of, star.corners, axis=0) if by_corner else of)
    count = elements * star.corners if by_corner else elements
    return np.ascontiguousarray(np.concatenate([np.zeros((count, 0)), *made], axis=1)).reshape(-1)


def _must_be_whole(part: Declaration, array: Any) -> None:
    if part.is_integer and not (np.all(array == np.floor(array)) and np.all(abs(array) < 2.0**31)):
        wrong = array[(array != np.floor(array)) | ~(abs(array) < 2.0**31)]
        raise ProgramError(f"{part.name} is an integer of 32 bits, and not {wrong.flat[0]}")


def rows(part: Declaration, value: Any, count: int, what: str) -> Any:
    """Values of a declared number as rows of reals, a matrix column after column."""
    array = numbers(value, part.name, ProgramError)
    shape = (count, *part.shape)
    if array.shape != shape:
        try:
            array = np.broadcast_to(array, shape)
        except ValueError:
            raise ProgramError(f"{part.name} has shape {shape} for {count} {what}, not {array.shape}") from None
    _must_be_whole(part, array)
    if len(part.shape) == 2:
        array = array.transpose(0, 2, 1)
    return array.reshape(count, part.components)
