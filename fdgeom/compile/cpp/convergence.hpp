// Convergence test of Newton's method; the decisions are those of fdgeom/operations/convergence.py.
#include <algorithm>
#include <cmath>

namespace {

// The fields of ConvergenceTest; `last` is negative for none.
struct Test {
  double rtol, atol, stol, unnoticed, last, small, left;
  int gives_up, notices_circles, max_it;
};

struct Reason {
  enum {
    iterating = 0,
    absolute = 1,
    relative = 2,
    update = 3,
    too_many = -1,
    singular = -2,
    not_finite = -3,
    grown = -5,
    not_contracting = -6,
    circling = -7
  };
};

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
    smallest_ = HUGE_VAL;
    for (double& r : recent_) r = HUGE_VAL;
  }

  // For the norms of unknown, update and residual.
  int decide(int iteration, double x, double step, double f) {
    if (!std::isfinite(f) || std::isnan(step)) return Reason::not_finite;
    if (iteration == 0) first_ = before_ = f;
    const double before = before_;
    before_ = f;
    if (f <= test.atol) return Reason::absolute;
    if (iteration == 0) return Reason::iterating;
    // If the residual has grown by this factor, a small update means nothing.
    const bool lost = f > 1e15 * first_;
    if (lost && test.gives_up) return Reason::grown;
    if (f <= test.rtol * first_) return Reason::relative;
    if (!lost && is_last(x, step, f, before)) return Reason::update;
    const double last = update_;
    update_ = step;
    if (contracting && last > 0.0 && last <= step && step > test.small * x)
      return Reason::not_contracting;
    const bool circles = is_circling(iteration, step);
    return test.notices_circles && circles ? Reason::circling : Reason::iterating;
  }

 private:
  double first_ = 0.0, before_ = 0.0, update_ = 0.0;
  double smallest_ = HUGE_VAL, recent_[4];

  bool is_last(double x, double step, double f, double before) const {
    const double tolerance = test.stol > 0.0 ? test.stol : test.last > 0.0 ? test.last : 0.0;
    bool small = step <= tolerance * x;
    if (f >= 0.5 * before) small = small || step <= test.small * x || f <= test.left * first_;
    // A diverging unknown becomes so large that every update is small beside it.
    if (test.last >= 0.0) small = small && f <= first_;
    return small || step <= test.unnoticed * of;
  }
  // Whether none of the last four of at least eight updates is below half of the smallest before.
  bool is_circling(int iteration, double step) {
    smallest_ = std::min(smallest_, recent_[iteration % 4]);
    recent_[iteration % 4] = step;
    return iteration >= 8 && *std::min_element(recent_, recent_ + 4) >= 0.5 * smallest_;
  }
};

}  // namespace
