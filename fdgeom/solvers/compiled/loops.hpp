// Loops over nodes and cells. Included after simd.hpp; FDGEOM_CHAIN chooses the layout:
// not defined: values as Firedrake keeps them, found through the maps from cells to nodes;
// defined: one array for each component, nodes and cells in the order of the chain.

namespace {

struct Field { double *p; long stride; };
struct Range { long first, last, total; };  // own nodes first..last of total
struct Exchange;
struct Essential {  // nodes with given components: mask 0 where given, 1 where free
  long count;
  const int *node;
  const double *mask;
  Field old, target;   // given value: mean of old and target (zero if null); old null: as in u
  double *saved;       // for the latter: u there before the solve
};

struct Context {
  const Field *F;             // functions
  const int *const *M;        // maps from cells to nodes
  double *const *C;           // constants
  const Field *B;             // right-hand sides b of the node problems
  const Range *nodes;         // node sets
  long cells;
  const Tolerances *tol;
  Report *report;
  const Essential *essential;
  const Exchange *exchange;
};

#ifdef FDGEOM_CHAIN
template <int BS, class T> inline void node_load(T *w, Field f, long i, long) {
#pragma GCC unroll 64
  for (int k = 0; k < BS; ++k) w[k] = load(f.p + k * f.stride + i, (T *)0);
}
template <int BS, class T> inline void node_store(Field f, long i, long, const T *w) {
#pragma GCC unroll 64
  for (int k = 0; k < BS; ++k) store(f.p + k * f.stride + i, w[k]);
}
template <int ND, int BS, class T> inline void cell_load(T *w, Field f, const int *, long c, long) {
#pragma GCC unroll 4
  for (int a = 0; a < ND; ++a) node_load<BS>(w + a * BS, f, c + a, 0);
}
template <int ND, int BS, class T> inline void cell_store(Field f, const int *, long c, long, const T *w) {
  node_store<BS>(f, c, 0, w);
}
template <int ND, int BS, class T> inline void cell_add(Field f, const int *, long c, long n, const T *w) {
  if (c + lanes<T>::count > n) {  // beyond the last cell there may be anything
    for (int l = 0; c + l < n; ++l)
      for (int a = 0; a < ND; ++a)
        for (int k = 0; k < BS; ++k) f.p[k * f.stride + c + l + a] += get(w[a * BS + k], l);
    return;
  }
#pragma GCC unroll 4
  for (int a = 0; a < ND; ++a)
#pragma GCC unroll 64
    for (int k = 0; k < BS; ++k) {
      double *p = f.p + k * f.stride + c + a;
      store(p, load(p, (T *)0) + w[a * BS + k]);
    }
}
#else
template <int BS, class T> inline void node_load(T *w, Field f, long i, long n) {
  for (int l = 0; l < lanes<T>::count; ++l) {
    const double *p = f.p + BS * (i + l < n ? i + l : n - 1);
    for (int k = 0; k < BS; ++k) put(w[k], l, p[k]);
  }
}
template <int BS, class T> inline void node_store(Field f, long i, long n, const T *w) {
  for (int l = 0; l < lanes<T>::count && i + l < n; ++l)
    for (int k = 0; k < BS; ++k) f.p[BS * (i + l) + k] = get(w[k], l);
}
template <int ND, int BS, class T> inline void cell_load(T *w, Field f, const int *map, long c, long n) {
  for (int l = 0; l < lanes<T>::count; ++l) {
    const int *nodes = map + ND * (c + l < n ? c + l : n - 1);
    for (int a = 0; a < ND; ++a) {
      const double *p = f.p + (long)BS * nodes[a];
      for (int k = 0; k < BS; ++k) put(w[a * BS + k], l, p[k]);
    }
  }
}
template <int ND, int BS, class T> inline void cell_store(Field f, const int *map, long c, long n, const T *w) {
  for (int l = 0; l < lanes<T>::count && c + l < n; ++l)
    for (int a = 0; a < ND; ++a) {
      double *p = f.p + (long)BS * map[ND * (c + l) + a];
      for (int k = 0; k < BS; ++k) p[k] = get(w[a * BS + k], l);
    }
}
template <int ND, int BS, class T> inline void cell_add(Field f, const int *map, long c, long n, const T *w) {
  for (int l = 0; l < lanes<T>::count && c + l < n; ++l)
    for (int a = 0; a < ND; ++a) {
      double *p = f.p + (long)BS * map[ND * (c + l) + a];
      for (int k = 0; k < BS; ++k) p[k] += get(w[a * BS + k], l);
    }
}
#endif

// Solve the local problems P of nodes (or cells) first..last; `total` of them may be read.
template <class P> int solve_range(const Context &X, long first, long last, long total, const Tolerances &tol, Report &report) {
  constexpr int N = P::size;
  typedef typename P::Number T;
  int most = 0;
  for (long i = first; i < last; i += lanes<T>::count) {
    int iterations;
    {
      typename P::template Data<T> data;
      T u[N];
      P::load(X, i, total, data, u);
      iterations = newton<P>(data, u, tol);
      if (iterations >= 0) P::store(X, i, last, u);
    }
    if (iterations < 0) {
      for (long j = i; j < last && j < i + lanes<T>::count; ++j) {
        typename P::template Data<double> data;
        double u[N], norm = 0.0;
        P::load(X, j, total, data, u);
        const int count = newton_pivoting<P>(data, u, tol, nullptr, &norm);
        if (count < 0) {
          report.failed = j; report.reason = count; report.norm = norm;
          return count;
        }
        P::store(X, j, j + 1, u);
        if (count > iterations) iterations = count;
      }
    }
    if (iterations > most) {
      most = iterations;
      if (most > report.most) { report.most = most; report.worst = i; }
    }
  }
  report.solves += 1;
  report.iterations += most;
  return 0;
}

// Sum of squares of the residual over nodes (or cells) first..last, given components left out.
template <class P> double residual_square(const Context &X, long first, long last, long total, const Essential *e) {
  typename P::template Data<double> data;
  double u[P::size], R[P::size], sum = 0.0;
  long next = 0;  // the essential nodes are in increasing order
  for (long i = first; i < last; ++i) {
    P::load(X, i, total, data, u);
    P::residual(data, u, R);
    if (e && next < e->count && e->node[next] == i) {
      for (int k = 0; k < P::size; ++k) R[k] *= e->mask[P::size * next + k];
      ++next;
    }
    sum += square<P::size>(R);
  }
  return sum;
}

template <class P> void save_essential(const Context &X, const Essential &e, long total) {
  typename P::template Data<double> data;
  if (!e.old.p)
    for (long s = 0; s < e.count; ++s) P::load(X, e.node[s], total, data, e.saved + P::size * s);
}

// Once more the nodes that have given components.
template <class P> int solve_essential(const Context &X, const Essential &e, long total, const Tolerances &tol, Report &report) {
  constexpr int N = P::size;
  for (long s = 0; s < e.count; ++s) {
    const long i = e.node[s];
    const double *mask = e.mask + N * s;
    typename P::template Data<double> data;
    double u[N], old[N], target[N], norm = 0.0;
    P::load(X, i, total, data, u);
    if (!e.old.p) {
      for (int k = 0; k < N; ++k) u[k] = e.saved[N * s + k];
    } else {
      node_load<N>(old, e.old, i, total);
      for (int k = 0; k < N; ++k) target[k] = 0.0;
      if (e.target.p) node_load<N>(target, e.target, i, total);
      for (int k = 0; k < N; ++k)
        if (mask[k] == 0.0) u[k] = 0.5 * (old[k] + target[k]);
    }
    const int count = newton_pivoting<P>(data, u, tol, mask, &norm);
    if (count < 0) {
      report.failed = i; report.reason = count; report.norm = norm;
      return count;
    }
    P::store(X, i, i + 1, u);
  }
  return 0;
}

inline void set_zero(Field f, long n, int bs) {
#ifdef FDGEOM_CHAIN
  for (int k = 0; k < bs; ++k) std::memset(f.p + k * f.stride, 0, n * sizeof(double));
#else
  std::memset(f.p, 0, n * bs * sizeof(double));
#endif
}

}  // namespace
