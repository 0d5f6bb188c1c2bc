"""What a step of shallow water costs beside NumPy on a grid and a loop in C over cells and faces: first order, 64 bits, the channel with hills.
`python docs/perf/water.py [--command MESHWEFT] [--steps N] [--trials N] 601x241 ..`: points of the grid. Needs numpy, and cc. All take turns,
and must come to the same water; nothing else should run."""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np

G, DRAG, COURANT, LEVEL, DAM, LENGTH = 9.81, 0.003, 0.3, 1.875, 16.0, 75.0


def channel(nx, ny):
    """Beds and depths of the cells of a grid, and the side of one."""
    side = LENGTH / (nx - 1)
    x, y = np.meshgrid((np.arange(nx - 1) + 0.5) * side, (np.arange(ny - 1) + 0.5) * side)
    scaled = y * 30.0 / (side * (ny - 1))
    hill = lambda a, b, height, slope: height - slope * np.hypot(x - a, scaled - b)
    beds = np.maximum.reduce([hill(30, 6, 1, 0.125), hill(30, 24, 1, 0.125), hill(47.5, 15, 3, 0.3), np.zeros_like(x)])
    return beds, np.maximum(np.where(x < DAM, LEVEL, 0.0) - beds, 0.0), side


def flux(ha, ua, ta, za, hb, ub, tb, zb):
    sill = np.maximum(za, zb)
    a, b = np.maximum(za + ha - sill, 0), np.maximum(zb + hb - sill, 0)
    ca, cb = np.sqrt(G * a), np.sqrt(G * b)
    mean, wave = 0.5 * (ua + ub) + (ca - cb), np.maximum(0.5 * (ca + cb) + 0.25 * (ua - ub), 0)
    low = np.minimum(np.where(a > 0, np.minimum(ua - ca, mean - wave), ub - 2 * cb), 0)
    high = np.maximum(np.where(b > 0, np.maximum(ub + cb, mean + wave), ua + 2 * ca), 0)
    width, both = np.maximum(high - low, 1e-12), low * high
    volume = (high * a * ua - low * b * ub + both * (b - a)) / width
    wa, wb = 0.5 * G * a * a, 0.5 * G * b * b
    push = (high * (a * ua * ua + wa) - low * (b * ub * ub + wb) + both * (b * ub - a * ua)) / width
    return volume, push - wa, push - wb, volume * np.where(volume > 0, ta, tb)


def by_numpy(nx, ny, steps):
    """Slices of a grid, in which walls are cells around it."""
    beds, depths, side = channel(nx, ny)
    h, z = (np.pad(field, 1, mode="edge") for field in (depths, beds))
    u, v = np.zeros_like(h), np.zeros_like(h)
    film, inner = 1e-5 * depths.max(), (slice(1, -1), slice(1, -1))
    start = time.perf_counter()
    for _ in range(steps):
        for field, turned in ((h, 1), (u, 1), (v, -1)):
            field[0], field[-1] = turned * field[1], turned * field[-2]
        for field, turned in ((h, 1), (u, -1), (v, 1)):
            field[:, 0], field[:, -1] = turned * field[:, 1], turned * field[:, -2]
        speed = np.hypot(u[inner], v[inner]) + np.sqrt(G * h[inner])
        dt = COURANT / (np.where(h[inner] > film, speed, 0).max() / (0.5 * side))
        west, east = (slice(1, -1), slice(0, -1)), (slice(1, -1), slice(1, None))
        south, north = (slice(0, -1), slice(1, -1)), (slice(1, None), slice(1, -1))
        vx, pxa, pxb, dx = flux(h[west], u[west], v[west], z[west], h[east], u[east], v[east], z[east])
        vy, pya, pyb, dy = flux(h[south], v[south], u[south], z[south], h[north], v[north], u[north], z[north])
        share = dt / side
        rest = vx[:, 1:] - vx[:, :-1] + vy[1:] - vy[:-1]
        depth = np.maximum(h[inner] - share * rest, 0)
        x = u[inner] * h[inner] - share * (pxa[:, 1:] - pxb[:, :-1] + dy[1:] - dy[:-1])
        y = v[inner] * h[inner] - share * (pya[1:] - pyb[:-1] + dx[:, 1:] - dx[:, :-1])
        wet = depth > film
        safe = np.where(wet, depth, 1.0)
        slowed = safe * (1 + dt * DRAG * np.hypot(x, y) / safe / safe)
        h[inner], u[inner], v[inner] = depth, np.where(wet, x / slowed, 0), np.where(wet, y / slowed, 0)
    return time.perf_counter() - start, np.hypot(u, v).max()


