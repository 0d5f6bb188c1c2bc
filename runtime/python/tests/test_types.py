"""The stub of the extension lists what it has, and the package fits it."""

import ast
import subprocess
import sys
from pathlib import Path

import meshweft
import pytest
from meshweft import _meshweft

FOLDER = Path(meshweft.__file__).parent


def names(of):
    return {name for name in dir(of) if not name.startswith("_")}


def test_the_stub_lists_what_the_extension_has():
    tree = ast.parse((FOLDER / "_meshweft.pyi").read_text())
    imported = {alias.asname or alias.name for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert names(_meshweft) == set(classes) | functions - imported
    for name, node in classes.items():
        if not issubclass(getattr(_meshweft, name), Exception):
            stated = {of.name for of in node.body if isinstance(of, ast.FunctionDef) and not of.name.startswith("_")}
            assert names(getattr(_meshweft, name)) == stated, name


def test_the_package_is_typed(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    run = subprocess.run([sys.executable, "-m", "mypy", "-p", "meshweft"], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout
