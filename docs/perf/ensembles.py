#!/usr/bin/env python3
"""Times copies of a small scene beside one large scene: ensembles.py [ROUNDS]. Pairs take turns; prints medians and ratios of pairs."""

import json
import statistics
import subprocess
import sys
import tempfile

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
PROGRAM = "target/release/meshweft"


def run(*words):
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "run", "cloth", "--no-pictures", "--quiet", "--json", "--set", "touching=off", "--out", folder, *map(str, words)]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def large(threads, side=950, steps=5):
    """Nanoseconds an update of one scene, its steps alone."""
    return 1e9 / run("--mesh", f"sheet:{side}", "--threads", threads, "--steps", steps, "--every", steps,
                     "--checkpoint-every", "never")["updates_per_s"]


def copies(threads, count, steps, side=30):
    """The same of copies: of steps alone, and with all that there is besides."""
    report = run("--mesh", f"sheet:{side}", "--threads", threads, "--copies", count, "--steps", steps, "--vary",
                 "stretch=100:2000")
    updates = report["updates_per_s"] * report["wall_s"]
    return [1e9 * s / updates for s in (report["stepped_s"] / report["threads"], report["wall_s"])]


print("| threads | one of 950 × 950 | 1,000 of 30 × 30, steps | 20 steps with set-up | ratio of steps |")
print("|---|---|---|---|---|")
for threads in (1, 2):
    pairs = [(large(threads), *copies(threads, 1000, 20)) for _ in range(ROUNDS)]
    one, many, whole = (statistics.median(column) for column in zip(*pairs))
    ratio = statistics.median(many / one for one, many, _ in pairs)
    print(f"| {threads} | {one:.1f} | {many:.1f} | {whole:.1f} | {ratio:.2f} |", flush=True)

print("\n| copies of 30 × 30 | 1 thread, steps | with set-up | 2 threads, steps | with set-up |")
print("|---|---|---|---|---|")
for count in (1, 10, 100, 1000, 10000):
    steps = 2000 if count == 1 else 200 if count <= 100 else 20
    pairs = [[copies(threads, count, steps) for threads in (1, 2)] for _ in range(min(ROUNDS, 3))]
    cells = [f"{statistics.median(pair[t][k] for pair in pairs):.1f}" for t in (0, 1) for k in (0, 1)]
    print(f"| {count} ({steps} steps) | " + " | ".join(cells) + " |", flush=True)

print("\n| side of a copy | copies | 1 thread, steps | with set-up |")
print("|---|---|---|---|")
for side, count in ((5, 4000), (10, 2000), (30, 300), (100, 30), (300, 3)):
    figures = [copies(1, count, 100 if side < 100 else 20, side) for _ in range(min(ROUNDS, 3))]
    cells = [f"{statistics.median(column):.1f}" for column in zip(*figures)]
    print(f"| {side} | {count} | " + " | ".join(cells) + " |", flush=True)
