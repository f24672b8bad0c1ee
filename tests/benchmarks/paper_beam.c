/* The Poisson integrator of the geometrically exact beam, equations (53)-(55) of Chen & Shi (2025),
 * written by hand: one node and one cell at a time, rotation first in all six-vectors.
 *
 * The reference of the benchmark. Scalar code for diagonal D1 and D2; the compiler may vectorise it
 * as it likes (-O3 -march=native -ffast-math). With -DUNROLL the loops of the elimination are
 * unrolled, which compilers do not do by themselves and which about halves the time. */
#include <math.h>

#ifdef UNROLL
#define EVERY _Pragma("GCC unroll 6")
#else
#define EVERY
#endif

typedef struct {
  long cells;
  double h, end_weight;            /* length of a cell; weight of an end node in cells */
  double inertia[6], stiffness[6]; /* the diagonals of D1 and D2 */
  double inverse[6];               /* that of the inverse of D1 */
  double tangent[6];               /* e */
  double *strain;                  /* cells x 6 */
  double *momentum;                /* nodes x 6, body frame */
  double *position;                /* nodes x 3 */
  double *orientation;             /* nodes x 4, unit quaternions, scalar first */
} Beam;

static const double tolerance = 1e-12;
enum { MOST_ITERATIONS = 25 };

static inline void add_cross(double *out, double s, const double *a, const double *b) {
  out[0] += s * (a[1] * b[2] - a[2] * b[1]);
  out[1] += s * (a[2] * b[0] - a[0] * b[2]);
  out[2] += s * (a[0] * b[1] - a[1] * b[0]);
}

/* out += s [xi, mu]* = s (m x w + n x v, n x w) for xi = (w, v), mu = (m, n) */
static inline void add_coadjoint(double *out, double s, const double *xi, const double *mu) {
  add_cross(out, s, mu, xi);
  add_cross(out, s, mu + 3, xi + 3);
  add_cross(out + 3, s, mu + 3, xi);
}

/* x := A^-1 x by elimination; the diagonal dominates, so rows stay where they are */
static inline void solve6(double A[6][6], double x[6]) {
  EVERY for (int k = 0; k < 6; ++k) {
    const double inverse = 1.0 / A[k][k];
    EVERY for (int i = k + 1; i < 6; ++i) {
      const double factor = A[i][k] * inverse;
      EVERY for (int j = k + 1; j < 6; ++j) A[i][j] -= factor * A[k][j];
      x[i] -= factor * x[k];
    }
    A[k][k] = inverse;
  }
  EVERY for (int k = 5; k >= 0; --k) {
    EVERY for (int j = k + 1; j < 6; ++j) x[k] -= A[k][j] * x[j];
    x[k] *= A[k][k];
  }
}

/* A[row..][column..] += s * (matrix of a x .) * diag(d); d null: the identity */
static inline void add_hat(double A[6][6], int row, int column, double s, const double *a,
                           const double *d) {
  const double s0 = d ? s * d[0] : s, s1 = d ? s * d[1] : s, s2 = d ? s * d[2] : s;
  A[row][column + 1] -= s1 * a[2];
  A[row][column + 2] += s2 * a[1];
  A[row + 1][column] += s0 * a[2];
  A[row + 1][column + 2] -= s2 * a[0];
  A[row + 2][column] -= s0 * a[1];
  A[row + 2][column + 1] += s1 * a[0];
}

/* (53): the mean velocity z of one node by Newton, from D1 z - mu0 - dt/2 (force + [z, D1 z]*) = 0,
 * until the residual is 1e-12 of the momentum in the norm of the kinetic energy. z holds the old
 * velocity. Returns the iterations, -1 if there were too many. */
static inline int mean_velocity(const Beam *b, double dt, const double *mu0, const double *force,
                                double *z) {
  const double *D = b->inertia, half = 0.5 * dt;
  double scale = 0.0;
  for (int k = 0; k < 6; ++k) scale += mu0[k] * z[k];
  for (int it = 0; it <= MOST_ITERATIONS; ++it) {
    double mu[6], R[6], J[6][6] = {{0.0}}, norm = 0.0;
    for (int k = 0; k < 6; ++k) mu[k] = D[k] * z[k];
    for (int k = 0; k < 6; ++k) R[k] = mu[k] - mu0[k] - half * force[k];
    add_coadjoint(R, -half, z, mu);
    for (int k = 0; k < 6; ++k) norm += R[k] * R[k] * b->inverse[k];
    if (it == 0) scale += norm;
    if (norm <= tolerance * tolerance * scale) return it;
    for (int k = 0; k < 6; ++k) J[k][k] = D[k];
    add_hat(J, 0, 0, half, z, D);          /* of m x w: dm x w = -w x dm, */
    add_hat(J, 0, 0, -half, mu, 0);        /*           m x dw            */
    add_hat(J, 0, 3, half, z + 3, D + 3);  /* of n x v */
    add_hat(J, 0, 3, -half, mu + 3, 0);
    add_hat(J, 3, 3, half, z, D + 3);      /* of n x w */
    add_hat(J, 3, 0, -half, mu + 3, 0);
    solve6(J, R);
    for (int k = 0; k < 6; ++k) z[k] -= R[k];
  }
  return -1;
}

