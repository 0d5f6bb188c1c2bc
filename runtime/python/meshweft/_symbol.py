"""Numbers that are not known yet: arithmetic on them is written down, once, and run later for every vertex."""

from __future__ import annotations

import math
import numbers
import operator
import os
import sys
import threading
from contextlib import contextmanager
from types import FrameType
from typing import Any, Callable, Iterable, Iterator, Union

import numpy as np

from ._meshweft import Formula, ProgramError

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def where() -> str:
    """File and line of whoever called the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"


_thread = threading.local()


def refuse(message: str) -> ProgramError:
    """An error that says where in the program it is."""
    return ProgramError(f"{getattr(_thread, 'place', None) or where()}: {message}")


@contextmanager
def at(place: str) -> Iterator[None]:
    """Errors inside of it are of this place: what a kernel returns is looked at when it has returned."""
    _thread.place = place
    try:
        yield
    finally:
        _thread.place = None


class Trace:
    """The kernel that is being traced. One at a time, in each thread that traces one."""

    def __init__(self, name: str, within: "Trace | None" = None) -> None:
        """`within`: it is a try on a copy of that one's formula, and sees its symbols; none of its own symbols is seen there."""
        self.name, self._within = name, within
        self.formula: Formula = Formula() if within is None else within.formula.copy()

    def __enter__(self) -> "Trace":
        self._outer, _thread.trace = Trace.current(), self
        return self

    def __exit__(self, *_: object) -> None:
        _thread.trace = self._outer

    @staticmethod
    def current() -> "Trace | None":
        return getattr(_thread, "trace", None)

    @staticmethod
    def here() -> "Trace":
        trace = Trace.current()
        if trace is None:
            raise refuse("symbols are there while a kernel is traced alone: use this inside of a kernel")
        return trace

    def sees(self, other: "Trace") -> bool:
        """Whether symbols of another trace may be used in this one."""
        return self is other or self._within is not None and self._within.sees(other)

    def whole(self) -> "Trace":
        """That of the kernel."""
        return self if self._within is None else self._within.whole()

    def do(self, what: str, *arguments: Any) -> Any:
        """Puts something onto the formula; what it refuses is told with file and line."""
        try:
            return getattr(self.formula, what)(*arguments)
        except ProgramError as error:
            raise refuse(str(error)) from None

    def symbol(self, value: int) -> Any:
        kind = {"real": Real, "integer": Integer, "truth": Truth}[self.do("type_of", value)]
        return kind(self, value)

    def real(self, of: Any) -> "Real":
        """A number or a symbol as a real."""
        if isinstance(of, Real):
            return of._seen_by(self)
        if isinstance(of, Symbol):
            way = "meshweft.real(...) makes one of an integer" if isinstance(of, Integer) else "write meshweft.select(condition, 1.0, 0.0)"
            raise refuse(f"{of._word} stands where a real is: {way}")
        try:
            number = float(of)
        except (TypeError, ValueError, OverflowError):
            raise refuse(f"{type(of).__name__} {of!r} stands where a real is") from None
        return Real(self, self.do("real", number))

    def integer(self, of: Any) -> "Integer":
        """A number or a symbol as an integer."""
        if isinstance(of, Integer):
            return of._seen_by(self)
        if isinstance(of, (bool, Symbol)) or not hasattr(of, "__index__"):
            what = of._word if isinstance(of, Symbol) else f"{type(of).__name__} {of!r}"
            raise refuse(f"{what} stands where an integer is: meshweft.integer(...) makes one of a real")
        number = int(of)
        if not -(2**31) <= number < 2**31:
            raise refuse(f"{number} does not fit into the 32 bits of an integer")
        return Integer(self, self.do("integer", number))

    def truth(self, of: Any) -> "Truth":
        """A truth value of Python or a symbol."""
        if isinstance(of, Truth):
            return of._seen_by(self)
        if isinstance(of, (bool, np.bool_)):
            return Truth(self, self.do("truth", bool(of)))
        what = of._word if isinstance(of, Symbol) else f"{type(of).__name__} {of!r}"
        raise refuse(f"{what} stands where a condition is: write a comparison")


