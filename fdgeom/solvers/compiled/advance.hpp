// Steps: sequences of phases, each with its own fraction of the step.
#include <vector>

struct Move {
  int phase;
  double *dt, value;
  int exchange, exchanges;
  int keeps;           // written values that it saves in the slot of its step
  const Kept *kept;
  int reads;           // values that it reads from the slot instead of the functions
  const Kept *read;
};

namespace {

struct Run {
  const Context &X;
  int count;
  const Move *moves;
  double dt;
  std::vector<Frozen> frozen;
  std::vector<int> most;  // iterations of a move
  int bad;
  double *slot;           // of the first of the present steps
  std::vector<Context> own;    // of moves that read from slots
  std::vector<Field> tables;   // their functions

  Run(const Context &context, int n, const Move *m, double step)
      : X(context), count(n), moves(m), dt(step), frozen(n), most(n), bad(0), slot(nullptr) {
    for (int k = 0; k < count; ++k) {
      set(k);
      frozen[k].ready = freeze(moves[k].phase, X, frozen[k]);
    }
  }
  // Prepares the next `many` moves, from the first one of step number `step`.
  void stand(long step, int many) {
    if (!X.slots) return;
    slot = X.slots + step * X.slot;
    bool reads = false;
    for (int k = 0; k < count; ++k) reads = reads || moves[k].reads;
    if (!reads) return;
    while ((int)own.size() < many) {
      own.push_back(X);
      tables.insert(tables.end(), X.F, X.F + X.functions);
    }
    for (int k = 0; k < many; ++k) {
      Field *F = tables.data() + k * X.functions;
      own[k].F = F;
      const Move &m = moves[k % count];
      for (int e = 0; e < m.reads; ++e)
        F[m.read[e].field].p = slot + k / count * X.slot + m.read[e].offset + m.read[e].lead;
    }
  }
  // Prefetches the slot of the next step, a part of it with every move of this one. It must be inlined:
  // GCC takes it for a function without effect, and omits calls of it.
  FDGEOM_INLINE void fetch(int k, Span span) const {
    if (own.empty() || !X.past || span.begin > 0 || span.end < X.cells) return;
    const long size = X.slot < 0 ? -X.slot : X.slot, part = size / count + 1;
    const double *from = slot + (k / count + 1) * X.slot + k % count * part;
    for (long i = 0; i < part; i += 8) __builtin_prefetch(from + i, 0, 2);
  }
  const Context &at(int k) const { return own.empty() ? X : own[k]; }
  void set(int k) const { if (moves[k].dt) *moves[k].dt = moves[k].value * dt; }
  // Runs the k-th move on a span; does nothing after a failure.
  int take(int k, Span span) {
    if (bad) return 0;
    fetch(k, span);
    set(k % count);
    return bad = phase(moves[k % count].phase, at(k), span, frozen[k % count], most[k]);
  }
  void exchange(int k) const {
    const Move &m = moves[k % count];
    for (int e = 0; e < m.exchanges; ++e) fdgeom_exchange(X.exchange, m.exchange + e);
  }
  // Saves the values of a span after a move and its exchange of ghosts.
  void keep(int k, Span span) const {
    if (!slot || bad) return;
    const Move &m = moves[k % count];
    for (int e = 0; e < m.keeps; ++e)
      keep_values(X.F[m.kept[e].field], m.kept[e], slot + k / count * X.slot, span, X.past);
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
// Runs many moves on a block of nodes while it is in the cache. Every move reads neighbours, so each stays
// `lag` nodes behind the previous one. Ends with ghosts come first, with an exchange after each move; from
// there the blocks proceed to the other end, or to the middle.
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
    if (left) run.keep(k, {0, l - k * lag});
    if (right) run.keep(k, {r + k * lag, end});
  }
  const auto take = [&run](int k, Span span) { run.take(k, span); run.keep(k, span); };
  for (; left && l + block <= middle; l += block)
    for (int k = 0; k < moves; ++k) take(k, {l - k * lag, l + block - k * lag});
  for (; right && r - block >= middle; r -= block)
    for (int k = 0; k < moves; ++k) take(k, {r - block + k * lag, r + k * lag});
  for (int k = 0; k < moves; ++k) take(k, {left ? l - k * lag : 0, right ? r + k * lag : end});
}
#endif

}  // namespace

extern "C" {

int fdgeom_width() { return W; }

// Runs one phase.
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

// Saves the present values of all functions that moves save, into the slot before that of the first step.
void fdgeom_keep(const Context *X, int count, const Move *moves) {
  for (int k = 0; k < count; ++k)
    for (int e = 0; e < moves[k].keeps; ++e)
      keep_values(X->F[moves[k].kept[e].field], moves[k].kept[e], X->slots - X->slot, everything,
                  X->past);
}

// Runs `steps` steps of `count` moves each, in blocks if `blocked`. Returns 0, or the reason of a failure.
// `done` becomes the number of completed steps, `failed_move` the move that failed. After a failure in
// blocks only the returned value is valid.
int fdgeom_advance(const Context *X, long steps, int count, const Move *moves, const double *dt,
                   int blocked, long *done, int *failed_move) {
  Run run(*X, count, moves, *dt);
#ifdef FDGEOM_CHAIN
  if (blocked && count <= most_moves) {
    run.most.assign(most_moves, 0);
    while (*done < steps) {
      const long left = steps - *done, many = most_moves / count < left ? most_moves / count : left;
      run.stand(*done, many * count);
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
    run.stand(*done, count);
    for (int k = 0; k < count; ++k) {
      if (run.take(k, everything)) *failed_move = k;
      if (run.bad && !X->exchange) return run.bad;
      run.count_iterations(k);
      run.exchange(k);
      run.keep(k, everything);
    }
    if (run.agree()) return run.bad;
    ++*done;
  }
  return 0;
}
}
