// Steps: phases one after another, each with its own fraction of the step.

struct Move { int phase; double *dt; double value; int exchange, exchanges; };

extern "C" {

int fdgeom_width() { return W; }

// One phase; for a single solve.
int fdgeom_phase(const Context *X, int k) { return phase(k, *X); }

// Square of the norm of a solve's residual over this rank's nodes.
double fdgeom_norm(const Context *X, int k) { return norm(k, *X); }

// `steps` steps of `count` moves each. Returns 0, or the reason why a phase failed; `done` tells
// how many steps were taken, `moves_done` which move failed.
int fdgeom_advance(const Context *X, long steps, int count, const Move *moves, const double *dt,
                   long *done, int *failed_move) {
  for (long s = 0; s < steps; ++s) {
    int bad = 0;
    for (int m = 0; m < count; ++m) {
      if (moves[m].dt) *moves[m].dt = moves[m].value * *dt;
      const int reason = phase(moves[m].phase, *X);
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
