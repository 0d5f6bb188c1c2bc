// What two processes cost a hand-written halo exchange, beside two threads: sweeps in place over a box of n³ vertices with the 14
// neighbors of box:N, in eight colors, cut in two along z. After each color the values at the cut go to the other half. One
// source, two programs, by docs/perf/pairs.py:
//
//   cc -O3 -march=native -ffast-math -fopenmp halo.c -lm      threads that wait for each other at a barrier after each color
//   mpicc -DMPI -O3 -march=native -ffast-math -fopenmp-simd halo.c -lm      processes that send, update inside, and wait for what was sent
//
//   a.out N ROUNDS heat|spring     prints nanoseconds an update, the least of five passes, and a sum that both agree on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef MPI
#include <mpi.h>
#else
#include <omp.h>
#endif

static const int AROUND[14][3] = {{1,0,0},{0,1,0},{0,0,1},{1,1,0},{1,0,1},{0,1,1},{1,1,1},
                                  {-1,0,0},{0,-1,0},{0,0,-1},{-1,-1,0},{-1,0,-1},{0,-1,-1},{-1,-1,-1}};
static int n, is_spring;

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }

// A half of the box, or all of it: planes z0 to z1, with one more on either side. Vertices of a color are neighbors in memory:
// shape [color][plane of its parity][n/2][n/2].
typedef struct { int z0, z1, planes; float *state[3], *speed[3], *weights; unsigned *ids; } Part;

static size_t color_size(const Part *p) { return (size_t)(p->planes / 2) * (n / 2) * (n / 2); }

static size_t place(const Part *p, int x, int y, int z) {
    int color = (x & 1) | (y & 1) << 1 | (z & 1) << 2, plane = (z - p->z0 + 2) / 2;
    return color * color_size(p) + ((size_t)plane * (n / 2) + y / 2) * (n / 2) + x / 2;
}

static void *numbers(size_t count) { void *p = calloc(count, 4); if (!p) exit(1); return p; }

static void fill(Part *p) {
    p->planes = p->z1 - p->z0 + 4;
    size_t all = 8 * color_size(p);
    for (int d = 0; d < 3; d++) { p->state[d] = numbers(all); p->speed[d] = numbers(all); }
    p->weights = numbers(14 * all); p->ids = numbers(14 * all);
    for (int z = p->z0 - 1; z <= p->z1; z++) for (int y = 0; y < n; y++) for (int x = 0; x < n; x++) {
        size_t v = place(p, x, y, z);
        int at[3] = {x, y, z};
        for (int d = 0; d < 3; d++) p->state[d][v] = at[d] + 0.1f * ((x * 7 + y * 5 + z * 3 + d) % 11);
        if (z < p->z0 || z == p->z1) continue;
        for (int k = 0; k < 14; k++) {
            int a = x + AROUND[k][0], b = y + AROUND[k][1], c = z + AROUND[k][2];
            int is_in = a >= 0 && b >= 0 && c >= 0 && a < n && b < n && c < n;
            p->ids[k * all + v] = is_in ? place(p, a, b, c) : v;
            p->weights[k * all + v] = is_in ? 1.0f : 0.0f;
        }
    }
}

static void update(const Part *p, size_t from, size_t to) {
    size_t all = 8 * color_size(p);
    float *s = p->state[0], *t = p->state[1], *u = p->state[2], *a0 = p->speed[0], *a1 = p->speed[1], *a2 = p->speed[2];
    const float *weights = p->weights;
    const unsigned *ids = p->ids;
    if (!is_spring) {
        #pragma omp simd
        for (size_t v = from; v < to; v++) {
            float sum = 0.5f * s[v], weight = 0.5f;
            #pragma GCC unroll 14
            for (int k = 0; k < 14; k++) { float w = weights[k * all + v]; sum += w * s[ids[k * all + v]]; weight += w; }
            s[v] = sum / weight;
        }
        return;
    }
    #pragma omp simd
    for (size_t v = from; v < to; v++) {
        float x = s[v], y = t[v], z = u[v], f = 0, g = 0, h = 0;
        #pragma GCC unroll 14
        for (int k = 0; k < 14; k++) {
            unsigned o = ids[k * all + v];
            float a = s[o] - x, b = t[o] - y, c = u[o] - z, l = sqrtf(a * a + b * b + c * c + 1e-6f);
            float q = weights[k * all + v] * (1.0f - 1.0f / l);
            f += q * a; g += q * b; h += q * c;
        }
        a0[v] += 0.01f * f; a1[v] += 0.01f * g; a2[v] += 0.01f * h;
        s[v] = x + 0.01f * a0[v]; t[v] = y + 0.01f * a1[v]; u[v] = z + 0.01f * a2[v];
    }
}

