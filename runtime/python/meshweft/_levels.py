"""Which build of the extension module is loaded: a wheel for many machines holds one for each level of x86-64."""

import importlib.machinery
import importlib.util
import pathlib
import sys

# What /proc/cpuinfo calls the instructions that each level adds to the one before (psABI of x86-64).
LEVELS = {
    "v3": {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
    "v4": {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"},
}


def best(flags):
    """The highest level of a processor with these flags; None below v3."""
    found = None
    for level, needed in LEVELS.items():
        if not needed <= flags:
            break
        found = level
    return found


def _flags():
    try:
        with open("/proc/cpuinfo") as info:
            return next((set(line.split(":", 1)[1].split()) for line in info if line.startswith("flags")), set())
    except OSError:
        return set()


def load():
    """Loads the best build for this processor as `meshweft._meshweft`, where there are several. Otherwise the only one is imported as ever."""
    folder, name = pathlib.Path(__file__).parent / "_levels", "meshweft._meshweft"
    level = best(_flags()) if folder.is_dir() and name not in sys.modules else None
    while level:
        path = folder / level / "_meshweft.abi3.so"
        if path.exists():
            loader = importlib.machinery.ExtensionFileLoader(name, str(path))
            spec = importlib.util.spec_from_loader(name, loader)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            loader.exec_module(module)
            return
        level = "v3" if level == "v4" else None