/* (55): g := g cay(dt velocity) */
static inline void move(double *x, double *q, double dt, const double *velocity) {
  double w[3], v[3], p[3];
  for (int k = 0; k < 3; ++k) { w[k] = dt * velocity[k]; v[k] = dt * velocity[3 + k]; }
  const double d = 1.0 + 0.25 * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
  const double along = 0.25 * (w[0] * v[0] + w[1] * v[1] + w[2] * v[2]);
  for (int k = 0; k < 3; ++k) p[k] = v[k] + along * w[k];
  add_cross(p, 0.5, w, v);
  for (int k = 0; k < 3; ++k) p[k] /= d;
  /* x += R(q) p = p + 2 u x (u x p + q0 p) */
  double t[3] = {q[0] * p[0], q[0] * p[1], q[0] * p[2]};
  add_cross(t, 1.0, q + 1, p);
  for (int k = 0; k < 3; ++k) x[k] += p[k];
  add_cross(x, 2.0, q + 1, t);
  /* q := q (1, w/2), normalised */
  double r[4] = {q[0], q[1], q[2], q[3]};
  for (int k = 0; k < 3; ++k) { r[0] -= 0.5 * q[1 + k] * w[k]; r[1 + k] += 0.5 * q[0] * w[k]; }
  add_cross(r + 1, 0.5, q + 1, w);
  const double inverse = 1.0 / sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + r[3] * r[3]);
  for (int k = 0; k < 4; ++k) q[k] = inverse * r[k];
}

/* What a cell does to the momentum of its two ends: the stress b = D2 strain along the beam, and
 * -h/2 [strain + e, b]*. */
static inline void load_of_cell(const Beam *b, const double *strain, double *stress, double *couple) {
  double frame[6];
  for (int k = 0; k < 6; ++k) {
    stress[k] = b->stiffness[k] * strain[k];
    frame[k] = strain[k] + b->tangent[k];
    couple[k] = 0.0;
  }
  add_coadjoint(couple, -0.5 * b->h, frame, stress);
}

/* (53) and (55) at every node */
static long step_of_nodes(Beam *b, double dt) {
  const long n = b->cells;
  double left[12] = {0.0}, right[12];
  long iterations = 0;
  for (long j = 0; j <= n; ++j) {
    for (int k = 0; k < 12; ++k) right[k] = 0.0;
    if (j < n) load_of_cell(b, b->strain + 6 * j, right, right + 6);
    const double weight = b->h * (j == 0 || j == n ? b->end_weight : 1.0), inverse = 1.0 / weight;
    double force[6], old[6], z[6], *mu = b->momentum + 6 * j;
    for (int k = 0; k < 6; ++k) {
      force[k] = inverse * (right[k] - left[k] + right[6 + k] + left[6 + k]);
      old[k] = z[k] = mu[k] * b->inverse[k];
    }
    const int it = mean_velocity(b, dt, mu, force, z);
    if (it < 0) return -1;
    iterations += it;
    for (int k = 0; k < 6; ++k) mu[k] = 2.0 * b->inertia[k] * z[k] - mu[k];
    move(b->position + 3 * j, b->orientation + 4 * j, dt, old);
    for (int k = 0; k < 12; ++k) left[k] = right[k];
  }
  return iterations;
}

/* (54) in every cell: the mean strain g from g - dt/2 [g, z] = strain0 + dt/2 (z' + [e, z]) */
static void step_of_cells(Beam *b, double dt) {
  const double half = 0.5 * dt, slope = half / b->h;
  for (long c = 0; c < b->cells; ++c) {
    const double *left = b->momentum + 6 * c, *right = left + 6, *e = b->tangent;
    double *strain = b->strain + 6 * c, z[6], g[6], A[6][6] = {{0.0}};
    for (int k = 0; k < 6; ++k) {
      z[k] = 0.5 * b->inverse[k] * (left[k] + right[k]);
      g[k] = strain[k] + slope * b->inverse[k] * (right[k] - left[k]);
      A[k][k] = 1.0;
    }
    add_cross(g, half, e, z); /* [(a, p), (w, v)] = (a x w, a x v + p x w) */
    add_cross(g + 3, half, e, z + 3);
    add_cross(g + 3, half, e + 3, z);
    add_hat(A, 0, 0, half, z, 0);
    add_hat(A, 3, 0, half, z + 3, 0);
    add_hat(A, 3, 3, half, z, 0);
    solve6(A, g);
    for (int k = 0; k < 6; ++k) strain[k] = 2.0 * g[k] - strain[k];
  }
}

/* Takes steps; returns the number of Newton iterations of all nodes together, -1 if a node failed. */
long advance(Beam *b, double dt, long steps) {
  long sum = 0;
  for (long s = 0; s < steps; ++s) {
    const long iterations = step_of_nodes(b, dt);
    if (iterations < 0) return -1;
    sum += iterations;
    step_of_cells(b, dt);
  }
  return sum;
}
