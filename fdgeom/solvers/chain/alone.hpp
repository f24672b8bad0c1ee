// Solves for the unknowns at the ends of isolated pieces, in the lanes. The ends of an isolated piece
// belong to no other piece and to no link, as with one rod per lane. Included after blocks.hpp, before
// chain.hpp.

namespace {

constexpr int TWO = 2 * N;

// Both ends together: the left one, then the right one.
struct Alone {
  vec A[TWO * TWO];  // their matrix, then its factors, the inverses of the pivots on the diagonal
  vec x[TWO];        // the update there
  vec row[TWO];      // where each pivot was found
};

inline bool any(lane_mask c) {
  int64_t found = 0;
  for (int l = 0; l < W; ++l) found |= c[l];
  return found != 0;
}

// Swaps two values where `there`.
inline void exchange(lane_mask there, vec &a, vec &b) {
  const vec first = a;
  a = choose(there, b, a);
  b = choose(there, first, b);
}

// LU. `smallest` becomes the smallest pivot if it was larger, or 0 if a pivot is zero. Rows are exchanged
// if another entry is ten times as large, but the row of a given unknown remains its own pivot, so that
// its value is exact.
inline void factorise_alone(Alone &q, const vec *free_, vec &smallest) {
  vec *const A = q.A;
  for (int k = 0; k < TWO; ++k) {
    const vec size = fabs(A[k * TWO + k]);
    vec most = size, from = vec(double(k));
    for (int i = k + 1; i < TWO; ++i) {
      const vec other = fabs(A[i * TWO + k]);
      const lane_mask larger = less(most, other);
      most = choose(larger, other, most);
      from = choose(larger, vec(double(i)), from);
    }
    const lane_mask moves = both(less(size, 0.1 * most), less(vec(0.5), free_[k]));
    q.row[k] = choose(moves, from, vec(double(k)));
    for (int i = any(moves) ? k + 1 : TWO; i < TWO; ++i) {
      const lane_mask here = both(moves, equal(from, vec(double(i))));
      for (int j = 0; any(here) && j < TWO; ++j) exchange(here, A[k * TWO + j], A[i * TWO + j]);
    }
    const vec pivot = fabs(A[k * TWO + k]);
    const vec margin = choose(less(pivot, vec(1e300)), pivot, vec(0.0));
    smallest = choose(less_equal(smallest, margin), smallest, margin);
    const vec inverse = A[k * TWO + k] = 1.0 / A[k * TWO + k];
    for (int i = k + 1; i < TWO; ++i) {
      const vec factor = A[i * TWO + k] *= inverse;
#pragma GCC unroll 4
      for (int j = k + 1; j < TWO; ++j) A[i * TWO + j] -= factor * A[k * TWO + j];
    }
  }
}

// x := A⁻¹ x.
inline void solve_alone(const Alone &q, vec *x) {
  for (int k = 0; k < TWO; ++k) {
    if (!any(less(vec(double(k)), q.row[k]))) continue;
    for (int i = k + 1; i < TWO; ++i) exchange(equal(q.row[k], vec(double(i))), x[k], x[i]);
  }
  for (int i = 1; i < TWO; ++i)
    for (int k = 0; k < i; ++k) x[i] -= q.A[i * TWO + k] * x[k];
  for (int i = TWO - 1; i >= 0; --i) {
    for (int k = i + 1; k < TWO; ++k) x[i] -= q.A[i * TWO + k] * x[k];
    x[i] *= q.A[i * TWO + i];
  }
}

}  // namespace
