// Steps: sequences of phases, each with its own fraction of the step.
#include <vector>

struct Move { int phase; double *dt, value; };

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

// Runs `steps` steps of `count` moves each. Returns 0, or the reason of a failure. `done` becomes the number
// of completed steps, `failed_move` the move that failed.
int fdgeom_advance(const Context *X, long steps, int count, const Move *moves, const double *dt, long *done, int *failed_move) {
  std::vector<Frozen> frozen(count);
  const auto set = [&](int k) { if (moves[k].dt) *moves[k].dt = moves[k].value * *dt; };
  for (int k = 0; k < count; ++k) {
    set(k);
    frozen[k].ready = freeze(moves[k].phase, *X, frozen[k]);
  }
  for (; *done < steps; ++*done)
    for (int k = 0; k < count; ++k) {
      int most = 0;
      set(k);
      if (const int bad = phase(moves[k].phase, *X, everything, frozen[k], most)) { *failed_move = k; return bad; }
      X->report[moves[k].phase].solves += 1;
      X->report[moves[k].phase].iterations += most;
    }
  return 0;
}
}
