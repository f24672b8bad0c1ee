// A solve along a chain by hand, for test_chain_lu.py: residuals r + J u + c atan(s u) with given r
// and J.
#include "lanes.hpp"
#include "convergence.hpp"
#include "fields.hpp"
#include "blocks.hpp"
#include "fronts.hpp"
#include "chain_unknowns.hpp"
#include "small_chain.hpp"
#include "chain_lu.hpp"
#include "newton.hpp"

template <int N>
struct Op {
  static constexpr int n = N, of = -1, of_size = 1, entries = 4 * N * N;
  static constexpr int chain_unknowns = N, link_entries = 0;
  static constexpr bool restricted = true, transposed = false, affine = false, chooses = false,
                        update = false, small = N < 3, meets = false, local = false;
  static constexpr int tangent_same = 1, tangent_carried = N, residual_same = 1,
                       residual_carried = N;
  static constexpr Attempt attempts[] = {{0, 0, 0, 0}};
  struct Tables {
    Slot unknown[N];
    int minus[N], held[N];
    bool no[N];
  };
  static constexpr Tables tables() {
    Tables t{};
    for (int i = 0; i < N; ++i) {
      t.unknown[i] = {0, i, N};
      t.minus[i] = -1;
      t.held[i] = 2;
      t.no[i] = false;
    }
    return t;
  }
  static constexpr Tables made = tables();
  static constexpr const Slot (&unknown)[N] = made.unknown;
  static constexpr const int (&held)[N] = made.held, (&source)[N] = made.minus;
  static constexpr const bool (&in_cell)[N] = made.no;

  static void start(const Run&, Fields F, Outs G, long k, int) {
    for (int i = 0; i < N; ++i) at(G[0], k, i, N) = at(F[3], k, i, N);
  }
  static void tangent_once(const Run&, Fields, Outs, long, raw*) {}
  static void residual_once(const Run&, Fields, Outs, long, raw*) {}
  static void tangent_node(const Run&, Fields, Outs G, long k, const raw*, raw* a) {
    for (int i = 0; i < N; ++i) a[i] = at(G[0], k, i, N);
  }
  static void residual_node(const Run& X, Fields F, Outs G, long k, const raw* s, raw* a) {
    tangent_node(X, F, G, k, s, a);
  }
  static void tangent_cell(const Run& X, Fields F, Outs G, long k, const raw* s, const raw* a,
                           const raw* b, raw* r, raw* J) {
    residual_cell(X, F, G, k, s, a, b, r);
    for (int i = 0; i < entries; ++i) J[i] = at(F[0], k, i, entries);
    const double c = X.C[0][0], t = X.C[0][1];
    for (int i = 0; i < 2 * N; ++i) {
      const raw u = t * (i < N ? a[i] : b[i - N]);
      J[i * 2 * N + i] += c * t / (1.0 + u * u);
    }
  }
  static void residual_cell(const Run& X, Fields F, Outs, long k, const raw*, const raw* a,
                            const raw* b, raw* r) {
    const double c = X.C[0][0], t = X.C[0][1];
    for (int i = 0; i < 2 * N; ++i) {
      r[i] = at(F[1], k, i, 2 * N) + c * atan(t * (i < N ? a[i] : b[i - N]));
      for (int j = 0; j < 2 * N; ++j)
        r[i] += at(F[0], k, i * 2 * N + j, entries) * (j < N ? a[j] : b[j - N]);
    }
  }
};

// What is done: 0: a linear solve; 1: Newton; 2: damped Newton.
template <int N>
int work(const Run& X, const Test& t, Fields F, Outs G, double* second, int what,
         long* iterations) {
  typedef Op<N> O;
  typedef std::conditional_t<O::small, SmallChain<O>, TreeSolve<O>> Solver;
  Solver p(X, F, G);
  p.start(0);
  if (what)
    return what == 2 ? newton_damped(p, t, *iterations) : newton_whole(p, t, false, *iterations);
  if (!p.linearise()) return Reason::singular;
  update(p);
  // Another right-hand side with the same factors.
  double* const fields[] = {F[0], second, F[2], F[3]};
  Solver q(X, fields, G + 1);
  q.start(0);
  q.evaluate();
  q.apply();
  update(q);
  *iterations = q.negative();
  return 0;
}

extern "C" int harness(int n, const Run* X, const Test* t, double* const* F, double* const* G,
                       double* second, int what, long* iterations) {
#define CASE(N) \
  case N:       \
    return work<N>(*X, *t, F, G, second, what, iterations);
  switch (n) { CASES }
#undef CASE
  return -99;
}
