"""The notebook of the guide, cell by cell."""

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[3] / "docs" / "guide" / "drum.ipynb"


def test_cells_run_and_show_what_they_showed():
    matplotlib = pytest.importorskip("matplotlib", reason="pip install matplotlib")
    matplotlib.use("Agg")
    names, shown = {}, []
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
            texts = (output.get("data", {}).get("text/plain", []) for output in cell["outputs"])
            shown += [text for lines in texts for text in lines]
    assert repr(names["sim"].digest()[:16]) in shown
