#!/usr/bin/env python3
"""Two processes of one thread beside one process of two threads, in alternating pairs; and the same of a hand-written halo exchange.

    docs/perf/pairs.py [BINARY] [PAIRS]

BINARY: the command [target/release/meshweft]. PAIRS: of each run [5]. Prints the median of the ratios of nanoseconds an update, threads
over processes, so that 1 is as fast; the least and the largest; and by how much the processor time of an update is larger, from runs
of two lengths. The last column is docs/perf/halo.c: OpenMP's threads over MPI's processes, through shared memory and through TCP, where
`cc`, `mpicc` and `mpirun` are found (Debian: openmpi-bin, libopenmpi-dev). Takes five minutes; digests must be equal.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

RUNS = [
    ("spring box:128", 60, "spring"),
    ("heat box:128", 12, "heat"),
    ("cloth sheet:512", 12, None),
    ("heat box:128 --order jacobi", 12, None),
    ("heat box:46", 150, None),
]
THREADS, PROCESSES = ["--threads", "2"], ["--processes", "2", "--threads", "1"]


def bench(binary, run, steps, where):
    """What one trial says, and the processor time of all its processes."""
    example, mesh, *order = run.split()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [binary, "bench", example, "--mesh", mesh, *order, "--steps", str(steps), "--trials", "1", "--no-probe", "--json", *where]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return told, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processor_ns(binary, run, steps, where):
    """Processor time of an update: what a longer run takes more than a shorter one, so that set-up does not count."""
    short, long = (bench(binary, run, steps * times, where) for times in (1, 4))
    updates = [told["rounds"] * told["vertices"] for told, _ in (short, long)]
    return 1e9 * (long[1] - short[1]) / (updates[1] - updates[0])


def pairs(binary, run, steps, count):
    ratios, more = [], []
    for turn in range(count):
        order = [THREADS, PROCESSES] if turn % 2 == 0 else [PROCESSES, THREADS]
        told = {len(where): bench(binary, run, steps, where)[0] for where in order}
        threads, processes = told[len(THREADS)], told[len(PROCESSES)]
        assert threads["digest"] == processes["digest"], f"{run}: the digests differ"
        ratios.append(threads["ns_per_update"] / processes["ns_per_update"])
        if turn < 3:
            more.append(processor_ns(binary, run, steps, PROCESSES) / processor_ns(binary, run, steps, THREADS))
    return ratios, more


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
    print("| run | processes as fast as threads | processor time an update | by hand with MPI: shared memory, TCP |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        by_hand = halo(folder)
        for run, steps, kernel in RUNS:
            ratios, more = pairs(binary, run, steps, count)
            hand = "–"
            if kernel and by_hand:
                found = [[by_hand("threads", kernel) / by_hand(how, kernel) for _ in range(count)] for how in ("memory", "tcp")]
                hand = ", ".join(f"{statistics.median(of):.2f}" for of in found)
            spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
            print(f"| `{run}` | {spread} | × {statistics.median(more):.2f} | {hand} |", flush=True)


if __name__ == "__main__":
    main()
