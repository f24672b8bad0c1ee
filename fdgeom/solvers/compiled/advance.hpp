// Steps: phases one after another, each with its own fraction of the step.
#include <vector>

struct Move { int phase; double *dt; double value; int exchange, exchanges; };

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

// `steps` steps of `count` moves each. Returns 0, or the reason why a phase failed; `done` tells
// how many steps were taken, `failed_move` which move failed.
int fdgeom_advance(const Context *X, long steps, int count, const Move *moves, const double *dt,
                   long *done, int *failed_move) {
  std::vector<Frozen> frozen(count);
  const auto set = [&](const Move &m) { if (m.dt) *m.dt = m.value * *dt; };
  for (int m = 0; m < count; ++m) {
    set(moves[m]);
    frozen[m].ready = freeze(moves[m].phase, *X, frozen[m]);
  }
  for (long s = 0; s < steps; ++s) {
    int bad = 0;
    for (int m = 0; m < count; ++m) {
      const int k = moves[m].phase;
      int most = 0;
      set(moves[m]);
      const int reason = phase(k, *X, everything, frozen[m], most);
      X->report[k].solves += 1;
      X->report[k].iterations += most;
      if (reason && !bad) { bad = reason; *failed_move = m; }
      if (bad && !X->exchange) return bad;
      for (int e = 0; e < moves[m].exchanges; ++e) fdgeom_exchange(X->exchange, moves[m].exchange + e);
    }
    if (X->exchange) bad = fdgeom_agree(X->exchange, bad);
    if (bad) return bad;
    *done = s + 1;
  }
  return 0;
}
}