Number = Union["Symbol", int, float]


class _OfNumpy:
    """What functions of NumPy are given as it is: they are those of this package where there is one."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        return _of_numpy(ufunc if method == "__call__" else None, f"{ufunc.__name__}", inputs, more)

    def __array_function__(self, function: Any, _: Any, inputs: Any, more: Any) -> Any:
        return _of_numpy(function, f"{function.__name__}", inputs, more)


class Symbol(_OfNumpy):
    """One number of a vertex, not known yet."""

    __slots__ = ("_trace", "_value")
    _word = "a symbol"

    def __init__(self, trace: Trace, value: int) -> None:
        self._trace, self._value = trace, value

    def _seen_by(self, trace: Trace) -> Any:
        if not trace.sees(self._trace):
            if trace.whole() is self._trace.whole():
                raise refuse("a value that depends on one element is used outside of the loop over elements: return it from there")
            raise refuse(f"a symbol of kernel {self._trace.name} is used in kernel {trace.name}: return it there instead")
        return self

    def __bool__(self) -> bool:
        raise refuse(
            "the value of this is not known while a kernel is traced, so Python cannot decide by it (if, and, or, not, while, min, max): "
            "write meshweft.select(condition, yes, no), and & | ~ between conditions"
        )

    def _no_number(self, *_: object) -> Any:
        raise refuse(
            "the value of this is not known while a kernel is traced: use the functions of meshweft (meshweft.sqrt, meshweft.exp, "
            "meshweft.floor ...) in place of those of math and numpy"
        )

    __float__ = __int__ = __index__ = __complex__ = __round__ = __trunc__ = __ceil__ = _no_number

    def __iter__(self) -> Any:
        raise refuse("this is one number: only vectors have components")

    def __getitem__(self, _: Any) -> Any:
        raise refuse("this is one number: only vectors have components")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise refuse(f"{self._word} has no {name}")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<{self._word} of kernel {self._trace.name}>"


class _Arithmetic(Symbol):
    """Reals and integers."""

    __slots__ = ()

    @classmethod
    def _of(cls, trace: Trace, other: Any) -> Any:
        raise NotImplementedError

    def _with(self, op: str, other: Any, swapped: bool = False) -> Any:
        if isinstance(other, (Vector, Matrix)):
            return NotImplemented
        if isinstance(other, np.ndarray) and other.ndim:
            other = _of_array(other)
            return getattr(operator, _OPERATORS[op])(*((other, self) if swapped else (self, other)))
        trace = Trace.here()
        self._seen_by(trace)
        other = self._of(trace, other)
        a, b = (other, self) if swapped else (self, other)
        return trace.symbol(trace.do("binary", op, a._value, b._value))

    def _unary(self, op: str, bits: int = 0) -> Any:
        trace = Trace.here()
        self._seen_by(trace)
        return trace.symbol(trace.do("unary", op, self._value, bits))

    def __add__(self, other: Any) -> Any:
        return self._with("add", other)

    def __radd__(self, other: Any) -> Any:
        return self._with("add", other, True)

    def __sub__(self, other: Any) -> Any:
        return self._with("sub", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("sub", other, True)

    def __mul__(self, other: Any) -> Any:
        return self._with("mul", other)

    def __rmul__(self, other: Any) -> Any:
        return self._with("mul", other, True)

    def __neg__(self) -> Any:
        return self._unary("neg")

    def __pos__(self) -> Any:
        return self

    def __lt__(self, other: Any) -> "Truth":
        return self._with("less", other)

    def __le__(self, other: Any) -> "Truth":
        return self._with("at_most", other)

    def __gt__(self, other: Any) -> "Truth":
        return self._with("less", other, True)

    def __ge__(self, other: Any) -> "Truth":
        return self._with("at_most", other, True)

    def __eq__(self, other: Any) -> "Truth":  # type: ignore[override]
        return self._with("equals", other)

    def __ne__(self, other: Any) -> "Truth":  # type: ignore[override]
        return ~self._with("equals", other)

    __hash__ = Symbol.__hash__


class Real(_Arithmetic):
    """A real, not known yet."""

    __slots__ = ()
    _word = "a real"

    @classmethod
    def _of(cls, trace: Trace, other: Any) -> "Real":
        return trace.real(other)

    def __truediv__(self, other: Any) -> Any:
        return self._with("div", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("div", other, True)

    def __mod__(self, other: Any) -> Any:
        return self._with("rem", other)

    def __rmod__(self, other: Any) -> Any:
        return self._with("rem", other, True)

    def __pow__(self, exponent: Any) -> "Real":
        if isinstance(exponent, (int, np.integer)) and not isinstance(exponent, bool):
            return _power(self, int(exponent))
        return self._with("pow", exponent)

    def __rpow__(self, base: Any) -> "Real":
        return self._with("pow", base, True)

    def __abs__(self) -> "Real":
        return self._unary("abs")

    def __floor__(self) -> "Real":
        return self._unary("floor")

    def __floordiv__(self, other: Any) -> "Real":
        return floor(self / other)

    def __rfloordiv__(self, other: Any) -> "Real":
        return floor(other / self)


class Integer(_Arithmetic):
    """An integer of 32 bits, not known yet. Arithmetic wraps around."""

    __slots__ = ()
    _word = "an integer"

    @classmethod
    def _of(cls, trace: Trace, other: Any) -> "Integer":
        return trace.integer(other)

    def __and__(self, other: Any) -> "Integer":
        return self._with("and", other)

    def __or__(self, other: Any) -> "Integer":
        return self._with("or", other)

    def __xor__(self, other: Any) -> "Integer":
        return self._with("xor", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, bits: int) -> "Integer":
        return self._unary("shift_left", _bits(bits))

    def __rshift__(self, bits: int) -> "Integer":
        return self._unary("shift_right", _bits(bits))

    def __truediv__(self, other: Any) -> Any:
        raise refuse("integers are not divided, nor raised to powers: write meshweft.real(a) / meshweft.real(b)")

    __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __pow__ = __truediv__


def _bits(bits: Any) -> int:
    if not isinstance(bits, int) or not 0 <= bits < 32:
        raise refuse("integers are shifted by 0 to 31 bits, a number of Python")
    return bits


class Truth(Symbol):
    """A condition, not known yet. `&`, `|` and `~` are and, or and not."""

    __slots__ = ()
    _word = "a condition"

    def _with(self, op: str, other: Any) -> "Truth":
        trace = Trace.here()
        self._seen_by(trace)
        return trace.symbol(trace.do("binary", op, self._value, trace.truth(other)._value))

    def __and__(self, other: Any) -> "Truth":
        return self._with("and", other)

    def __or__(self, other: Any) -> "Truth":
        return self._with("or", other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> "Truth":
        trace = Trace.here()
        self._seen_by(trace)
        return trace.symbol(trace.do("unary", "not", self._value))


def _power(base: Real, exponent: int) -> Real:
    # By repeated squares, as `powi` of the runtime.
    power, square, bits = None, base, abs(exponent)
    while bits:
        if bits & 1:
            power = square if power is None else power * square
        bits >>= 1
        if bits:
            square = square * square
    power = Trace.here().real(1.0) if power is None else power
    return 1.0 / power if exponent < 0 else power


def _is_number(of: Any) -> bool:
    return isinstance(of, (Symbol, numbers.Real)) or isinstance(of, np.ndarray) and of.ndim == 0


class Vector(_OfNumpy):
    """A vector of one to four reals, not known yet: `+ - *` and `/` by component, `@` the scalar product."""

    __slots__ = ("_reals",)

    def __init__(self, reals: Iterable[Number]) -> None:
        trace = Trace.here()
        self._reals: list[Real] = [trace.real(x) for x in reals]

    @property
    def x(self) -> Real:
        return self[0]

    @property
    def y(self) -> Real:
        return self[1]

    @property
    def z(self) -> Real:
        return self[2]

    @property
    def w(self) -> Real:
        return self[3]

    def __len__(self) -> int:
        return len(self._reals)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return Vector(self._reals[k])
        try:
            return self._reals[k]
        except IndexError:
            raise refuse(f"a vector of {len(self)} reals has no component {k}") from None

    def __iter__(self) -> Any:
        return iter(self._reals)

    def __repr__(self) -> str:
        return f"<a vector of {len(self)} reals>"

    def _zip(self, other: Any, op: Callable[[Any, Any], Any]) -> "Vector":
        if isinstance(other, Matrix):
            return NotImplemented
        if _is_number(other):
            return Vector(op(a, other) for a in self)
        other = vector(other)
        if len(other) != len(self):
            raise refuse(f"vectors of {len(self)} and {len(other)} reals do not go together")
        return Vector(op(a, b) for a, b in zip(self, other))

    def __add__(self, other: Any) -> "Vector":
        return self._zip(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> "Vector":
        return self._zip(other, lambda a, b: b + a)

    def __sub__(self, other: Any) -> "Vector":
        return self._zip(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> "Vector":
        return self._zip(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> "Vector":
        return self._zip(other, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> "Vector":
        return self._zip(other, lambda a, b: b * a)

    def __truediv__(self, other: Any) -> "Vector":
        return self._zip(other, lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> "Vector":
        return self._zip(other, lambda a, b: b / a)

    def __neg__(self) -> "Vector":
        return Vector(-x for x in self)

    def __pos__(self) -> "Vector":
        return self

    def __abs__(self) -> "Vector":
        return Vector(abs(x) for x in self)

    def __matmul__(self, other: Any) -> Real:
        if isinstance(other, Matrix) or isinstance(other, np.ndarray) and other.ndim == 2:
            raise refuse("a vector stands to the right of a matrix: m.T @ v in place of v @ m")
        return self.dot(other)

    def __rmatmul__(self, other: Any) -> Any:
        return _of_array(other) @ self

    def dot(self, other: Any) -> Real:
        """The scalar product."""
        trace, other = Trace.here(), vector(other)
        return Real(trace, trace.do("dot", _values(self), _values(other)))

    def cross(self, other: Any) -> "Vector":
        """The vector product, of three reals each."""
        trace, other = Trace.here(), vector(other)
        return Vector(Real(trace, value) for value in trace.do("cross", _values(self), _values(other)))

    def length(self) -> Real:
        """The Euclidean length."""
        trace = Trace.here()
        return Real(trace, trace.do("length", _values(self)))

    def unit(self) -> "Vector":
        """The vector over its length: NaN of the zero vector."""
        return self / self.length()

    def __bool__(self) -> bool:
        raise refuse("a vector is neither true nor false: compare its components or its length")

    __eq__ = None  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Matrix(_OfNumpy):
    """A square matrix of two to four rows, not known yet: `m[i, j]`, `m @ v`, `m @ m`."""

    __slots__ = ("_rows", "_reals")

    def __init__(self, rows: int, reals: Iterable[Number]) -> None:
        """`reals`: column after column."""
        trace = Trace.here()
        self._rows = rows
        self._reals: list[Real] = [trace.real(x) for x in reals]
        if len(self._reals) != rows * rows:
            raise refuse(f"a matrix of {rows} rows has {rows * rows} reals, not {len(self._reals)}")

    def __getitem__(self, at: tuple[int, int]) -> Real:
        try:
            i, j = at
        except TypeError:
            raise refuse("a matrix has numbers m[i, j] and columns m.column(j)") from None
        if not (0 <= i < self._rows and 0 <= j < self._rows):
            raise refuse(f"a matrix of {self._rows} rows has no number [{i}, {j}]")
        return self._reals[j * self._rows + i]

    def column(self, j: int) -> Vector:
        """A column."""
        return Vector(self._reals[j * self._rows : (j + 1) * self._rows])

    @property
    def T(self) -> "Matrix":
        """The transposed matrix."""
        n = self._rows
        return Matrix(n, (self[j, i] for j in range(n) for i in range(n)))

    def _zip(self, other: Any, op: Callable[[Any, Any], Any]) -> "Matrix":
        if isinstance(other, np.ndarray) and other.ndim == 2:
            other = matrix(other)
        if isinstance(other, Vector):
            raise refuse("a matrix and a vector do not go together, but in m @ v")
        if isinstance(other, Matrix):
            if other._rows != self._rows:
                raise refuse(f"matrices of {self._rows} and {other._rows} rows do not go together")
            return Matrix(self._rows, (op(a, b) for a, b in zip(self._reals, other._reals)))
        return Matrix(self._rows, (op(a, other) for a in self._reals))

    def __add__(self, other: Any) -> "Matrix":
        return self._zip(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> "Matrix":
        return self._zip(other, lambda a, b: b + a)

    def __sub__(self, other: Any) -> "Matrix":
        return self._zip(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> "Matrix":
        return self._zip(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> "Matrix":
        if isinstance(other, (Matrix, Vector, np.ndarray, list, tuple)):
            raise refuse("write a @ b for a product of matrices, and m @ v for that of a matrix and a vector")
        return self._zip(other, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> "Matrix":
        if isinstance(other, (np.ndarray, list, tuple)):
            raise refuse("write a @ b for a product of matrices")
        return self._zip(other, lambda a, b: b * a)

    def __truediv__(self, other: Number) -> "Matrix":
        return self._zip(other, lambda a, b: a / b)

    def __neg__(self) -> "Matrix":
        return Matrix(self._rows, (-x for x in self._reals))

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray) and other.ndim == 2:
            other = matrix(other)
        trace, is_matrix = Trace.here(), isinstance(other, Matrix)
        other = other if is_matrix else vector(other)
        reals = trace.do("product", self._rows, _values(self), _values(other))
        reals = [Real(trace, value) for value in reals]
        return Matrix(self._rows, reals) if is_matrix else Vector(reals)

    def __rmatmul__(self, other: Any) -> Any:
        return matrix(other) @ self

    def determinant(self) -> Real:
        """The determinant, of two or three rows."""
        trace = Trace.here()
        return Real(trace, trace.do("determinant", _values(self)))

    def trace(self) -> Real:
        """The sum of the diagonal."""
        total = self[0, 0]
        for k in range(1, self._rows):
            total = total + self[k, k]
        return total

    def solve(self, v: Any) -> Vector:
        """The vector `x` with `self @ x` equal to `v`, by Cramer's rule, of two or three rows. NaN where there is none."""
        v = vector(v)
        if len(v) != self._rows:
            raise refuse(f"a matrix of {self._rows} rows and a vector of {len(v)} reals do not go together")
        if self._rows == 2:
            a, b = self.column(0), self.column(1)
            area = lambda p, q: p.x * q.y - q.x * p.y
            return Vector([area(v, b), area(a, v)]) / area(a, b)
        if self._rows == 3:
            a, b, c = self.column(0), self.column(1), self.column(2)
            bc = b.cross(c)
            return Vector([v.dot(bc), v.dot(c.cross(a)), v.dot(a.cross(b))]) / a.dot(bc)
        raise refuse("systems of two or three rows are solved")

    def inverse(self) -> "Matrix":
        """The inverse matrix, of two or three rows. NaN or infinite where there is none."""
        n = self._rows
        columns = [self.solve([float(i == j) for i in range(n)]) for j in range(n)]
        return Matrix(n, (x for column in columns for x in column))

    def __repr__(self) -> str:
        return f"<a matrix of {self._rows} rows>"

    __eq__ = None  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def _values(of: "Vector | Matrix") -> list[int]:
    trace = Trace.here()
    return [real._seen_by(trace)._value for real in of._reals]


