// Newton's iteration on a chain, its convergence tests, and steps. Included after chain.hpp.

namespace {

// As in structs.py. kind 0: PETSc's own test, by tolerances; 1: fdgeom.solvers.settled.Settled, whose
// arguments these are (last: negative for none); 2: one update, of equations of first degree.
struct Test {
  int kind, max_it;
  double rtol, atol, stol, unnoticed, last, small, left;
  int positions;    // the function of nodes whose norm `unnoticed` is a part of; -1: none
  int contracting;  // whether an update that is not smaller than the last one is a failure
  double grown;     // for kind 0: factor of the first residual beyond which it has diverged; 0: none
  int circles;      // for kind 1: whether updates that circle are a failure (notices_circles)
};

enum { iterating = 0, converged = 1, too_many = -1, singular = -2, not_finite = -3, diverged = -4, circling = -6 };

struct Watch {
  double first = 0.0, before = 0.0, last = 0.0, positions = 0.0;
  double smallest = HUGE_VAL, recent[4] = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};  // of the updates

  // Whether none of the last four of at least eight updates is below half of the smallest before.
  bool circles(int it, double step) {
    smallest = std::min(smallest, recent[it % 4]);
    recent[it % 4] = step;
    const double least = std::min(std::min(recent[0], recent[1]), std::min(recent[2], recent[3]));
    return it >= 8 && least >= 0.5 * smallest;
  }

  int operator()(const Test &t, int it, double x, double step, double f) {
    if (!std::isfinite(f) || !std::isfinite(step)) return not_finite;
    if (it == 0) first = before = f;
    const double f0 = before;
    before = f;
    if (t.kind == 2) return it ? converged : iterating;
    if (f <= t.atol) return converged;
    if (it == 0) return iterating;
    if (t.kind == 1 && f > 1e15 * first) return diverged;
    if (f <= t.rtol * first) return converged;
    if (t.kind == 0 && step < t.stol * x) return converged;
    if (t.kind == 0) return t.grown > 0.0 && f > t.grown * first ? diverged : iterating;
    bool small = step <= (t.stol > 0.0 ? t.stol : t.last > 0.0 ? t.last : 0.0) * x;
    if (f >= 0.5 * f0) small = small || step <= t.small * x || f <= t.left * first;
    if (t.last >= 0.0) small = small && f <= first;
    if (small || (t.positions >= 0 && step <= t.unnoticed * positions)) return converged;
    const double l = last;
    last = step;
    if (t.contracting && l > 0.0 && l <= step && step > t.small * x) return diverged;
    return t.circles && circles(it, step) ? circling : iterating;
  }
};

// The norm of a function of the nodes.
double norm_of(const Net &X, int function, int size) {
  vec sum = 0.0;
  const auto add = [&](const Chain &Y) {
    for (long k = 0; k <= Y.m; ++k)
      for (int i = 0; i < size; ++i) {
        const vec v = Y.F[function][k * size + i];
        sum += choose(less(vec(0.5), Y.nodes[k]), v * v, vec(0.0));
      }
  };
  for (long g = 0; g < X.n_rods; ++g) add(X.rods[g]);
  for (long g = 0; g < X.n_links; ++g) add(X.links[g]);
  double square = sum_of(sum);
  sum_over(X.ranks, &square, 1);
  return std::sqrt(square);
}

// No functions depend on the unknown between updates.
struct Still { static void moved(Net &) {} };

// Whether the present factors suffice for another update, judged by the sizes of the last two. The tangent
// changes by a fraction of the order of their ratio. Newton's next update would be of the order of the
// square of the last one; an update with old factors leaves the product of the two. So it takes a fraction
// of the work, and no more updates are needed. If stiffnesses differ by many orders, components that are
// small beside others may converge slowly: updates with old factors end the iteration only after one whose
// remaining error, estimated from its own size, is negligible.
// After the first update the residual tells more than its size: `near` is the part of it that may be left.
constexpr double near = 1e-4;
inline bool is_near(double step, double before, double size, bool old) {
  if (old) return step <= 0.01 * before;
  const double part = step / before;
  return step <= 1e-3 * size && 2.0 * part * part * part * part * step <= 1e-15 * size;
}