def by_c(nx, ny, steps):
    """A loop over faces, in the order of a grid."""
    source = pathlib.Path(__file__).with_suffix(".c")
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/water.so"
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        run = ctypes.CDLL(library).run
    run.restype = ctypes.c_double
    beds, depths, side = channel(nx, ny)
    number = np.arange(beds.size, dtype=np.int32).reshape(beds.shape)
    right = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], 1)
    up = np.stack([number[:-1].ravel(), number[1:].ravel()], 1)
    walls = [(number[:, 0], (-1, 0)), (number[:, -1], (1, 0)), (number[0], (0, -1)), (number[-1], (0, 1))]
    cells = [right, up] + [np.stack([own, np.full_like(own, -1)], 1) for own, _ in walls]
    normals = [np.tile((1.0, 0.0), (len(right), 1)), np.tile((0.0, 1.0), (len(up), 1))]
    normals += [np.tile(np.array(normal, float), (len(own), 1)) for own, normal in walls]
    cells, normals = np.ascontiguousarray(np.concatenate(cells), np.int32), np.ascontiguousarray(np.concatenate(normals))
    lengths, areas, widths = np.full(len(cells), side), np.full(beds.size, side * side), np.full(beds.size, 0.5 * side)
    beds, depths = beds.ravel().copy(), depths.ravel().copy()
    speeds, rests = np.zeros((beds.size, 2)), np.zeros((beds.size, 3))
    at = lambda array: array.ctypes.data_as(ctypes.c_void_p)
    sizes = [ctypes.c_size_t(number) for number in (steps, beds.size, len(cells))]
    arrays = [at(array) for array in (cells, normals, lengths, areas, widths, beds, depths, speeds, rests)]
    numbers = [ctypes.c_double(x) for x in (G, DRAG, COURANT, 1e-5 * depths.max())]
    start = time.perf_counter()
    run(*sizes, *arrays, *numbers)
    return time.perf_counter() - start, np.hypot(*speeds.T).max()


def by_meshweft(command, threads, nx, ny, steps):
    words = [command, "run", "shallow-water", "--mesh", f"quads:{nx}x{ny}", "--set", "accuracy=first", "--precision", "f64"]
    words += ["--steps", str(steps), "--every", str(steps), "--threads", str(threads), "--quiet", "--no-pictures", "--json"]
    words += ["--checkpoint-every", "never"]
    with tempfile.TemporaryDirectory() as out:
        said = json.loads(subprocess.run([*words, "--out", out], check=True, capture_output=True, text=True).stdout)
    return said["wall_s"], said["metrics"]["fastest"]["value"]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--command", default="meshweft")
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--trials", type=int, default=3)
    options.add_argument("grids", nargs="+", metavar="NXxNY")
    options = options.parse_args()
    for grid in options.grids:
        nx, ny = map(int, grid.split("x"))
        cells = (nx - 1) * (ny - 1)
        print(f"{grid}: {cells} cells, {options.steps} steps", flush=True)
        ways = {"numpy": lambda: by_numpy(nx, ny, options.steps), "c": lambda: by_c(nx, ny, options.steps)}
        for threads in (1, 2):
            ways[f"meshweft, {threads} threads"] = lambda threads=threads: by_meshweft(options.command, threads, nx, ny, options.steps)
        for _ in range(options.trials):
            for name, way in ways.items():
                seconds, fastest = way()
                print(f"  {name:20} {1e9 * seconds / cells / options.steps:8.1f} ns a cell and step, fastest {fastest:.9g} m/s", flush=True)


if __name__ == "__main__":
    main()
