"""What a distance constraint of XPBD costs beside PositionBasedDynamics (pyPBD): one sheet, one thread, the same links projected as often.
`python docs/perf/xpbd.py [MESHWEFT]`, with pypbd installed and nothing else running; MESHWEFT is the command, `meshweft` by default."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

# Of both, before a library reads it.
os.environ["OMP_NUM_THREADS"] = "1"
import pypbd

SHEET, DT, ROUNDS, TRIALS = "sheet:200x200", 1 / 600, (50, 250), 5
COMMAND = sys.argv[1] if len(sys.argv) > 1 else "meshweft"


def read(name):
    """Points and triangles of an OBJ file."""
    words = [line.split() for line in open(name) if line.strip()]
    points = [[float(x) for x in w[1:4]] for w in words if w[0] == "v"]
    return points, [[int(c.split("/")[0]) - 1 for c in w[1:4]] for w in words if w[0] == "f"]


class Pypbd:
    """The sheet in pyPBD, whose constraints have a compliance of one over their stiffness, in 64 bits."""

    def __init__(self, points, triangles, links):
        simulation = pypbd.Simulation.getCurrent()
        simulation.initDefault()
        model = simulation.getModel()
        model.addTriangleModel(points, [v for corners in triangles for v in corners])
        for v in range(len(points)):
            model.getParticles().setMass(v, 0.0 if points[v][1] == 1.0 and points[v][0] in (0.0, 1.0) else 1e-4)
        for a, b in links:
            model.addDistanceConstraint_XPBD(a, b, 200.0)
        pypbd.TimeManager.getCurrent().setTimeStepSize(DT)
        self.model, self.step = model, simulation.getTimeStep()
        self.step.setValueUInt(pypbd.TimeStepController.NUM_SUB_STEPS, 1)

    def seconds(self, rounds, steps=4):
        self.step.setValueUInt(pypbd.TimeStepController.MAX_ITERATIONS, rounds)
        self.step.step(self.model)
        start = time.perf_counter()
        for _ in range(steps):
            self.step.step(self.model)
        return (time.perf_counter() - start) / steps


def meshweft(mesh, precision, rounds, steps=20):
    """Seconds of a step of the example."""
    settings = ["bend=0", "obstacles=none", f"dt={DT}", f"rounds={rounds}"]
    with tempfile.TemporaryDirectory() as out:
        words = [COMMAND, "run", "xpbd", "--mesh", mesh, "--threads", "1", "--precision", precision, "--steps", str(steps)]
        words += ["--quiet", "--no-pictures", "--out", out] + [w for setting in settings for w in ("--set", setting)]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    amount, unit = re.search(r"wall\s+([\d.  ]+) (s|ms) for the steps", said).groups()
    return float(amount.replace(" ", "")) * (1.0 if unit == "s" else 1e-3) / steps


def main():
    with tempfile.TemporaryDirectory() as folder:
        mesh = os.path.join(folder, "sheet.obj")
        subprocess.run([COMMAND, "convert", SHEET, mesh], check=True, capture_output=True)
        points, triangles = read(mesh)
        links = sorted({tuple(sorted((t[k - 1], t[k]))) for t in triangles for k in range(3)})
        other = Pypbd(points, triangles, links)
        runs = {
            "meshweft, 32 bits": lambda rounds: meshweft(mesh, "f32", rounds),
            "meshweft, 64 bits": lambda rounds: meshweft(mesh, "f64", rounds),
            "pyPBD, 64 bits": other.seconds,
        }
        costs = {name: [] for name in runs}
        # By turns. The difference of two numbers of rounds leaves out all that a step does besides.
        for _ in range(TRIALS):
            for name, seconds in runs.items():
                few, many = (seconds(rounds) for rounds in ROUNDS)
                costs[name].append(1e9 * (many - few) / ((ROUNDS[1] - ROUNDS[0]) * len(links)))
    print(f"{SHEET}: {len(points)} vertices, {len(links)} links; ns a projection of a link, median of {TRIALS} (least to most)")
    for name, each in costs.items():
        print(f"{name:18} {statistics.median(each):6.1f} ({min(each):.1f} to {max(each):.1f})")


main()
