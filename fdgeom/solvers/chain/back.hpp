// Cotangents taken back through a step of a chain. Included after newton.hpp.

namespace {

// The nodes at the two ends of the pieces. See structs.py.
struct Meeting {
  const int *ids;  // [groups][2][W]: their numbers
  long number;     // how many there are
  double *sums;    // [number][numbers of the largest function]
};

// What the cells of each piece have given to the nodes of a function becomes what all cells give,
// and is taken from another one.
void take_from(Net &X, const Meeting &q, int change, int bar, int size) {
  for (long i = 0; i < q.number * size; ++i) q.sums[i] = 0.0;
  for (long g = 0; g < X.n_rods; ++g) {
    const Chain &Y = X.rods[g];
    const int *const ids = q.ids + g * 2 * W;
    for (int l = 0; l < W; ++l)
      for (int i = 0; Y.there[l] && i < size; ++i) {
        q.sums[ids[l] * size + i] += get(Y.F[change][i], l);
        q.sums[ids[W + l] * size + i] += get(Y.F[change][Y.count[l] * size + i], l);
      }
  }
  for (long g = 0; g < X.n_rods; ++g) {
    const Chain &Y = X.rods[g];
    const int *const ids = q.ids + g * 2 * W;
    for (int l = 0; l < W; ++l)
      for (int i = 0; i < size; ++i) {
        put(Y.F[change][i], l, q.sums[ids[l] * size + i]);
        for (long k = Y.count[l]; k <= Y.m; ++k) put(Y.F[change][k * size + i], l, q.sums[ids[W + l] * size + i]);
      }
    for (long j = 0; j < (Y.m + 1) * size; ++j) Y.F[bar][j] -= Y.F[change][j];
  }
}

}  // namespace