// The vertices of a color in the planes of its parity from `first` to `last`.
static void planes(const Part *p, int color, int first, int last) {
    while ((first & 1) != color >> 2) first++;
    if (first >= last) return;
    size_t one = (size_t)(n / 2) * (n / 2), from = place(p, color & 1, color >> 1 & 1, first);
    update(p, from, from + one * ((last - first + 1) / 2));
}

int main(int count, char **words) {
    int rounds, rank = 0, ranks = 2;
    if (count != 4) return fprintf(stderr, "N ROUNDS heat|spring\n"), 2;
    n = atoi(words[1]); rounds = atoi(words[2]); is_spring = words[3][0] == 's';
    int reals = is_spring ? 3 : 1;
#ifdef MPI
    MPI_Init(&count, &words); MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Part part = {.z0 = rank ? n / 2 : 0, .z1 = rank ? n : n / 2};
    fill(&part);
    size_t one = (size_t)(n / 2) * (n / 2);
    float *out = numbers(3 * one), *in = numbers(3 * one);
    int own = rank ? part.z0 : part.z1 - 1, other = rank ? own - 1 : own + 1;
#else
    Part part = {.z0 = 0, .z1 = n};
    fill(&part);
#endif
    double least = 1e9;
    for (int pass = 0; pass < 5; pass++) {
        double start = now();
#ifdef MPI
        MPI_Barrier(MPI_COMM_WORLD);
        for (int r = 0; r < rounds; r++) for (int color = 0; color < 8; color++) {
            MPI_Request requests[2]; int open = 0;
            int sends = color >> 2 == (own & 1), takes = color >> 2 == (other & 1);
            if (takes) MPI_Irecv(in, reals * one, MPI_FLOAT, 1 - rank, color, MPI_COMM_WORLD, &requests[open++]);
            if (sends) {
                planes(&part, color, own, own + 1);
                for (int d = 0; d < reals; d++) memcpy(out + d * one, part.state[d] + place(&part, color & 1, color >> 1 & 1, own), 4 * one);
                MPI_Isend(out, reals * one, MPI_FLOAT, 1 - rank, color, MPI_COMM_WORLD, &requests[open++]);
            }
            int from = part.z0 + (sends && rank), to = part.z1 - (sends && !rank);
            planes(&part, color, from, to);
            MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
            if (takes) for (int d = 0; d < reals; d++) memcpy(part.state[d] + place(&part, color & 1, color >> 1 & 1, other), in + d * one, 4 * one);
        }
        MPI_Barrier(MPI_COMM_WORLD);
#else
        #pragma omp parallel num_threads(2)
        for (int r = 0; r < rounds; r++) for (int color = 0; color < 8; color++) {
            int half = omp_get_thread_num();
            planes(&part, color, half ? n / 2 : 0, half ? n : n / 2);
            #pragma omp barrier
        }
#endif
        double took = now() - start;
        if (took < least) least = took;
    }
    float sum = 0;
    for (int z = part.z0; z < part.z1; z++) sum += part.state[0][place(&part, 3, 5, z)];
#ifdef MPI
    float own_sum = sum;
    MPI_Reduce(&own_sum, &sum, 1, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
#endif
    if (rank == 0) printf("%.3f %g\n", 1e9 * least / rounds / ((double)n * n * n), sum);
#ifdef MPI
    MPI_Finalize();
#endif
    return 0;
}
