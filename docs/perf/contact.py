#!/usr/bin/env python3
"""Times cloth that touches itself: contact.py [ROUNDS [PYTHON]].

Runs take turns; prints medians. Times are those of a processor, on one thread, as wall time is another's where machines are shared.
PYTHON: one that has Newton (newton 1.8), which then takes the same steps on the same mesh.
"""

import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
PROGRAM = "target/release/meshweft"


def upright(n, m, h, path):
    """An upright strip of n × m vertices, a little wavy: it falls on its lower edge, and folds."""
    with open(path, "w") as file:
        for i in range(n):
            for j in range(m):
                file.write(f"v {0.01 * math.sin(9 * i * h):.9g} {j * h:.9g} {i * h:.9g}\n")
        for i in range(n - 1):
            for j in range(m - 1):
                a, b, c, d = (1 + x * m + y for x, y in ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)))
                for corners in ((a, b, c), (a, c, d)) if (i + j) % 2 == 0 else ((a, b, d), (b, c, d)):
                    file.write("f {} {} {}\n".format(*corners))


def seconds(*command):
    """What a command prints, and the seconds of a processor that it takes."""
    def used():
        return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before = used()
    text = subprocess.run(command, check=True, capture_output=True, env={**os.environ, "RAYON_NUM_THREADS": "1"}).stdout
    return text, used() - before


def cloth(steps, touching, *words):
    """Vertices, and seconds of that many steps and what there is besides, of finding contacts, and of repair."""
    with tempfile.TemporaryDirectory() as folder:
        text, all_s = seconds(PROGRAM, "run", "cloth", "--no-pictures", "--quiet", "--json", "--out", folder, "--threads", "1",
                              "--every", "100000", "--checkpoint-every", "never", "--set", f"touching={touching}",
                              "--steps", str(steps), *words)
    report = json.loads(text)
    # Waiting for a core counts for wall times alone.
    share = all_s / (report["wall_s"] + sum(report["setup_s"].values()))
    return report["vertices"], all_s, share * report["finding_s"], share * report["repair_s"]


NEWTON = """
import sys, time, warp as wp, newton
wp.config.quiet = True
wp.init(); wp.set_device("cpu")
lines = [line.split() for line in open(sys.argv[1])]
places = [[float(x) for x in words[1:]] for words in lines if words[0] == "v"]
corners = [int(x) - 1 for words in lines if words[0] == "f" for x in words[1:]]
low, high = ([f(p[k] for p in places) for k in range(3)] for f in (min, max))
radius = 0.24 * max(h - l for l, h in zip(low, high))
middle = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, low[2] - 2.3 * radius - radius / 3]
stretch, poisson, thickness = 200.0, 0.3, float(sys.argv[3])
builder = newton.ModelBuilder()
builder.add_cloth_mesh(
    pos=wp.vec3(0.0, 0.0, 0.0), rot=wp.quat_identity(), scale=1.0, vel=wp.vec3(0.0, 0.0, 0.0),
    vertices=[wp.vec3(*(x - m for x, m in zip(p, middle))) for p in places], indices=corners, density=0.3,
    tri_ke=stretch / 2 / (1 + poisson), tri_ka=stretch * poisson / (1 - poisson**2), tri_kd=0.0, edge_ke=2e-5, edge_kd=0.0,
    particle_radius=0.006)
builder.add_ground_plane()
builder.add_shape_sphere(-1, xform=wp.transform(wp.vec3(0.0, 0.0, 1.3 * radius), wp.quat_identity()), radius=radius)
builder.color(include_bending=True)
model = builder.finalize()
solver = newton.solvers.SolverVBD(model, iterations=10, particle_enable_self_contact=True,
    particle_self_contact_radius=thickness / 2, particle_self_contact_margin=thickness)
now, then, control = model.state(), model.state(), model.control()
for step in range(int(sys.argv[2])):
    start = time.process_time()
    solver.step(now, then, control, model.collide(now), 1 / 600)
    now, then = then, now
    print("TIME", time.process_time() - start, flush=True)
"""


with tempfile.TemporaryDirectory() as folder:
    strip = os.path.join(folder, "strip.obj")
    upright(150, 60, 0.01, strip)
    scenes = {
        "a sheet of 100 × 100 that falls from two corners": ("--mesh", "sheet:100"),
        "a strip of 150 × 60 that falls upright, and folds": ("--mesh", strip, "--set", "pins=none"),
    }
    print("| scene | steps | touching off, ns a vertex and step | on | ratio | finding | repair | sweeps |")
    print("|---|---|---|---|---|---|---|---|")
    ends = (1, 50, 100, 150, 200)
    ours = {}
    for scene, words in scenes.items():
        rounds = [[[cloth(steps, touching, *words) for touching in ("off", "on")] for steps in ends] for _ in range(ROUNDS)]
        for i, (first, last) in enumerate(zip(ends, ends[1:])):
            figures = []
            for runs in rounds:
                (_, off, _, _), on = ([b - a for a, b in zip(*pair)] for pair in zip(runs[i], runs[i + 1]))
                per_step = 1e9 / (last - first) / runs[i][0][0]
                figures.append([per_step * off, per_step * on[1], on[1] / off, on[2] / on[1], on[3] / on[1]])
            off, on, ratio, finding, repair = (statistics.median(column) for column in zip(*figures))
            ours[last] = on
            print(f"| {scene} | to {last} | {off:.0f} | {on:.0f} | {ratio:.1f} | {finding:.0%} | {repair:.0%} "
                  f"| {1 - finding - repair:.0%} |", flush=True)
    if len(sys.argv) > 2:
        thickness = 0.4 * (2 + math.sqrt(2)) / 3 * 0.01
        text, _ = seconds(sys.argv[2], "-c", NEWTON, strip, "200", str(thickness))
        times = [float(x) for x in re.findall(r"TIME (\S+)", text.decode())]
        print("\n| the strip, steps | Newton, ns a vertex and step | times as long |\n|---|---|---|")
        for last in ends[1:]:
            theirs = 1e9 * statistics.median(times[last - 49:last]) / 9000
            print(f"| to {last} | {theirs:,.0f} | {theirs / ours[last]:.1f} |")
