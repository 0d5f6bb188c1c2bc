"""What solving to a residual of 1e-8 costs beside pyamg, SciPy and PETSc: cubes of tetrahedra of degree 1, in 64 bits, with set-up.
`python docs/perf/solvers.py [--command MESHWEFT] [--threads N] [--trials N] poisson:46 elasticity:32 ..`: an equation, and points along an
edge. Needs numpy, scipy and pyamg; petsc4py and dolfinx where there are some. Solvers take turns; nothing else should run. The matrix of the others is
made with NumPy, which is told apart; that of DOLFINx by itself, as ours is."""

import argparse
import inspect
import itertools
import json
import os
import subprocess
import tempfile
import time

# Of all, before a library reads it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

try:
    import pyamg
except ImportError:
    pyamg = None
try:
    from petsc4py import PETSc
except ImportError:
    PETSc = None
try:
    import dolfinx
    import ufl
    from dolfinx import fem
    from dolfinx.fem import petsc as assembly
    from mpi4py import MPI
except ImportError:
    dolfinx = None

TOLERANCE = 1e-8
YOUNG, POISSON, PULL = 210e9, 0.3, 1e8


def cube(n):
    """Points in Morton order, and six tets of each of the cubes."""
    step = np.stack(np.unravel_index(np.arange(n**3), (n, n, n)), 1)
    spread = lambda x: sum(((x >> bit) & 1) << (3 * bit) for bit in range(10))
    order = np.argsort(sum(spread(step[:, axis]) << axis for axis in range(3)), kind="stable")
    rank = np.empty(n**3, np.int64)
    rank[order] = np.arange(n**3)
    low = np.arange(n**3).reshape(n, n, n)[:-1, :-1, :-1].ravel()
    stride = (n * n, n, 1)
    paths = [np.cumsum([0, *(stride[axis] for axis in path)]) for path in itertools.permutations(range(3))]
    tets = np.concatenate([low[:, None] + path for path in paths])
    return step[order] / (n - 1.0), rank[tets]


def shapes(points, tets):
    """Gradients of the four functions of each tet, and its volume."""
    corners = points[tets]
    edges = np.stack([corners[:, k] - corners[:, 0] for k in (1, 2, 3)], 2)
    inverse = np.linalg.inv(edges)
    return np.concatenate([-inverse.sum(1, keepdims=True), inverse], 1), np.abs(np.linalg.det(edges)) / 6


def poisson(n):
    """A source everywhere, 0 on all sides."""
    points, tets = cube(n)
    slopes, volumes = shapes(points, tets)
    entries = np.einsum("eik,ejk,e->eij", slopes, slopes, volumes)
    places = np.repeat(tets, 4, 1).ravel(), np.tile(tets, (1, 4)).ravel()
    matrix = sparse.csr_matrix((entries.ravel(), places), shape=(n**3, n**3))
    load = np.zeros(n**3)
    np.add.at(load, tets.ravel(), np.repeat(volumes / 4, 4))
    held = ((points < 1e-9) | (points > 1 - 1e-9)).any(1)
    return points, hold(matrix, load, held), None


def elasticity(n):
    """A cube of steel, held at one side and pulled at the other."""
    points, tets = cube(n)
    slopes, volumes = shapes(points, tets)
    first, second = YOUNG * POISSON / (1 + POISSON) / (1 - 2 * POISSON), YOUNG / 2 / (1 + POISSON)
    matrix = sparse.csr_matrix((3 * n**3, 3 * n**3))
    for i, j in itertools.product(range(4), range(4)):
        a, b = slopes[:, i], slopes[:, j]
        block = first * np.einsum("ei,ej->eij", a, b) + second * np.einsum("ej,ei->eij", a, b)
        block += second * np.einsum("ek,ek->e", a, b)[:, None, None] * np.eye(3)
        block *= volumes[:, None, None]
        rows = np.broadcast_to(3 * tets[:, i, None, None] + np.arange(3)[:, None], block.shape)
        columns = np.broadcast_to(3 * tets[:, j, None, None] + np.arange(3), block.shape)
        matrix = matrix + sparse.csr_matrix((block.ravel(), (rows.ravel(), columns.ravel())), shape=matrix.shape)
    load = np.zeros(3 * n**3)
    load[::3][points[:, 0] > 1 - 1e-9] = PULL / (n - 1) ** 2
    x, y, z = points.T
    none, one = np.zeros(n**3), np.ones(n**3)
    moves = [(one, none, none), (none, one, none), (none, none, one), (none, -z, y), (z, none, -x), (-y, x, none)]
    held = np.repeat(points[:, 0] < 1e-9, 3)
    return points, hold(matrix, load, held), np.stack([np.stack(move, 1).ravel() for move in moves], 1)


