"""The examples of the command `meshweft`, with their settings: `meshweft.examples.cloth(mesh, stretch=100.0)`."""

from __future__ import annotations

from typing import Any, Callable

from . import _meshweft
from ._mesh import Mesh, numbers
from ._meshweft import Error
from ._simulation import Simulation, _options

__all__: list[str] = []


def _example(name: str, about: str, default: str, usual: str, settings: Any) -> Callable[..., Simulation]:
    def build(
        mesh: "Mesh | str | None" = None,
        *,
        backend: str = "cpu",
        threads: int | None = None,
        order: str | None = None,
        precision: str = usual,
        adapter: int = 0,
        **given: Any,
    ) -> Simulation:
        if isinstance(mesh, str):
            mesh = Mesh.generate(mesh)
        if mesh is not None and not isinstance(mesh, Mesh):
            raise Error(f"an example runs on a meshweft.Mesh, or on the word for one, not on {type(mesh).__name__}")
        chosen = []
        for setting, value in given.items():
            if not isinstance(value, str):
                value = numbers(value, f"setting {setting}", Error)
                if value.shape != ():
                    raise Error(f"setting {setting} is a number or a word, not {value.tolist()}")
                value = repr(float(value))
            chosen.append((setting, value))
        options = _options(backend, threads, order, precision, adapter)
        return Simulation._of_example(_meshweft.example(name, None if mesh is None else mesh._mesh, chosen, options), name)

    lines = [f"    {setting} = {value}{f'  ({unit})' if unit else ''}: {what}" for setting, what, value, unit in settings]
    build.__name__ = build.__qualname__ = name.replace("-", "_")
    build.__doc__ = f"{about}\n\nOn {default} unless another mesh is given. Settings:\n\n" + "\n".join(lines)
    return build


for _info in _meshweft.examples():
    _build = _example(*_info)
    globals()[_build.__name__] = _build
    __all__.append(_build.__name__)
