// Convergence test of Newton's method; the decisions are those of fdgeom/operations/convergence.py.
// Included after lanes.hpp.
#include <algorithm>
#include <cmath>

namespace {

// The fields of ConvergenceTest; `last` is negative for none.
struct Test {
  double rtol, atol, stol, unnoticed, last, small, left, secant, growth;
  int gives_up, notices_circles, max_it;
};

struct Reason {
  enum {
    iterating = 0,
    absolute = 2,
    relative = 3,
    update = 4,
    singular = -3,
    not_finite = -4,
    too_many = -5,
    circling = -8,
    grown = -9,
    not_contracting = -20
  };
};

// The test with the squares of its tolerances.
FDGEOM_INLINE Test squared(Test t) {
  for (double* x : {&t.rtol, &t.atol, &t.stol, &t.small, &t.left, &t.secant}) *x *= *x;
  t.last = std::copysign(t.last * t.last, t.last);
  return t;
}

// Whether an update ends the iteration: norms of unknown, update and residual, of the residuals before
// it and at first, and of all updates together. In lanes norms, tolerances and `half` are squares.
template <class T>
FDGEOM_INLINE auto is_last(const Test& t, double half, T x, T step, T f, T before, T first,
                           T moved) {
  const double tolerance = t.stol > 0.0 ? t.stol : t.last > 0.0 ? t.last : 0.0;
  const auto stays = f >= half * before;
  auto small = (step <= tolerance * x) | (stays & (step <= t.small * x));
  // A diverging unknown becomes so large that every update is small beside it.
  if (t.last >= 0.0) small &= f <= first;
  if (t.secant > 0.0) small &= f * moved <= t.secant * std::fmax(tolerance, t.small) * x * first;
  return small | (stays & (f <= t.left * first));
}

// The decisions in one iteration.
struct Watch {
  Test test;
  bool contracting;
  double of;  // the norm that `unnoticed` is a part of

  // `guess`: the norm of the guess, for an iteration that must contract.
  void begin(const Test& t, bool must_contract, double guess, double norm_of) {
    test = t;
    contracting = must_contract;
    of = norm_of;
    update_ = guess;
    moved_ = 0.0;
    smallest_ = HUGE_VAL;
    for (double& r : recent_) r = HUGE_VAL;
  }

  // For the norms of unknown, update and residual.
  int decide(int iteration, double x, double step, double f) {
    if (!std::isfinite(f) || !std::isfinite(x) || std::isnan(step)) return Reason::not_finite;
    if (iteration == 0) first_ = before_ = f;
    const double before = before_;
    before_ = f;
    moved_ += step;
    if (f <= test.atol) return Reason::absolute;
    if (iteration == 0) return Reason::iterating;
    const bool lost = f > test.growth * first_;
    if (lost && test.gives_up) return Reason::grown;
    if (f <= test.rtol * first_) return Reason::relative;
    const bool small = is_last(test, 0.5, x, step, f, before, first_, moved_);
    if (!lost && (small || step <= test.unnoticed * of)) return Reason::update;
    const double last = update_;
    update_ = step;
    if (contracting && last > 0.0 && last <= step && step > test.small * x)
      return Reason::not_contracting;
    const bool circles = is_circling(iteration, step);
    return test.notices_circles && circles ? Reason::circling : Reason::iterating;
  }

 private:
  double first_ = 0.0, before_ = 0.0, update_ = 0.0, moved_ = 0.0;
  double smallest_ = HUGE_VAL, recent_[4];

  // Whether none of the last four of at least eight updates is below half of the smallest before.
  bool is_circling(int iteration, double step) {
    smallest_ = std::min(smallest_, recent_[iteration % 4]);
    recent_[iteration % 4] = step;
    return iteration >= 8 && *std::min_element(recent_, recent_ + 4) >= 0.5 * smallest_;
  }
};

}  // namespace
