#!/usr/bin/env python3
"""Two processes of one thread beside one process of two threads, in alternating pairs; and the same of a hand-written halo exchange.

    docs/perf/pairs.py [BINARY] [PAIRS]

BINARY: the command [target/release/meshweft]. PAIRS: of each run [5]. Prints the median of the ratios of nanoseconds an update, threads
over processes, so that 1 is as fast; and the least and the largest. The last column is docs/perf/halo.c: OpenMP's threads over MPI's processes, through shared memory and through TCP, where
`cc`, `mpicc` and `mpirun` are found (Debian: openmpi-bin, libopenmpi-dev). Takes five minutes; digests must be equal.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

RUNS = [
    ("spring box:128", 60, "spring"),
    ("heat box:128", 12, "heat"),
    ("cloth sheet:512 --set touching=off", 12, None),
    ("heat box:128 --order jacobi", 12, None),
    ("heat box:46", 150, None),
]
THREADS, PROCESSES = ["--threads", "2"], ["--processes", "2", "--threads", "1"]


def bench(binary, run, steps, where):
    """What one trial says."""
    example, mesh, *order = run.split()
    command = [binary, "bench", example, "--mesh", mesh, *order, "--steps", str(steps), "--trials", "1", "--no-probe", "--json", *where]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def pairs(binary, run, steps, count):
    """How fast processes are, of threads, in each pair."""
    ratios = []
    for turn in range(count):
        threads_first = turn % 2 == 0
        told = [bench(binary, run, steps, where) for where in ([THREADS, PROCESSES] if threads_first else [PROCESSES, THREADS])]
        threads, processes = told if threads_first else reversed(told)
        assert threads["digest"] == processes["digest"], f"{run}: the digests differ"
        ratios.append(threads["ns_per_update"] / processes["ns_per_update"])
    return ratios


def halo(folder):
    """The same by hand: a function that runs one of the programs, or None."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "halo.c")
    if not all(shutil.which(tool) for tool in ("cc", "mpicc", "mpirun")):
        return None
    flags = ["-O3", "-march=native", "-ffast-math", source, "-lm", "-o"]
    threads, processes = (os.path.join(folder, name) for name in ("threads", "processes"))
    subprocess.run(["cc", "-fopenmp", *flags, threads], check=True)
    subprocess.run(["mpicc", "-DMPI", "-fopenmp-simd", *flags, processes], check=True)
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "--mca", "btl"]
    starts = {"threads": [threads], "memory": [*mpirun, "self,vader", processes], "tcp": [*mpirun, "self,tcp", processes]}

    def run(how, kernel):
        command = [*starts[how], "128", "10" if kernel == "spring" else "20", kernel]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0])

    return run


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "target/release/meshweft"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print("| run | processes as fast as threads | by hand with MPI: shared memory, TCP |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        by_hand = halo(folder)
        for run, steps, kernel in RUNS:
            ratios = pairs(binary, run, steps, count)
            hand = "–"
            if kernel and by_hand:
                found = [[by_hand("threads", kernel) / by_hand(how, kernel) for _ in range(count)] for how in ("memory", "tcp")]
                hand = ", ".join(f"{statistics.median(of):.2f}" for of in found)
            spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
            print(f"| `{run}` | {spread} | {hand} |", flush=True)


if __name__ == "__main__":
    main()
