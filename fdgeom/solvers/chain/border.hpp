// Bordered systems: one more equation and unknown than those of chains, F(u, λ) = 0 and
// n·(u - u₀) + s (λ - λ₀) = size, where λ is a number in the equations. Included after newton.hpp; on
// one rank.
//
// Block elimination computes a = K⁻¹ F and z = K⁻¹ ∂F/∂λ with the factors of K, then λ. If K is nearly
// singular this loses digits, which the next iteration recovers: it refines the last one (Govaerts &
// Pryce, Block elimination with one refinement, BIT 30, 1990).

namespace {

// See structs.py.
struct Border {
  double *number;           // λ
  double slope, left;       // s; the residual of the second equation
};

// ∂F/∂λ of a group as a right-hand side; its ends have the contributions of its own cells only.
template <class Cell> void slope_of(const Chain &X) {
  constexpr int n = Cell::n;
  vec ra[n], rb[n], r[n];
  for (long k = 0; k < X.m; ++k) {
    Cell::slope(X, k, ra, rb);
    const lane_mask there = has_cell(X, k);
    for (int i = 0; i < n; ++i) {
      const vec sum = k ? r[i] + ra[i] : ra[i];
      const lane_mask keep = both(there, less(vec(0.5), X.free_[k * n + i]));
      X.rhs[k * n + i] = choose(keep, sum, vec(0.0));
      r[i] = k ? choose(there, rb[i], r[i]) : rb[i];
    }
  }
  for (int i = 0; i < n; ++i)
    X.rhs[X.m * n + i] = choose(less(vec(0.5), X.free_[X.m * n + i]), r[i], vec(0.0));
}

// rhs := K⁻¹ ∂F/∂λ.
template <class Cell, class Link> void solve_slope(Net &X) {
  for (long g = 0; g < X.n_rods; ++g) slope_of<Cell>(X.rods[g]);
  if constexpr (Link::there) for (long g = 0; g < X.n_links; ++g) slope_of<Link>(X.links[g]);
  apply<Link, true>(X);
}

// n·values.
template <int n> vec along_normal(const Chain &X, const vec *values) {
  vec sum = 0.0;
  for (long k = 0; k < (X.m + 1) * n; ++k)
    sum += choose(less(vec(0.5), X.once[k]), X.normal[k] * values[k], vec(0.0));
  return sum;
}
template <class Link, class Pick> double normal_times(const Net &X, Pick values) {
  vec sum = 0.0;
  for (long g = 0; g < X.n_rods; ++g) sum += along_normal<N>(X.rods[g], values(X.rods[g]));
  if constexpr (Link::there)
    for (long g = 0; g < X.n_links; ++g) sum += along_normal<Link::n>(X.links[g], values(X.links[g]));
  return sum_of(sum);
}

// The update after `linearise`; false if it does not exist.
template <class Cell, class Link> bool update_bordered(Net &X, Border &b) {
  solve_between(X.between);
  for (long g = 0; g < X.n_rods; ++g) {
    const Chain &Y = X.rods[g];
    spread<N>(Y, X.between, Y.step, Y.step + Y.m * N);
    for (long k = Y.m - 1; k >= 1; --k) {
      const vec *const c = Y.X + k * N * R3;
      for (int i = 0; i < N; ++i) {
        vec sum = c[i * R3 + 2 * N];
        for (int j = 0; j < N; ++j) sum -= c[i * R3 + j] * Y.step[(k + 1) * N + j];
        for (int j = 0; j < N; ++j) sum -= c[i * R3 + N + j] * Y.step[j];
        Y.step[k * N + i] = sum;
      }
    }
  }
  if constexpr (Link::there)
    for (long g = 0; g < X.n_links; ++g)
      spread<Link::n>(X.links[g], X.between, X.links[g].step, X.links[g].step + Link::n);
  solve_slope<Cell, Link>(X);
  const double a = normal_times<Link>(X, [](const Chain &Y) { return Y.step; });
  const double z = normal_times<Link>(X, [](const Chain &Y) { return Y.rhs; });
  const double change = (a - b.left) / (b.slope - z);
  if (!std::isfinite(change)) return false;
  move_all<Cell, Link>(X, 1.0, change);
  *b.number += change;
  b.left += b.slope * change - a - change * z;
  X.update = std::sqrt(X.update + change * change);
  X.size = std::sqrt(X.size + *b.number * *b.number);
  return true;
}

// Newton's iteration for both, from u + rhs and λ + ahead; returns why it ended.
template <class Cell, class Link, class Step>
int newton_bordered(Net &X, const Test &t, Border &b, double ahead, long &iterations) {
  b.left += b.slope * ahead + normal_times<Link>(X, [](const Chain &Y) { return Y.rhs; });
  move_all<Cell, Link>(X, 0.0, -1.0);
  Step::moved(X);
  *b.number += ahead;
  Watch watch;
  double step = 0.0, size = 0.0;
  for (int it = 0;; ++it) {
    const bool solvable = linearise<Cell, Link>(X);
    const int reason = watch(t, it, size, step, std::hypot(X.residual, b.left));
    if (reason) return reason;
    if (it == t.max_it) return too_many;
    if (!solvable || !update_bordered<Cell, Link>(X, b)) return singular;
    step = X.update;
    size = X.size;
    Step::moved(X);
    ++iterations;
  }
}

}  // namespace
