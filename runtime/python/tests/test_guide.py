"""The guide does what it says: its blocks run, one after the other."""

import importlib.util
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "python.md"


def test_every_block_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda url: None)
    if not GUIDE.exists():
        pytest.skip("the guide is not here")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    text = GUIDE.read_text()
    pictures = {"heat.png", "plate.png"}
    if importlib.util.find_spec("pyvista") is None:
        # All else runs.
        text, pictures = re.sub(r"^sim\.plot\(.*\)$", "", text, flags=re.M), {"plate.png"}
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed")
    for block in re.finditer(r"```python\n(.*?)```", text, re.S):
        code, line = block[1], text[: block.start()].count("\n") + 1
        exec(compile("\n" * line + code, str(GUIDE), "exec"), names)
    assert {path.name for path in tmp_path.iterdir()} >= pictures | {"heat.vtu", "slide.vtu", "states", "square.vtu"}
