"""Every function there is, of numbers of both signs."""

import meshweft
import numpy as np


class Functions(meshweft.Program):
    x, y = meshweft.private(), meshweft.private()
    n = meshweft.private(integer=True)
    bits = meshweft.private(integer=True)
    a, b, c, d, e = (meshweft.private(4) for _ in range(5))

    @meshweft.map
    def compute(p, own):
        x, y, n = own.x, own.y, own.n
        size = abs(x) + 0.5
        own.a = meshweft.vector(meshweft.exp(x), meshweft.log(size), meshweft.sin(x), meshweft.cos(y))
        own.b = meshweft.vector(meshweft.tanh(x), meshweft.acos(meshweft.clip(y, -1, 1)), meshweft.atan2(y, x), meshweft.sqrt(size))
        own.c = meshweft.vector(size**y, x**5, size**-2, 2.0**x)
        own.d = meshweft.vector(meshweft.floor(x), x % size, y // size, meshweft.sign(x))
        own.e = meshweft.vector(
            meshweft.minimum(x, y), meshweft.maximum(x, 0.25), meshweft.real(n * p.step), meshweft.select(~(x < y) | (x == y), 3.0, -x)
        )
        own.bits = ((n << 3) ^ (n >> 1) | n & 5) * 0x01234567 + meshweft.integer(x * 10) - meshweft.select((n != 3) & (n <= 7), n, 1)
        return own.replace(x=1 - x * 0.5, y=y - 0.25, n=meshweft.maximum(-n, n - 7))

    def initial(self, mesh):
        v = np.arange(len(mesh))
        return {"x": v % 13 / 4 - 1.5, "y": v % 7 / 3 - 1, "n": v % 17 - 8}

    def step(self, stages):
        stages.map(self.compute)
