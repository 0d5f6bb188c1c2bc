#!/usr/bin/env python3
"""What a round should take on 2 to 1,024 hosts, from the real cuts of a real mesh: docs/perf/scaling.md has the model and its figures.

    docs/perf/predict.py EXAMPLE MESH NS [THREADS] [HOSTS,...]

NS: what an update of one thread takes, in nanoseconds, measured. THREADS: of each host [1]. Needs the built command.
"""
import json
import math
import subprocess
import sys

MESHWEFT = "target/release/meshweft"
# Colors of blocks that wait for each other in a round.
WAVES = {"spring": 13, "heat": 13, "cloth": 4, "wave": 9}
# What a value takes from the thread that computed it to the one that waits for it, and bytes a second.
LINKS = {"loopback": (60e-6, 2e9), "10 Gbit/s": (100e-6, 1.18e9), "1 Gbit/s": (120e-6, 0.118e9)}


def cut(example, mesh, hosts):
    command = [MESHWEFT, "info", mesh, "--parts", str(hosts), "--example", example, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def round_s(host, ns, threads, waves, latency, rate):
    """The longer of two: all updates of a host, and the chain of its tasks at the border with their messages."""
    task = host["vertices"] / max(host["tasks"], 1) * ns * 1e-9
    work = host["tasks"] * task / threads
    border = min(host["tasks"], host["messages_a_round"])
    chain = waves * (math.ceil(border / waves / threads) * task + latency) + host["bytes_a_round"] / rate
    return max(work, chain if host["neighbors"] else 0.0)


def main():
    example, mesh, ns = sys.argv[1], sys.argv[2], float(sys.argv[3])
    threads = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    counts = [int(n) for n in sys.argv[5].split(",")] if len(sys.argv) > 5 else [2 ** k for k in range(1, 11)]
    one = None
    print(f"| hosts × {threads} | largest share | at the border | sent a host | " + " | ".join(LINKS) + " |")
    print("|---" * (4 + len(LINKS)) + "|")
    for count in counts:
        info = cut(example, mesh, count)
        one = one or info["vertices"] * ns * 1e-9 / threads
        largest = max(info["hosts"], key=lambda host: host["vertices"])
        sent = max(host["bytes_a_round"] for host in info["hosts"])
        cells = []
        for latency, rate in LINKS.values():
            took = max(round_s(host, ns, threads, WAVES[example], latency, rate) for host in info["hosts"])
            cells.append(f"{1e3 * took:.2f} ms, {one / took:.1f}")
        print(f"| {count} | {largest['vertices']:,} | {100 * info['boundary_share']:.1f} % | {sent / 1e3:.0f} kB | " + " | ".join(cells) + " |")


main()
