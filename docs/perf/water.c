/* Shallow water of first order on any mesh of cells and faces: the plain loop that `docs/perf/water.py` sets beside `shallow-water`. */
#include <math.h>
#include <stddef.h>

static double most(double a, double b) { return a > b ? a : b; }
static double least(double a, double b) { return a < b ? a : b; }

/* What leaves cell a through a meter of a face, as meshweft_physics::Water has it: volume, and momentum along and across the normal. */
static void flux(double ha, double ua, double ta, double za, double hb, double ub, double tb, double zb, double g, double out[3]) {
    double sill = most(za, zb), a = most(za + ha - sill, 0.0), b = most(zb + hb - sill, 0.0);
    double ca = sqrt(g * a), cb = sqrt(g * b);
    double mean = 0.5 * (ua + ub) + (ca - cb), wave = most(0.5 * (ca + cb) + 0.25 * (ua - ub), 0.0);
    double slow = a > 0.0 ? least(ua - ca, mean - wave) : ub - 2.0 * cb;
    double fast = b > 0.0 ? most(ub + cb, mean + wave) : ua + 2.0 * ca;
    double low = least(slow, 0.0), high = most(fast, 0.0), share = 1.0 / most(high - low, 1e-12);
    double volume = (high * a * ua - low * b * ub + low * high * (b - a)) * share;
    double wa = 0.5 * g * a * a, wb = 0.5 * g * b * b;
    double push = (high * (a * ua * ua + wa) - low * (b * ub * ub + wb) + low * high * (b * ub - a * ua)) * share;
    out[0] = volume;
    out[1] = push;
    out[2] = volume * (volume > 0.0 ? ta : tb);
}

/* Steps of explicit Euler. cells: both of each face, the second -1 at a wall. Returns the simulated time. */
double run(size_t steps, size_t n, size_t faces, const int (*cells)[2], const double (*normals)[2], const double *lengths, const double *areas,
           const double *widths, const double *beds, double *depths, double (*speeds)[2], double (*rests)[3], double g, double drag,
           double courant, double film) {
    double time = 0.0;
    for (size_t step = 0; step < steps; step++) {
        double rate = 0.0;
        for (size_t c = 0; c < n; c++) {
            double u = speeds[c][0], v = speeds[c][1];
            if (depths[c] > film) rate = most(rate, (sqrt(u * u + v * v) + sqrt(g * depths[c])) / widths[c]);
            rests[c][0] = rests[c][1] = rests[c][2] = 0.0;
        }
        double dt = courant / rate;
        for (size_t f = 0; f < faces; f++) {
            int a = cells[f][0], b = cells[f][1];
            double x = normals[f][0], y = normals[f][1], l = lengths[f], out[3];
            double ua = speeds[a][0] * x + speeds[a][1] * y, ta = speeds[a][1] * x - speeds[a][0] * y;
            if (b < 0) {
                flux(depths[a], ua, ta, beds[a], depths[a], -ua, ta, beds[a], g, out);
                double push = out[1] - 0.5 * g * depths[a] * depths[a];
                rests[a][1] += l * x * push;
                rests[a][2] += l * y * push;
                continue;
            }
            double ub = speeds[b][0] * x + speeds[b][1] * y, tb = speeds[b][1] * x - speeds[b][0] * y;
            flux(depths[a], ua, ta, beds[a], depths[b], ub, tb, beds[b], g, out);
            double sill = most(beds[a], beds[b]);
            double ha = most(beds[a] + depths[a] - sill, 0.0), hb = most(beds[b] + depths[b] - sill, 0.0);
            double pa = out[1] - 0.5 * g * ha * ha, pb = out[1] - 0.5 * g * hb * hb;
            rests[a][0] += l * out[0];
            rests[a][1] += l * (x * pa - y * out[2]);
            rests[a][2] += l * (y * pa + x * out[2]);
            rests[b][0] -= l * out[0];
            rests[b][1] -= l * (x * pb - y * out[2]);
            rests[b][2] -= l * (y * pb + x * out[2]);
        }
        for (size_t c = 0; c < n; c++) {
            double share = dt / areas[c], before = depths[c], depth = most(before - share * rests[c][0], 0.0);
            double x = speeds[c][0] * before - share * rests[c][1], y = speeds[c][1] * before - share * rests[c][2];
            double slowed = depth > film ? depth * (1.0 + dt * drag * sqrt(x * x + y * y) / depth / depth) : INFINITY;
            depths[c] = depth;
            speeds[c][0] = x / slowed;
            speeds[c][1] = y / slowed;
        }
        time += dt;
    }
    return time;
}
