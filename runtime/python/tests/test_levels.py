"""Wheels for many machines: which build of the extension module is loaded."""

import shutil
import subprocess
import sys
from pathlib import Path

import meshweft
import pytest
from meshweft import _levels

V3, V4 = _levels.LEVELS["v3"], _levels.LEVELS["v4"]


def test_the_best_level_is_that_of_which_all_flags_are_there():
    assert _levels.best(set()) is None
    assert _levels.best(V3 - {"fma"}) is None
    assert _levels.best(V3 | {"sse2"}) == "v3"
    assert _levels.best(V4) is None, "a level has those below it"
    assert _levels.best(V3 | V4) == "v4"


@pytest.mark.skipif(_levels.best(_levels._flags()) is None, reason="this processor has no level above the second")
def test_a_wheel_of_several_levels_loads_the_best_that_it_has(tmp_path):
    package = Path(meshweft.__file__).parent
    shutil.copytree(package, tmp_path / "meshweft", ignore=shutil.ignore_patterns("__pycache__", "_levels"))
    level = tmp_path / "meshweft" / "_levels" / "v3"
    level.mkdir(parents=True)
    (tmp_path / "meshweft" / "_meshweft.abi3.so").rename(level / "_meshweft.abi3.so")
    script = "import meshweft; print(meshweft._simulation._meshweft.__file__, len(meshweft.Mesh.generate('chain:3')))"
    said = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert said.split() == [str(level / "_meshweft.abi3.so"), "3"]
