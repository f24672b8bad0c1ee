// Solves for nodes that links couple: at each node N(u) + Σ f = 0, and c(u) = 0 in each link, with
// f = f⁰ + F λ. Included after loops.hpp.
#include <algorithm>
#include <vector>

namespace {

// Nodes that links connect. See linked/data.py.
struct Group {
  long nodes, links, rows;     // rows: conditions of all its links
  const int *node;             // numbers of the nodes
  const double *mask;          // [nodes][N]: 0 where given, 1 where free
  const int *ends;             // [links][2]: which of these nodes it links
  const int *cell;             // numbers of the links among the cells
  const int *row, *size;       // first condition of a link, and how many it has
  const int *owner;            // the node that stores the λ of each link
};

struct Links {
  long count;
  const Group *groups;
  double *memory;
};

// A = LU in place, rows exchanged; false if it is singular or not finite.
inline bool factorise(double *A, int *pivot, long n) {
  double largest = 0.0;
  for (long k = 0; k < n * n; ++k) largest = std::fabs(A[k]) > largest ? std::fabs(A[k]) : largest;
  for (long k = 0; k < n; ++k) {
    long p = k;
    for (long i = k + 1; i < n; ++i)
      if (std::fabs(A[i * n + k]) > std::fabs(A[p * n + k])) p = i;
    pivot[k] = p;
    if (!(std::fabs(A[p * n + k]) > 1e-15 * largest)) return false;
    if (p != k)
      for (long j = k; j < n; ++j) std::swap(A[k * n + j], A[p * n + j]);
    const double inverse = 1.0 / A[k * n + k];
    for (long i = k + 1; i < n; ++i) {
      const double factor = A[i * n + k] *= inverse;
      for (long j = k + 1; j < n; ++j) A[i * n + j] -= factor * A[k * n + j];
    }
  }
  return true;
}

// x := A⁻¹ x for `count` right-hand sides, a row of x for each row of A.
inline void substitute(const double *A, const int *pivot, long n, double *x, long count) {
  for (long k = 0; k < n; ++k) {
    if (pivot[k] != k)
      for (long j = 0; j < count; ++j) std::swap(x[k * count + j], x[pivot[k] * count + j]);
    for (long i = k + 1; i < n; ++i)
      for (long j = 0; j < count; ++j) x[i * count + j] -= A[i * n + k] * x[k * count + j];
  }
  for (long k = n - 1; k >= 0; --k) {
    const double inverse = 1.0 / A[k * n + k];
    for (long j = 0; j < count; ++j) {
      double sum = x[k * count + j];
      for (long i = k + 1; i < n; ++i) sum -= A[k * n + i] * x[i * count + j];
      x[k * count + j] = sum * inverse;
    }
  }
}

// Newton's method for a group. The update of u is eliminated node by node; the system for λ remains:
//   C J⁻¹ F dλ = c - C J⁻¹ R,   du = -J⁻¹ (R + F dλ).
// `unnoticed`: the square of an update that is negligible beside the positions. Returns the number of
// iterations, or a negative reason.
template <class L>
int solve_group(const Context &X, const Group &g, double *memory,
                std::vector<typename L::Problem::template Data<double>> &data, std::vector<int> &pivot,
                double unnoticed, const Tolerances &tol, double *norm_out) {
  typedef typename L::Problem P;
  constexpr int N = P::size, M = L::conditions, side = N * M;
  const long total = X.nodes[L::space].total;
  double *at = memory;
  const auto take = [&at](long n) { double *p = at; at += n; return p; };
  double *const u = take(g.nodes * N), *const R = take(g.nodes * N), *const J = take(g.nodes * N * N);
  double *const F = take(g.links * 2 * side), *const G = take(g.links * 2 * side);
  double *const C = take(g.links * 2 * side), *const start = take(g.links * 2 * N);
  double *const c = take(g.links * M), *const S = take(g.rows * g.rows);
  double *const change = take(g.rows), *const lambda = take(g.rows);
  data.resize(g.nodes);
  pivot.resize(std::max<long>(g.rows, N));
  const auto node_of = [&g](long l, int s) { return g.ends[2 * l + s]; };
  for (long n = 0; n < g.nodes; ++n) load_one<P>(X, g.node[n], total, data[n], u + n * N);
  for (long l = 0; l < g.links; ++l)
    L::forces(X, g.cell[l], g.node[node_of(l, 0)], g.node[node_of(l, 1)], F + l * 2 * side, start + l * 2 * N);
  for (long k = 0; k < g.rows; ++k) lambda[k] = 0.0;
  double first = 0.0, before = 0.0;
  for (int it = 1;; ++it) {
    for (long n = 0; n < g.nodes; ++n) {
      P::residual(data[n], u + n * N, R + n * N);
      P::jacobian(data[n], u + n * N, J + n * N * N);
    }
    double norm = 0.0;
    for (long l = 0; l < g.links; ++l) {
      const int a = node_of(l, 0), b = node_of(l, 1);
      L::gaps(X, g.cell[l], g.node[a], g.node[b], u + a * N, u + b * N, c + l * M, C + l * 2 * side);
      for (int k = 0; k < g.size[l]; ++k) norm += c[l * M + k] * c[l * M + k];
      for (int s = 0; s < 2; ++s) {
        const int n = node_of(l, s);
        const double *const mine = F + (2 * l + s) * side;
        for (int i = 0; i < N; ++i) {
          double sum = start[(2 * l + s) * N + i];
          for (int k = 0; k < g.size[l]; ++k) sum += mine[i * M + k] * lambda[g.row[l] + k];
          R[n * N + i] += sum;
        }
      }
    }
    for (long n = 0; n < g.nodes; ++n) {
      const double *const mask = g.mask + n * N;
      for (int i = 0; i < N; ++i) {
        R[n * N + i] *= mask[i];
        norm += R[n * N + i] * R[n * N + i];
        for (int j = 0; j < N; ++j) {
          double &entry = J[n * N * N + i * N + j];
          entry = mask[i] * entry + (i == j ? 1.0 - mask[i] : 0.0);
        }
      }
    }
    *norm_out = std::sqrt(norm);
    if (!(norm <= 1e300)) return -3;
    // Updates of nodes by their own residuals, and by the forces of links.
    for (long n = 0; n < g.nodes; ++n) {
      if (!factorise(J + n * N * N, pivot.data(), N)) return -2;
      substitute(J + n * N * N, pivot.data(), N, R + n * N, 1);
      for (long l = 0; l < g.links; ++l)
        for (int s = 0; s < 2; ++s) {
          if (node_of(l, s) != n) continue;
          double *const mine = G + (2 * l + s) * side;
          for (int i = 0; i < N; ++i)
            for (int k = 0; k < M; ++k) mine[i * M + k] = g.mask[n * N + i] * F[(2 * l + s) * side + i * M + k];
          substitute(J + n * N * N, pivot.data(), N, mine, M);
        }
    }
    for (long k = 0; k < g.rows * g.rows; ++k) S[k] = 0.0;
    for (long l = 0; l < g.links; ++l)
      for (int k = 0; k < g.size[l]; ++k) {
        double sum = c[l * M + k];
        for (int s = 0; s < 2; ++s) {
          const int n = node_of(l, s);
          const double *const row = C + l * 2 * side + k * 2 * N + s * N;
          for (int i = 0; i < N; ++i) sum -= row[i] * R[n * N + i];
          for (long o = 0; o < g.links; ++o)
            for (int z = 0; z < 2; ++z) {
              if (node_of(o, z) != n) continue;
              const double *const other = G + (2 * o + z) * side;
              double *const to = S + (g.row[l] + k) * g.rows + g.row[o];
              for (int j = 0; j < g.size[o]; ++j)
                for (int i = 0; i < N; ++i) to[j] += row[i] * other[i * M + j];
            }
        }
        change[g.row[l] + k] = sum;
      }
    if (!factorise(S, pivot.data(), g.rows)) return -2;
    substitute(S, pivot.data(), g.rows, change, 1);
    for (long l = 0; l < g.links; ++l)
      for (int s = 0; s < 2; ++s)
        for (int i = 0; i < N; ++i)
          for (int k = 0; k < g.size[l]; ++k)
            R[node_of(l, s) * N + i] += G[(2 * l + s) * side + i * M + k] * change[g.row[l] + k];
    double step = 0.0, size = 0.0;
    for (long k = 0; k < g.nodes * N; ++k) {
      u[k] -= R[k];
      step += R[k] * R[k];
      size += u[k] * u[k];
    }
    for (long k = 0; k < g.rows; ++k) lambda[k] += change[k];
    if (!(step <= 1e300)) return -3;
    if (it == 1) first = norm;
    // The next update would be about this one times the rate at which updates shrink.
    const bool done = L::affine || norm <= tol.rtol * tol.rtol * first * (it > 1) || step <= unnoticed ||
                      step <= tol.stol * tol.stol * size ||
                      (it > 1 && step * step <= round_off * size * before);
    if (done) {
      for (long n = 0; n < g.nodes; ++n) P::store(X, g.node[n], g.node[n] + 1, u + n * N);
      for (long n = 0; n < g.nodes; ++n) {
        double told[M] = {};
        for (long l = 0; l < g.links; ++l)
          if (g.owner[l] == n)
            for (int k = 0; k < g.size[l]; ++k) told[k] = lambda[g.row[l] + k];
        L::finish(X, g.node[n], told);
      }
      return it;
    }
    if (it == tol.max_it) return -1;
    before = step;
  }
}

// Sum of the squares of a function's values, divided by the number of nodes.
inline double mean_square(const Field &f, int size) {
  double sum = 0.0;
  for (int k = 0; k < size; ++k)
    for (long i = 0; i < f.count; ++i) sum += f.p[k * f.stride + i] * f.p[k * f.stride + i];
  return sum / f.count;
}

template <class L> int solve_links(const Context &X, int &most) {
  const Links &links = *(const Links *)X.more[L::number];
  const Tolerances &tol = X.tol[L::number];
  Report &report = X.report[L::number];
  const double unnoticed = 4.9e-32 * mean_square(X.F[L::changed], L::changed_size);
  std::vector<typename L::Problem::template Data<double>> data;
  std::vector<int> pivot;
  for (long k = 0; k < links.count; ++k) {
    const Group &g = links.groups[k];
    double norm = 0.0;
    const int count = solve_group<L>(X, g, links.memory, data, pivot, unnoticed, tol, &norm);
    const int node = g.node[g.owner[0]];
    if (count < 0) {
      report.failed = node; report.reason = count; report.norm = norm;
      return count;
    }
    if (count > most) {
      most = count;
      if (most > report.most) { report.most = most; report.worst = node; }
    }
  }
  return 0;
}

}  // namespace
