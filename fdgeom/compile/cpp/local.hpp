// Solves at single nodes or cells, W places at a time. Included after blocks.hpp, convergence.hpp and fields.hpp.

namespace {

// An update relative to the unknown that changes its last digits only, squared. With a tangent that is
// kept, updates shrink at a steady rate, and the remaining errors of all steps have one sign.
constexpr double round_off = 4e-30, kept_round_off = 1e-31;

// How the update is computed: with the inverse of the tangent at zero, by elimination without pivoting, or so
// with rows of prescribed unknowns, where the mask m is zero.
enum Solver { chord, plain, masked };

template <class Op, Solver solver> FDGEOM_INLINE void update(const Run &X, Fields F, Outs G, long k, const raw *w, const raw *b, const raw *m, raw *u, raw *R) {
  constexpr int n = Op::n;
  if constexpr (solver == chord) {
    raw x[n];
#pragma GCC unroll 64
    for (int i = 0; i < n; ++i) {
      x[i] = X.inverse[i * n] * R[0];
#pragma GCC unroll 64
      for (int j = 1; j < n; ++j) x[i] += X.inverse[i * n + j] * R[j];
    }
#pragma GCC unroll 64
    for (int i = 0; i < n; ++i) R[i] = x[i];
  } else {
    raw J[n * n];
    Op::tangent(X, F, G, k, w, b, u, J);
    if constexpr (solver == masked)
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) J[i * n + j] *= m[i];
        J[i * n + i] += 1.0 - m[i];
      }
    solve_plain<n>(J, R);
  }
#pragma GCC unroll 64
  for (int i = 0; i < n; ++i) u[i] -= R[i];
}

// Newton's method at all places of a block at once; the number of iterations, or -1 if some place has not
// converged, or not fast enough with the kept inverse: then it is done otherwise.
template <class Op, Solver solver> FDGEOM_INLINE int newton(const Run &X, Fields F, Outs G, long k, const Call &call, const raw *w, const raw *b, const raw *m, raw *u) {
  constexpr int n = Op::n;
  constexpr bool kept = solver == chord;
  const Test t = squared(*call.test);
  raw R[n], first = {}, last = {}, before = {}, size = {}, moved = {};
  lane_mask open = lane_mask{} - 1;
  // Updates still to do: with the kept inverse one after convergence, which reduces the error again.
  long more = -1;
  for (int it = 0;; ++it) {
    Op::residual(X, F, G, k, w, u, R);
    if constexpr (solver == masked)
      for (int i = 0; i < n; ++i) R[i] *= m[i];
    const raw norm = square<n>(R);
    if (it == 0) first = norm;
    // Without the test of the first update, which takes time: it is seldom the last one.
    if (!kept && it > 1) open &= ~is_last(t, 0.25, size, before, norm, last, first, moved);
    if (more < 0 && (all_le(norm, t.rtol * first + t.atol) || none(open) ||
                     (it > 0 && all_le(norm * before, round_off * size * last)))) {
      if (!all_le(first + size, 1e300)) return -1;
      more = call.extra_updates + kept;
    }
    if (more == 0) return it;
    if (more < 0 && it == (kept && t.max_it > 7 ? 7 : t.max_it)) return -1;
    update<Op, solver>(X, F, G, k, w, b, m, u, R);
    if (more > 0 && --more == 0) return it + !kept;
    const raw step = square<n>(R);
    size = square<n>(u);
    // An update that is small at once, or one after which the next would be below round-off: if the residual
    // has fallen like the updates, the tangent changes no more.
    if (more < 0 && (((kept || it == 0) && all_le(step, t.stol * size)) ||
                     (it > 0 && all_le(step * step, (kept ? kept_round_off : round_off) * size * before) &&
                      (kept || all_le(norm * before, 1e8 * step * last))))) {
      if (!all_le(first + size, 1e300)) return -1;
      more = call.extra_updates;
      if (more == 0) return it + 1;
    }
    if (kept && more < 0 && it > 0 && !all_le(step, 0.01 * before + round_off * size)) return -1;
    last = norm;
    before = step;
    moved += step;
  }
}

// Newton's method of one place by itself, with row exchanges and rows of prescribed unknowns.
struct Alone {
  Watch watch;
  double step = 0.0, size = 0.0, norm = 0.0;
  long more = -1;
  int iterations = -1;  // of a place that has converged; other negative values: why it has failed
  bool open = true;

  void end(int found) { iterations = found; open = false; }
  template <int n> void move(const Call &call, int it, double *J, double *R, const double *m, double *u, bool affine) {
    for (int i = 0; i < n; ++i) R[i] *= m[i];
    norm = root<n>(R);
    if (it == 0) watch.begin(*call.test, false, 0.0, 0.0);
    const int reason = watch.decide(it, size, step, norm);
    if (reason < 0) return end(reason);
    if (more < 0 && reason) more = call.extra_updates;
    if (more == 0) return end(it);
    if (more > 0) --more;
    else if (it == call.test->max_it) return end(Reason::too_many);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) J[i * n + j] = m[i] * J[i * n + j] + (i == j ? 1.0 - m[i] : 0.0);
    if (!Block<n>::invert(J, R, 1e-15)) return end(Reason::singular);
    for (int i = 0; i < n; ++i) u[i] -= R[i];
    step = root<n>(R);
    size = root<n>(u);
    if (!(size <= 1e150)) return end(Reason::not_finite);
    if (affine) end(it + 1);
  }
  template <int n> static double root(const double *x) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += x[i] * x[i];
    return std::sqrt(sum);
  }
};