// Newton's iteration from the present unknown; returns the reason of its end.
template <class Cell, class Link, class Follows = Still> int newton(Net &X, const Test &t, long &iterations) {
  Watch watch;
  if (t.positions >= 0) watch.positions = norm_of(X, t.positions, 3);
  if (t.contracting) watch.last = norm_of_unknown<Cell, Link>(X);
  bool solvable = linearise<Cell, Link>(X);
  int reason = watch(t, 0, 0.0, 0.0, X.residual);
  const bool kept = X.n_rods && X.rods[0].factors;
  bool old = false, spent = false;  // whether the factors are old; whether the error they leave is negligible
  double before = -1.0;
  for (int it = 1;; ++it) {
    if (reason) return reason;
    if (it > t.max_it) return too_many;
    if (!solvable) return singular;
    if (old) update_again<Cell, Link>(X);
    else update<Cell, Link>(X);
    Follows::moved(X);
    ++iterations;
    const double step = X.update, size = X.size;
    const double noise = std::max(1e-15 * size, t.unnoticed * watch.positions);
    spent = old && (spent || step * step <= noise * before);
    const bool may_end = !old || spent;
    old = kept && is_near(step, before < 0.0 ? size : before, size, old);
    before = step;
    // After the first update, and what may be the last, only the residual is computed, a fraction of the work.
    const bool first = kept && it == 1;
    const bool alone = first || t.kind == 2 || old || step <= 1e-7 * size || step <= 1e-12 * watch.positions;
    if (alone) evaluate<Cell, Link>(X);
    else solvable = linearise<Cell, Link>(X);
    old = old || (first && X.residual <= near * watch.first);
    reason = watch(t, it, size, step, X.residual);
    if (reason == converged && !may_end) reason = iterating;
    if (alone && !reason && !old) solvable = linearise<Cell, Link>(X);
  }
}

// Calls a function for every group; chains and links may have different ones.
template <class F, class G> void each(Net &X, F f, G of_links) {
  for (long g = 0; g < X.n_rods; ++g) f(X.rods[g]);
  for (long g = 0; g < X.n_links; ++g) of_links(X.links[g]);
}
template <class F> void each(Net &X, F f) { each(X, f, f); }

// Results that steps save: some arrays, one after another in a row per step. See structs.py.
struct Kept {
  const double *const *arrays;
  const long *sizes;
  long n, length;
  double *to;
};
inline void keep(const Kept &q, long row) {
  double *to = q.to + row * q.length;
  for (long i = 0; i < q.n; to += q.sizes[i++]) std::memcpy(to, q.arrays[i], q.sizes[i] * sizeof(double));
}

// Runs steps; see steps.py for `Step`. `times` are the values of the clock in each step. Returns the
// reason of the end of the last step.
template <class Step> int advance(Net &X, const Test &t, long steps, const double *times, double *clock,
                                  const Kept *kept, long *done, long *iterations) {
  for (*done = 0; *done < steps; ++*done) {
    if (clock) *clock = times[*done];
    const int reason = Step::take(X, t, *iterations);
    if (reason != converged) return reason;
    if (kept) keep(*kept, *done + 1);
  }
  return converged;
}

struct Copy { vec *here; double *there; const int *place; long count; int size; };

}  // namespace

extern "C" {

// Copies Firedrake's values into the lanes, and back. place: [count][W], -1 for none.
void fdgeom_chain_in(const Copy *copies, int n) {
  for (int c = 0; c < n; ++c) {
    double *here = (double *)copies[c].here;
    const int size = copies[c].size;
    for (long k = 0; k < copies[c].count; ++k)
      for (int l = 0; l < W; ++l) {
        const int p = copies[c].place[k * W + l];
        if (p < 0) continue;
        const double *from = copies[c].there + (long)p * size;
        for (int i = 0; i < size; ++i) here[(k * size + i) * W + l] = from[i];
      }
  }
}
void fdgeom_chain_out(const Copy *copies, int n) {
  for (int c = 0; c < n; ++c) {
    const double *here = (const double *)copies[c].here;
    const int size = copies[c].size;
    for (long k = 0; k < copies[c].count; ++k)
      for (int l = 0; l < W; ++l) {
        const int p = copies[c].place[k * W + l];
        if (p < 0) continue;
        double *to = copies[c].there + (long)p * size;
        for (int i = 0; i < size; ++i) to[i] = here[(k * size + i) * W + l];
      }
  }
}
int fdgeom_chain_width() { return W; }

}