def hold(matrix, load, held):
    """The same with unknowns that are 0, without entries that are but rounding."""
    free = sparse.diags((~held).astype(float))
    matrix = (free @ matrix @ free + sparse.diags(held * matrix.diagonal().mean())).tocsr()
    matrix.data[np.abs(matrix.data) < 1e-14 * np.abs(matrix.data).max()] = 0.0
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix, np.where(held, 0.0, load)


def in_petsc(kind, matrix, load, x):
    """Solves it by conjugate gradients. Returns the iterations."""
    solver = PETSc.KSP().create()
    solver.setOperators(matrix)
    solver.setType("cg")
    solver.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
    solver.setTolerances(rtol=TOLERANCE, max_it=10000)
    solver.getPC().setType(kind)
    solver.solve(load, x)
    return solver.getIterationNumber()


def by_petsc(kind):
    def solve(points, matrix, load, moves):
        block = 1 if moves is None else 3
        start = time.perf_counter()
        own = PETSc.Mat().createAIJ(matrix.shape, bsize=block, csr=(matrix.indptr, matrix.indices, matrix.data))
        if moves is not None:
            places = PETSc.Vec().createWithArray(points.ravel().copy(), bsize=3)
            own.setNearNullSpace(PETSc.NullSpace().createRigidBody(places))
        x, right = own.createVecs()
        right.setArray(load)
        iterations = in_petsc(kind, own, right, x)
        return time.perf_counter() - start, iterations

    return solve


def by_dolfinx(equation, n, kind):
    """Seconds of the solution, and of all that comes before it but the mesh. And iterations. Forms are compiled once, before."""
    mesh = dolfinx.mesh.create_unit_cube(MPI.COMM_WORLD, n - 1, n - 1, n - 1)
    for domain in (dolfinx.mesh.create_unit_cube(MPI.COMM_WORLD, 2, 2, 2), mesh):
        start = time.perf_counter()
        is_scalar = equation == "poisson"
        space = (fem.FunctionSpace if is_scalar else fem.VectorFunctionSpace)(domain, ("CG", 1))
        u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
        sides = domain.topology.dim - 1
        domain.topology.create_connectivity(sides, sides + 1)
        facets = dolfinx.mesh.exterior_facet_indices(domain.topology)
        if is_scalar:
            form, load = ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, fem.Constant(domain, 1.0) * v * ufl.dx
            held, value = facets, 0.0
        else:
            first, second = YOUNG * POISSON / (1 + POISSON) / (1 - 2 * POISSON), YOUNG / 2 / (1 + POISSON)
            strain = ufl.sym(ufl.grad(u))
            stress = first * ufl.tr(strain) * ufl.Identity(3) + 2 * second * strain
            right = dolfinx.mesh.locate_entities_boundary(domain, sides, lambda x: x[0] > 1 - 1e-9)
            tags = dolfinx.mesh.meshtags(domain, sides, np.sort(right), np.ones(len(right), np.int32))
            pull = fem.Constant(domain, (PULL, 0.0, 0.0))
            form = ufl.inner(stress, ufl.grad(v)) * ufl.dx
            load = ufl.dot(pull, v) * ufl.Measure("ds", domain, subdomain_data=tags)(1)
            held, value = dolfinx.mesh.locate_entities_boundary(domain, sides, lambda x: x[0] < 1e-9), np.zeros(3)
        held = [fem.dirichletbc(value, fem.locate_dofs_topological(space, sides, held), space)]
        form = fem.form(form)
        matrix = assembly.assemble_matrix(form, bcs=held)
        matrix.assemble()
        load = assembly.assemble_vector(fem.form(load))
        assembly.apply_lifting(load, [form], bcs=[held])
        assembly.set_bc(load, held)
        if not is_scalar:
            places = PETSc.Vec().createWithArray(space.tabulate_dof_coordinates().ravel().copy(), bsize=3)
            matrix.setNearNullSpace(PETSc.NullSpace().createRigidBody(places))
        before = time.perf_counter()
        iterations = in_petsc(kind, matrix, load, matrix.createVecs()[0])
    return time.perf_counter() - before, before - start, iterations