// A block with places that have not converged otherwise. No array of it is one of the fast path's, which stay
// in registers.
template <class Op> __attribute__((noinline)) int robust(const Run &X, Fields F, Outs G, long k, const Call &call, const raw *b, Report &report) {
  constexpr int n = Op::n;
  raw w[Op::nw], u[n], R[n], J[n * n], m[n];
  const long there = Op::at_nodes ? X.node_counts[k] : X.counts[k];
  Op::prepare(X, F, G, k, b, w);
  Op::guess(X, F, G, k, u);
  for (int i = 0; i < n; ++i) m[i] = lanes(1.0);
  if constexpr (Op::held) Op::hold(X, F, G, k, u, m);
  Alone place[W];
  long left = there;
  // Ghosts have no sums of what their cells give: they get the values of their owners.
  if (Op::at_nodes && X.ghosts)
    for (long l = 0; l < there; ++l)
      if (X.ghosts[k * W + l]) { place[l].end(0); --left; }
  for (int it = 0; left; ++it) {
    Op::residual(X, F, G, k, w, u, R);
    Op::tangent(X, F, G, k, w, b, u, J);
    for (long l = 0; l < there; ++l) {
      if (!place[l].open) continue;
      double A[n * n], r[n], x[n], free_[n];
      for (int i = 0; i < n * n; ++i) A[i] = J[i][l];
      for (int i = 0; i < n; ++i) { r[i] = R[i][l]; x[i] = u[i][l]; free_[i] = m[i][l]; }
      place[l].move<n>(call, it, A, r, free_, x, Op::affine);
      for (int i = 0; i < n; ++i) u[i][l] = x[i];
      left -= !place[l].open;
    }
  }
  int most = 0;
  for (long l = 0; l < there; ++l) {
    if (place[l].iterations < 0) {
      report.failed = k * W + l;
      report.norm = place[l].norm;
      return place[l].iterations;
    }
    if (place[l].iterations > most) most = place[l].iterations;
  }
  Op::store(X, F, G, k, b, u);
  return most;
}

template <class Op> FDGEOM_INLINE int fast(const Run &X, Fields F, Outs G, long k, const Call &call, const raw *b) {
  raw w[Op::nw], u[Op::n];
  int found = -1;
  Op::prepare(X, F, G, k, b, w);
  if constexpr (Op::affine) {
    raw R[Op::n];
    Op::solution(X, F, G, k, b, R, u);
    const raw before = square<Op::n>(R);
    Op::residual(X, F, G, k, w, u, R);
    // The residual tells whether pivots were too small.
    found = all_le(square<Op::n>(R), 1e-22 * before) ? 1 : -1;
  } else {
    if constexpr (Op::chord) if (X.inverse) {
      Op::guess(X, F, G, k, u);
      found = newton<Op, chord>(X, F, G, k, call, w, b, nullptr, u);
    }
    if (found < 0) {
      Op::guess(X, F, G, k, u);
      found = newton<Op, plain>(X, F, G, k, call, w, b, nullptr, u);
    }
  }
  if (found >= 0) Op::store(X, F, G, k, b, u);
  return found;
}

// A block with places that have prescribed unknowns.
template <class Op> __attribute__((noinline)) int prescribed(const Run &X, Fields F, Outs G, long k, const Call &call, const raw *b) {
  constexpr int n = Op::n;
  raw w[Op::nw], u[n], m[n];
  Op::prepare(X, F, G, k, b, w);
  Op::guess(X, F, G, k, u);
  for (int i = 0; i < n; ++i) m[i] = lanes(1.0);
  Op::hold(X, F, G, k, u, m);
  const int found = newton<Op, masked>(X, F, G, k, call, w, b, m, u);
  if (found >= 0) Op::store(X, F, G, k, b, u);
  return found;
}

template <class Op> FDGEOM_INLINE int solve_block(const Run &X, const Call &call, Fields F, Outs G, long k, const raw *b, Report &report) {
  const bool held = Op::held && call.held && call.held[k];
  int found = -1;
  if (!held) found = fast<Op>(X, F, G, k, call, b);
  else if constexpr (Op::held) {
    raw right[Op::nb];
    for (int i = 0; i < Op::nb; ++i) right[i] = b[i];
    found = prescribed<Op>(X, F, G, k, call, right);
  }
  if (__builtin_expect(found >= 0, 1)) return found;
  raw right[Op::nb];
  for (int i = 0; i < Op::nb; ++i) right[i] = b[i];
  return robust<Op>(X, F, G, k, call, right, report);
}

// The inverse of the tangent at zero. Where it is singular or not finite, solves do without it.
template <class Op> void invert(const Run &X, double *inverse) {
  if constexpr (Op::chord) {
    if (!inverse) return;
    inverse[inverse_size] = 0.0;
    constexpr int n = Op::n;
    raw J[n * n];
    double x[n] = {};
    Op::tangent_at_zero(X, nullptr, nullptr, 0, J);
    for (int i = 0; i < n * n; ++i) inverse[i] = J[i][0];
    bool good = Block<n>::invert(inverse, x, 1e-15);
    for (int i = 0; i < n * n; ++i) good = good && std::fabs(inverse[i]) <= 1e300;
    inverse[inverse_size] = good;
  }
}

}  // namespace
