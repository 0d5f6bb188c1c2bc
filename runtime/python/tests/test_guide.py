"""The guide does what it says: its blocks run, one after the other."""

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
    needs = {"sim.plot": "pyvista", "matplotlib": "matplotlib"}
    text = GUIDE.read_text()
    for block in re.finditer(r"```python\n(.*?)```", text, re.S):
        code, line = block[1], text[: block.start()].count("\n") + 1
        for words, package in needs.items():
            if words in code:
                pytest.importorskip(package)
        exec(compile("\n" * line + code, str(GUIDE), "exec"), names)
    assert {path.name for path in tmp_path.iterdir()} >= {"heat.png", "plate.png", "heat.vtu", "states", "square.vtu"}
