"""Programs of Python give the digests of the same programs in Rust: `tests/tests/twins` has them compiled."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import meshweft
import numpy as np
import pytest

RECORD = json.loads((Path(__file__).parent / "digests.json").read_text())
CASES = [(name, case) for name, of in RECORD.items() for case in of["digests"]]
ENGINES = [("serial", None), ("cpu", 1), ("cpu", 2), ("cpu", 3)]


def prepared(name):
    """Mesh, program, and what the application does before each step."""
    module = importlib.import_module(f"programs.{name}")
    mesh = meshweft.Mesh.generate(RECORD[name]["mesh"])
    if name == "finite_volumes":
        dual = mesh.dual()
        return dual.mesh, module.Advection(dual), lambda sim: None
    if name == "page_rank":
        mesh = meshweft.Mesh.from_graph(50, module.LINKS)
    (program,) = [of for of in vars(module).values() if isinstance(of, type) and issubclass(of, meshweft.Program)]
    return mesh, program(), getattr(module, "adapt", lambda sim: None)


def after(name, **options):
    mesh, program, before = prepared(name)
    sim = meshweft.Simulation(mesh, program, **options)
    for _ in range(RECORD[name]["steps"]):
        before(sim)
        sim.step()
    return sim


@pytest.mark.parametrize("name, case", CASES)
def test_every_engine_gives_the_digest_of_the_program_in_rust(name, case):
    order, precision = case.split()
    for backend, threads in ENGINES:
        sim = after(name, order=order, precision=precision, backend=backend, threads=threads)
        assert sim.digest() == RECORD[name]["digests"][case], f"{backend}, {threads} threads"


@pytest.mark.parametrize("name", ["spring_sheet", "ising", "conjugate_gradients"])
def test_processes_give_it_too(name):
    sim = after(name, order="blocked:16", processes=2, threads=1)
    assert sim.digest() == RECORD[name]["digests"]["blocked:16 f32"]


def test_hosts_that_join_give_it_too():
    hosts = meshweft.Hosts(2, listen="127.0.0.1:0")
    script = "import meshweft, sys; meshweft.work(sys.stdin.readline().strip())"
    workers = [subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, text=True) for _ in range(2)]
    for worker in workers:
        worker.stdin.write(hosts.token + "\n")
        worker.stdin.flush()
    sim = after("wave", order="blocked:16", hosts=hosts, threads=1)
    assert sim.digest() == RECORD["wave"]["digests"]["blocked:16 f32"]
    with pytest.raises(meshweft.Error, match="have run a simulation already"):
        after("wave", hosts=hosts)
    del sim
    assert [worker.wait(timeout=30) for worker in workers] == [0, 0]


@pytest.mark.parametrize("name", RECORD)
def test_a_gpu_is_close_to_it(name):
    if not meshweft.adapters():
        if os.environ.get("REQUIRE_GPU"):
            pytest.fail("no adapter")
        pytest.skip("no adapter")
    gpu = after(name, order="color", backend="gpu")
    assert gpu.adapter
    oracle = after(name, order="color", backend="serial")
    if name in ("ising", "percolation", "rumor"):
        assert gpu.digest() == oracle.digest(), "integers are the same everywhere"
        return
    for field in oracle.fields:
        if name == "conjugate_gradients" and field != "x":
            continue  # what is left of the residual is rounding alone
        own, expected = (np.asarray(sim[field], dtype=float) for sim in (gpu, oracle))
        scale = max(abs(np.asarray(oracle[other], dtype=float)).max() for other in oracle.fields)
        assert abs(own - expected).max() <= 1e-4 * scale, field


def test_every_program_is_on_record():
    modules = {path.stem for path in (Path(__file__).parent / "programs").glob("*.py")} - {"__init__"}
    assert modules == set(RECORD)
