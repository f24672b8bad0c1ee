// Newton's method along chains, and the attempts of a solve. Included after
// small_chain.hpp and chain_lu.hpp.

namespace {

// Whether the present factors suffice for another update, judged by the sizes of the last two. The
// tangent changes by a fraction of the order of their ratio. Newton's next update would be of the
// order of the square of the last one; an update with old factors leaves the product of the two. So
// it takes a fraction of the work, and no more updates are needed.
inline bool is_near(double step, double before, double size, bool old) {
  if (old) return step <= 0.01 * before;
  const double part = step / before;
  return step <= 1e-3 * size && 2.0 * part * part * part * part * step <= 1e-15 * size;
}

// u := u - x, with the solution x.
template <class Problem>
__attribute__((noinline)) void update(Problem& p) {
  raw moved = {}, sizes = {};
  p.solution([&](long k, const raw* x) { p.move(k, x, moved, sizes); });
  p.norms(moved, sizes);
}

// Newton's method with whole steps from the present unknown; returns a Reason.
template <class Problem>
int newton_whole(Problem& p, const Test& t, bool must_contract, long& iterations) {
  Watch watch;
  const double of = p.norm_of();
  watch.begin(t, must_contract, must_contract ? p.norm() : 0.0, of);
  bool solvable = p.linearise();
  const double first = p.residual;
  int reason = watch.decide(0, 0.0, 0.0, first);
  // Whether the factors are old, and whether the error that they leave is negligible: only then do
  // updates with old factors end the iteration. Stiffnesses of different orders may make some
  // converge slowly.
  bool old = false, negligible = false;
  double before = -1.0;
  for (int it = 1;; ++it) {
    if (reason) return reason;
    if (it > t.max_it) return Reason::too_many;
    if (!solvable) return Reason::singular;
    if (old) p.apply();
    update(p);
    ++iterations;
    const double step = p.step, size = p.size;
    const double noise = std::max(1e-15 * size, t.unnoticed * of);
    negligible = old && (negligible || step * step <= noise * before);
    const bool may_end = !old || negligible;
    old = is_near(step, before < 0.0 ? size : before, size, old);
    before = step;
    // After the first update, and after what may be the last one, only the residual is computed, a
    // fraction of the work.
    const bool alone = it == 1 || old || step <= 1e-7 * size || step <= 1e-12 * of;
    if (alone)
      p.evaluate();
    else
      solvable = p.linearise();
    // After the first update the residual tells more than the sizes of updates.
    old = old || (it == 1 && p.residual <= 1e-4 * first);
    reason = watch.decide(it, size, step, p.residual);
    if (reason > 0 && !may_end) reason = Reason::iterating;
    if (alone && !reason && !old) solvable = p.linearise();
  }
}

// Newton's method with steps λ d that are damped by the error-oriented line search NLEQ-ERR (P.
// Deuflhard, Newton Methods for Nonlinear Problems, 2011, section 3.3.3), with the choices of
// PETSc's: the simplified update, by the same matrix at the trial point, must be smaller than d.
template <class Problem>
struct Damped {
  static constexpr double least = 1e-12;  // the smallest λ; below it a whole step is taken
  static constexpr int trials = 40;
  Problem& p;
  std::vector<raw> saved, d, simplified;
  double last_d = -1.0, last_simplified = -1.0,
         last_length = 1.0;  // norms and λ of the step before

