// Reverse sweep of cotangents through steps of a chain. Included after newton.hpp.

namespace {

// The nodes at the ends of the pieces and of the links, and the functions whose cotangents the cells
// of several of them change. See structs.py.
struct Meeting {
  const int *ids;       // [groups][2][W]: numbers of these nodes, on all ranks
  long number;          // how many there are
  double *sums;         // [number][numbers of all these functions]
  const int *changes;   // [functions][3]: the change, the cotangent, numbers at a node
  int n;
};

// Recorded steps: the values that the adjoint of a step reads, one row per step. See structs.py.
struct Reads {
  void ***places;       // [n]: the locations of the addresses of the values
  double *const *rows;  // [n]: the values of the first step
  long n, length;       // number of arrays; distance of the rows
  const double *times;  // of each step; null if nothing reads it
  double *clock;
};

inline const Chain &group_of(const Net &X, long g) { return g < X.n_rods ? X.rods[g] : X.links[g - X.n_rods]; }

// Sums the contributions of cells to each node over all pieces, and subtracts the sums from the
// cotangents.
inline void take_changes(Net &X, const Meeting &q) {
  if (!q.n) return;
  const long groups = X.n_rods + X.n_links;
  long total = 0;
  for (int f = 0; f < q.n; ++f) total += q.number * q.changes[3 * f + 2];
  for (long i = 0; i < total; ++i) q.sums[i] = 0.0;
  double *sums = q.sums;
  for (int f = 0; f < q.n; ++f) {
    const int change = q.changes[3 * f], size = q.changes[3 * f + 2];
    for (long g = 0; g < groups; ++g) {
      const Chain &Y = group_of(X, g);
      const int *const ids = q.ids + g * 2 * W;
      for (int l = 0; l < W; ++l)
        for (int i = 0; Y.there[l] && i < size; ++i) {
          sums[ids[l] * size + i] += get(Y.F[change][i], l);
          sums[ids[W + l] * size + i] += get(Y.F[change][Y.count[l] * size + i], l);
        }
    }
    sums += q.number * size;
  }
  sum_over(X.ranks, q.sums, int(total));
  sums = q.sums;
  for (int f = 0; f < q.n; ++f) {
    const int change = q.changes[3 * f], bar = q.changes[3 * f + 1], size = q.changes[3 * f + 2];
    for (long g = 0; g < groups; ++g) {
      const Chain &Y = group_of(X, g);
      const int *const ids = q.ids + g * 2 * W;
      for (int l = 0; l < W; ++l)
        for (int i = 0; i < size; ++i) {
          put(Y.F[change][i], l, sums[ids[l] * size + i]);
          for (long k = Y.count[l]; k <= Y.m; ++k) put(Y.F[change][k * size + i], l, sums[ids[W + l] * size + i]);
        }
      for (long j = 0; j < (Y.m + 1) * size; ++j) Y.F[bar][j] -= Y.F[change][j];
    }
    sums += q.number * size;
  }
}

// The reverse sweep through some steps, the last one first; false if the matrix of a step is singular.
template <class Pull> bool back(Net &X, const Meeting &q, const Reads &r, long steps) {
  for (long k = steps - 1; k >= 0; --k) {
    for (long i = 0; i < r.n; ++i) *r.places[i] = r.rows[i] + k * r.length;
    if (r.times) *r.clock = r.times[k];
    if (!Pull::step(X, q)) return false;
  }
  return true;
}

}  // namespace
