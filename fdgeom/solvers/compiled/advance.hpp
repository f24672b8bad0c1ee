// Steps: phases one after another, each with its own fraction of the step.
#include <vector>

struct Move { int phase; double *dt; double value; int exchange, exchanges; };

namespace {

struct Run {
  const Context &X;
  int count;
  const Move *moves;
  double dt;
  std::vector<Frozen> frozen;
  std::vector<int> most;  // iterations of a move
  int bad;

  Run(const Context &context, int n, const Move *m, double step)
      : X(context), count(n), moves(m), dt(step), frozen(n), most(n), bad(0) {
    for (int k = 0; k < count; ++k) {
      set(k);
      frozen[k].ready = freeze(moves[k].phase, X, frozen[k]);
    }
  }
  void set(int k) const { if (moves[k].dt) *moves[k].dt = moves[k].value * dt; }
  // Part of a move, the k-th from the beginning; nothing after a failure.
  int take(int k, Span span) {
    if (bad) return 0;
    set(k % count);
    return bad = phase(moves[k % count].phase, X, span, frozen[k % count], most[k]);
  }
  void exchange(int k) const {
    const Move &m = moves[k % count];
    for (int e = 0; e < m.exchanges; ++e) fdgeom_exchange(X.exchange, m.exchange + e);
  }
  void count_iterations(int k) {
    Report &report = X.report[moves[k % count].phase];
    report.solves += 1;
    report.iterations += most[k];
    most[k] = 0;
  }
  int agree() { return bad = X.exchange ? fdgeom_agree(X.exchange, bad) : bad; }
};

#ifdef FDGEOM_CHAIN
// A block of nodes is taken through many moves while it is in the cache. Every move reads neighbours,
// so each stays `lag` nodes behind the one before. An end with ghosts comes first, with their exchange
// between the moves; from there blocks go towards the other end, or towards the middle.
constexpr long block = 256, lag = 8, most_moves = 128;
static_assert(lag % W == 0 && block % lag == 0, "blocks are made of vectors");

inline void blocked_steps(Run &run, int moves) {
  const bool right = run.X.ghosts & 2, left = (run.X.ghosts & 1) || !right;
  const long end = everything.end, all = run.X.cells / lag * lag;
  long l = left ? block + moves * lag : 0, r = right ? all - block - moves * lag : end;
  const long middle = left && right ? all / 2 : left ? all - block : block;
  for (int k = 0; k < moves; ++k) {
    if (left) run.take(k, {0, l - k * lag});
    if (right) run.take(k, {r + k * lag, end});
    run.exchange(k);
  }
  for (; left && l + block <= middle; l += block)
    for (int k = 0; k < moves; ++k) run.take(k, {l - k * lag, l + block - k * lag});
  for (; right && r - block >= middle; r -= block)
    for (int k = 0; k < moves; ++k) run.take(k, {r - block + k * lag, r + k * lag});
  for (int k = 0; k < moves; ++k)
    run.take(k, {left ? l - k * lag : 0, right ? r + k * lag : end});
}
#endif

}  // namespace

extern "C" {

int fdgeom_width() { return W; }

// One phase; for a single solve.
int fdgeom_phase(const Context *X, int k) {
  Frozen frozen;
  int most = 0;
  frozen.ready = freeze(k, *X, frozen);
  const int reason = phase(k, *X, everything, frozen, most);
  X->report[k].solves += 1;
  X->report[k].iterations += most;
  return reason;
}

// Square of the norm of a solve's residual over this rank's nodes.
double fdgeom_norm(const Context *X, int k) { return norm(k, *X); }

// `steps` steps of `count` moves each, in blocks if `blocked`. Returns 0, or the reason why a phase
// failed; `done` tells how many steps were taken, `failed_move` which move failed. Blocked, only the
// return value is told then.
int fdgeom_advance(const Context *X, long steps, int count, const Move *moves, const double *dt,
                   int blocked, long *done, int *failed_move) {
  Run run(*X, count, moves, *dt);
#ifdef FDGEOM_CHAIN
  if (blocked && count <= most_moves) {
    run.most.assign(most_moves, 0);
    while (*done < steps) {
      const long left = steps - *done, many = most_moves / count < left ? most_moves / count : left;
      blocked_steps(run, many * count);
      if (run.agree()) return run.bad;
      for (int k = 0; k < many * count; ++k) run.count_iterations(k);
      *done += many;
    }
    return 0;
  }
#else
  (void)blocked;
#endif
  while (*done < steps) {
    for (int k = 0; k < count; ++k) {
      if (run.take(k, everything)) *failed_move = k;
      if (run.bad && !X->exchange) return run.bad;
      run.count_iterations(k);
      run.exchange(k);
    }
    if (run.agree()) return run.bad;
    ++*done;
  }
  return 0;
}
}