  explicit Damped(Problem& problem) : p(problem) {
    for (auto* v : {&saved, &d, &simplified}) v->resize(p.node_blocks * Problem::unknowns);
  }
  // The solution for the present right-hand sides; returns its norm.
  double solve(std::vector<raw>& to) {
    raw sum = {};
    p.solution([&](long k, const raw* x) {
      for (int i = 0; i < Problem::unknowns; ++i) {
        to[k * Problem::unknowns + i] = x[i];
        const raw q = x[i] * p.there(k, i);
        sum += q * q;
      }
    });
    return p.root(sum);
  }
  // The norm of the simplified update plus a multiple of d.
  double difference(double factor) const {
    raw sum = {};
    for (long i = 0; i < long(d.size()); ++i) {
      const raw q = (simplified[i] + factor * d[i]) * p.there(i / Problem::unknowns, i % Problem::unknowns);
      sum += q * q;
    }
    return p.root(sum);
  }
  // One step with the factors of the last `linearise`; the norm of d, or a negative number if no λ
  // is found.
  double step() {
    const double whole = solve(d);
    if (!(whole > 0.0)) return whole == 0.0 ? -1.0 : whole;
    double length = 1.0;
    if (last_d > 0.0 && last_simplified > 0.0) {
      const double estimate = last_length * last_d * last_simplified / (difference(-1.0) * whole);
      length = std::min(1.0, estimate);
    }
    p.save(saved.data());
    for (int trial = 1; trial < trials; ++trial) {
      if (length <= least) {
        p.put(saved.data(), 1.0, d.data());
        last_d = last_simplified = -1.0;
        last_length = 1.0;
        return HUGE_VAL;
      }
      p.put(saved.data(), length, d.data());
      p.evaluate();
      p.apply();
      const double next = solve(simplified);
      const double allowed = 0.5 * whole * length * length / difference(-(1.0 - length));
      if (next < whole) {
        last_d = whole;
        last_simplified = next;
        last_length = length;
        return whole;
      }
      length = std::max(std::min(0.5 * length, allowed), least);  // 0.5 λ for a NaN
    }
    p.put(saved.data(), 0.0, d.data());
    return -1.0;
  }
};

template <class Problem>
int newton_damped(Problem& p, Test t, long& iterations) {
  Watch watch;
  Damped<Problem> search(p);
  t.notices_circles = 0;  // damped steps get through the kink of friction slowly
  watch.begin(t, false, 0.0, p.norm_of());
  bool solvable = p.linearise();
  int reason = watch.decide(0, 0.0, 0.0, p.residual);
  for (int it = 1; !reason; ++it) {
    if (it > t.max_it) return Reason::too_many;
    if (!solvable) return Reason::singular;
    const double step = search.step();
    ++iterations;
    if (step < 0.0) return Reason::not_contracting;
    solvable = p.linearise();
    reason = watch.decide(it, p.size, step, p.residual);
  }
  return reason;
}

// A solve along a chain: its attempts one after another. Returns a Reason; after a failure the report
// has the node with the largest residual of the last attempt, and the norm of the residual.
template <class Op>
int attempted(const Run& X, const Call& call, Fields F, Outs G, long& iterations, Report& report) {
  std::conditional_t<Op::small, SmallChain<Op>, TreeSolve<Op>> p(X, F, G);
  if constexpr (Op::affine) {
    p.start(0);
    p.counts = call.inertia;
    bool solvable = true;
    // Solves of equal code share the memory of factors.
    static thread_local const Call* last = nullptr;
    const bool has_factors = last == &call;
    last = &call;
    if (Op::update && call.old && has_factors) {
      p.evaluate();
      p.apply();
    } else
      solvable = p.linearise();
    report.failed = 0;
    report.norm = p.residual;
    if (!solvable) return std::isfinite(p.residual) ? Reason::singular : Reason::not_finite;
    if constexpr (Op::update) {
      if (p.counts) report.negative = p.negative();
      report.of = p.norm_of();
    }
    update(p);
    ++iterations;
    report.step = p.step;
    return std::isfinite(p.step) ? Reason::relative : Reason::not_finite;
  } else {
    int first = 0, reason = Reason::iterating;
    if constexpr (Op::chooses) {
      double residuals[2];
      for (int which = 0; which < 2; ++which) {
        p.start(which);
        p.evaluate();
        residuals[which] = p.residual;
      }
      first = residuals[1] <= residuals[0];
    }
    bool circles = false;
    for (const Attempt& attempt : Op::attempts) {
      if (circles && !attempt.damped) continue;
      Test t = *call.test;
      if (attempt.max_it) t.max_it = attempt.max_it;
      p.start(attempt.start ^ first);
      int found;
      if (Op::damps && attempt.damped) {
        if constexpr (Op::damps) found = newton_damped(p, t, iterations);
        // An update may be small because it was damped: whole ones have the last word.
        if (found > 0) found = newton_whole(p, *call.test, false, iterations);
      } else
        found = newton_whole(p, t, attempt.must_contract, iterations);
      if (found > 0) return found;
      circles = circles || found == Reason::circling;
      if (!(attempt.damped && reason)) reason = found;
    }
    p.evaluate();
    report.failed = p.worst();
    report.norm = p.residual;
    return reason;
  }
}

// The same as a call of a step: 0 or a Reason; adds its iterations to `most`.
template <class Op>
int solve_chain(const Run& X, const Call& call, Fields F, Outs G, Report& report, int& most) {
  long iterations = 0;
  const int reason = attempted<Op>(X, call, F, G, iterations, report);
  most += iterations;
  return reason > 0 ? 0 : reason;
}

}  // namespace