def vector(*reals: Any) -> Vector:
    """A vector of numbers: `vector(0, 0, -9.81)`, or of a sequence of them."""
    of = reals[0] if len(reals) == 1 and not _is_number(reals[0]) else reals
    if isinstance(of, Vector):
        return of
    try:
        listed = list(of)
    except TypeError:
        raise refuse(f"{type(of).__name__} stands where a vector is") from None
    if isinstance(of, (Matrix, dict, str)) or not 1 <= len(listed) <= 4:
        raise refuse(f"{type(of).__name__} stands where a vector of one to four reals is")
    return Vector(listed)


def matrix(rows: Any) -> Matrix:
    """A square matrix of its rows."""
    if isinstance(rows, Matrix):
        return rows
    try:
        n = len(rows)
        is_square = 2 <= n <= 4 and all(len(row) == n for row in rows)
    except TypeError:
        is_square = False
    if not is_square:
        raise refuse("a matrix is two to four rows of as many numbers each")
    return Matrix(n, (rows[i][j] for j in range(n) for i in range(n)))


def outer(a: Any, b: Any) -> Matrix:
    """The matrix of all products of the components of two vectors of one length."""
    a, b = vector(a), vector(b)
    if len(a) != len(b) or len(a) < 2:
        raise refuse(f"the outer product of vectors of {len(a)} and {len(b)} reals")
    return Matrix(len(a), (x * y for y in b for x in a))