def by_pyamg(_points, matrix, load, moves):
    start = time.perf_counter()
    blocks = matrix if moves is None else matrix.tobsr((3, 3))
    levels = pyamg.smoothed_aggregation_solver(blocks, B=moves)
    count = []
    levels.solve(load, tol=TOLERANCE, accel="cg", maxiter=1000, callback=lambda _: count.append(1))
    return time.perf_counter() - start, len(count)


def by_scipy(_points, matrix, load, _moves):
    start = time.perf_counter()
    over = 1.0 / matrix.diagonal()
    count = []
    jacobi = linalg.LinearOperator(matrix.shape, lambda x: over * x)
    # The name before SciPy 1.12.
    bound = {"rtol" if "rtol" in inspect.signature(linalg.cg).parameters else "tol": TOLERANCE}
    linalg.cg(matrix, load, **bound, maxiter=20000, M=jacobi, callback=lambda _: count.append(1))
    return time.perf_counter() - start, len(count)


def by_meshweft(command, threads, equation, n):
    """Seconds of the solution, and of all that comes before it but the mesh: assembly, too. And iterations."""
    words = [command, "run", equation, "--mesh", f"bar:{n}x{n}x{n}", "--set", "degree=1", "--threads", str(threads)]
    words += ["--set", "flux=none"] if equation == "poisson" else []
    words += ["--set", f"tolerance={TOLERANCE}", "--precision", "f64", "--quiet", "--no-pictures", "--json", "--checkpoint-every", "never"]
    with tempfile.TemporaryDirectory() as out:
        said = json.loads(subprocess.run([*words, "--out", out], check=True, capture_output=True, text=True).stdout)
    before = sum(seconds for name, seconds in said["setup_s"].items() if name != "mesh")
    return said["wall_s"], before, said["loops"][0]["iterations"]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--command", default="meshweft")
    options.add_argument("--threads", type=int, default=1, help="of meshweft; the others have one")
    options.add_argument("--trials", type=int, default=3)
    options.add_argument("equations", nargs="+", metavar="EQUATION:N")
    options = options.parse_args()
    solvers = {"scipy cg, jacobi": by_scipy}
    if pyamg:
        solvers["pyamg sa"] = by_pyamg
    if PETSc:
        solvers |= {"petsc icc": by_petsc("icc"), "petsc gamg": by_petsc("gamg")}
    for name in options.equations:
        equation, n = name.split(":")
        start = time.perf_counter()
        points, (matrix, load), moves = {"poisson": poisson, "elasticity": elasticity}[equation](int(n))
        made = time.perf_counter() - start
        print(f"{name}: {len(load)} unknowns, {matrix.nnz / len(load):.1f} entries a row, made with NumPy in {made:.2f} s", flush=True)
        own = {"meshweft": lambda: by_meshweft(options.command, options.threads, equation, n)}
        if dolfinx:
            own |= {f"dolfinx {kind}": lambda kind=kind: by_dolfinx(equation, int(n), kind) for kind in ("icc", "gamg")}
        for _ in range(options.trials):
            for solver, solve in own.items():
                seconds, before, iterations = solve()
                print(f"  {solver:18} {seconds:8.2f} s, {iterations} iterations; before, with assembly {before:.2f} s", flush=True)
            for solver, solve in solvers.items():
                seconds, iterations = solve(points, matrix, load, moves)
                print(f"  {solver:18} {seconds:8.2f} s, {iterations} iterations", flush=True)


if __name__ == "__main__":
    main()