def identity(rows: int) -> Matrix:
    """The matrix that changes nothing."""
    return Matrix(rows, (float(i == j) for j in range(rows) for i in range(rows)))


def _function(name: str, doc: str, of_python: Callable[[float], float]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if isinstance(x, numbers.Real):
            return of_python(float(x))  # a constant of the kernel
        if isinstance(x, Vector):
            return Vector(function(y) for y in x)
        return Trace.here().real(x)._unary(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + " In a kernel it is that of libm, with the same bits on every machine."
    return function


sqrt = _function("sqrt", "The square root: NaN of negative numbers.", math.sqrt)
exp = _function("exp", "The exponential function.", math.exp)
log = _function("log", "The natural logarithm.", math.log)
sin = _function("sin", "The sine of an angle in radians.", math.sin)
cos = _function("cos", "The cosine of an angle in radians.", math.cos)
acos = _function("acos", "The angle in radians, 0 to pi, with that cosine.", math.acos)
tanh = _function("tanh", "The hyperbolic tangent.", math.tanh)
floor = _function("floor", "The largest whole number that is not above.", lambda x: float(math.floor(x)))


def atan2(y: Number, x: Number) -> Any:
    """The angle of a point in radians, -pi to pi."""
    if isinstance(y, numbers.Real) and isinstance(x, numbers.Real):
        return math.atan2(y, x)
    return Trace.here().real(y)._with("atan2", x)


def select(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where a condition holds, else `no`: numbers, vectors, matrices, or tuples of them. Both are computed."""
    trace = Trace.here()
    condition = trace.truth(condition)
    if isinstance(yes, Vector) or isinstance(no, Vector):
        yes, no = (vector([of] * len(other)) if _is_number(of) else vector(of) for of, other in ((yes, no), (no, yes)))
        if len(yes) != len(no):
            raise refuse(f"vectors of {len(yes)} and {len(no)} reals do not go together")
        return Vector(select(condition, a, b) for a, b in zip(yes, no))
    if isinstance(yes, Matrix) or isinstance(no, Matrix):
        yes, no = matrix(yes), matrix(no)
        return yes._zip(no, lambda a, b: select(condition, a, b))
    if isinstance(yes, tuple) and isinstance(no, tuple) and len(yes) == len(no):
        return tuple(select(condition, a, b) for a, b in zip(yes, no))
    if isinstance(yes, Truth) or isinstance(no, Truth):
        yes, no = trace.truth(yes), trace.truth(no)
        return condition & yes | ~condition & no
    of = trace.integer if isinstance(yes, Integer) or isinstance(no, Integer) else trace.real
    yes, no = of(yes), of(no)
    return trace.symbol(trace.do("select", condition._value, yes._value, no._value))


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two numbers, or of each two of two vectors."""
    if isinstance(a, Vector) or isinstance(b, Vector):
        return (a if isinstance(a, Vector) else b)._zip(b if isinstance(a, Vector) else a, minimum)
    a, b = _pair(a, b)
    return select(b < a, b, a)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two numbers, or of each two of two vectors."""
    if isinstance(a, Vector) or isinstance(b, Vector):
        return (a if isinstance(a, Vector) else b)._zip(b if isinstance(a, Vector) else a, maximum)
    a, b = _pair(a, b)
    return select(a < b, b, a)


def clip(x: Any, low: Any, high: Any) -> Any:
    """A number, kept between two others."""
    return minimum(maximum(x, low), high)


def _pair(a: Any, b: Any) -> tuple[Any, Any]:
    trace = Trace.here()
    of = trace.integer if isinstance(a, Integer) or isinstance(b, Integer) else trace.real
    return of(a), of(b)


def sign(x: Any) -> Any:
    """-1, 0 or 1."""
    x = Trace.here().real(x)
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, x))


def _of_array(array: Any) -> Any:
    """An array of NumPy as a number, vector or matrix."""
    array = np.asarray(array)
    if array.ndim == 0:
        return array.item()
    if array.ndim == 1:
        return vector(array)
    if array.ndim == 2:
        return matrix(array)
    raise refuse(f"an array of shape {array.shape} stands where a number, a vector or a matrix is")


_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "truediv",
    "rem": "mod",
    "pow": "pow",
    "less": "lt",
    "at_most": "le",
    "equals": "eq",
    "and": "and_",
    "or": "or_",
    "xor": "xor",
}


def _of_numpy(function: Any, name: str, inputs: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """What a function of NumPy is of symbols."""
    work = _NUMPY.get(function)
    if more or work is None:
        raise refuse(f"numpy.{name} knows no symbols: use the functions of meshweft")
    return work(*(_of_array(of) if isinstance(of, np.ndarray) else of.item() if isinstance(of, np.generic) else of for of in inputs))


_NUMPY: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.power: operator.pow,
    np.matmul: operator.matmul,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.absolute: abs,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
    np.invert: operator.invert,
    np.square: lambda x: x * x,
    np.sqrt: sqrt,
    np.exp: exp,
    np.log: log,
    np.sin: sin,
    np.cos: cos,
    np.arccos: acos,
    np.tanh: tanh,
    np.floor: floor,
    np.arctan2: atan2,
    np.minimum: minimum,
    np.maximum: maximum,
    np.sign: lambda x: sign(x),
    np.where: select,
    np.clip: clip,
    np.dot: operator.matmul,
    np.cross: lambda a, b: vector(a).cross(b),
    np.outer: outer,
    np.linalg.norm: lambda v: vector(v).length(),
    np.linalg.det: lambda m: m.determinant(),
    np.linalg.inv: lambda m: m.inverse(),
    np.linalg.solve: lambda m, v: matrix(m).solve(v),
}


def real(of: Any) -> Real:
    """An integer as a real."""
    return of._unary("real") if isinstance(of, Integer) else Trace.here().real(of)


def integer(of: Any) -> Integer:
    """A real without its fraction, as an integer of 32 bits."""
    return of._unary("integer") if isinstance(of, Real) else Trace.here().integer(of)
