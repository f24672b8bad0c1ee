// Loops over nodes and cells. Included after simd.hpp; FDGEOM_CHAIN chooses the layout:
// not defined: values as Firedrake keeps them, found through the maps from cells to nodes;
// defined: one array for each component, nodes and cells in the order of the chain.

namespace {

// The inverse of a Jacobian at u = 0 for a weight of one, if it is ready.
struct Frozen { bool ready; double inverse[FDGEOM_LARGEST]; };

struct Field { double *p; long stride, count; };  // count: how many nodes
struct Range { long first, last, total; };  // own nodes first..last of total
// Part of a loop, counted from its first node: a multiple of the vectors' width, for equal results.
struct Span { long begin, end; };
constexpr Span everything = {-(1L << 60), 1L << 60};
inline long begin_of(Span s, long first) { return s.begin < 0 ? first : first + s.begin; }
inline long end_of(Span s, long first, long last) { return s.end < last - first ? first + s.end : last; }
struct Essential {  // nodes with given components: mask 0 where given, 1 where free
  long count;
  const int *node;
  const double *mask;
  double share;        // how far the given value is from old to target
  Field old, target;   // target null: zero; old null: the value in u stays
  double *saved;       // for the latter: u there before the solve
};

struct Context {
  const Field *F;             // functions
  const int *const *M;        // maps from cells to nodes
  double *const *C;           // constants
  const Field *B;             // right-hand sides b of node problems
  const Range *nodes;         // node sets
  long cells;
  const Tolerances *tol;
  Report *report;
  const Essential *essential;
  long functions;             // how many
  const double *there;        // chains side by side: 1 in their cells, 0 between them
  void *const *more;          // further data of each phase
};

#ifdef FDGEOM_CHAIN
template <int BS, class T> inline void node_load(T *w, Field f, long i, long) {
#pragma GCC unroll 64
  for (int k = 0; k < BS; ++k) w[k] = load(f.p + k * f.stride + i, (T *)0);
}
template <int BS, class T> inline void node_store(Field f, long i, long, const T *w) {
#pragma GCC unroll 64
  for (int k = 0; k < BS; ++k) store(f.p + k * f.stride + i, w[k]);
  // The padding repeats the last node, so that vectors of nodes do not contain old values.
  if (i + lanes<T>::count >= f.count)
    for (int k = 0; k < BS; ++k)
      for (int l = 0; l < W; ++l) f.p[k * f.stride + f.count + l] = f.p[k * f.stride + f.count - 1];
}
template <int ND, int BS, class T> inline void cell_load(T *w, Field f, const int *, long c, long) {
#pragma GCC unroll 4
  for (int a = 0; a < ND; ++a) node_load<BS>(w + a * BS, f, c + a, 0);
}
template <int ND, int BS, class T> inline void cell_store(Field f, const int *, long c, long, const T *w) {
  node_store<BS>(f, c, 0, w);
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

// b of successive vectors of nodes: the sums of the contributions of the cells on both sides.
template <class P, class T, bool explicit_terms> struct Gather {
  static constexpr long before = 0;
  template <class D> inline void next(const Context &, long, long, D &) {}
};
#ifdef FDGEOM_CHAIN
template <class P, class T> struct Gather<P, T, true> {
  // The cell before the first node counts too; its vector comes first.
  static constexpr long before = P::cell_nodes == 2 ? lanes<T>::count : 0;
  T left[P::size];
  template <class D> inline void next(const Context &X, long i, long, D &data) {
    constexpr int N = P::size;
    T A[P::cell_nodes * N];
    P::explicit_terms(X, i, A);
    if (i < 0 || i + lanes<T>::count > X.cells)
      for (int l = 0; l < lanes<T>::count; ++l)
        if (i + l < 0 || i + l >= X.cells)
          for (int k = 0; k < P::cell_nodes * N; ++k) put(A[k], l, 0.0);
#ifdef FDGEOM_GAPS
    const T there = load(X.there + i, (T *)0);
#pragma GCC unroll 64
    for (int k = 0; k < P::cell_nodes * N; ++k) A[k] = where(there, A[k]);
#endif
#pragma GCC unroll 64
    for (int k = 0; k < N; ++k) {
      data.b[k] = A[k];
      if (P::cell_nodes == 2) {
        const T right = A[(P::cell_nodes - 1) * N + k];
        data.b[k] += shifted(left[k], right);
        left[k] = right;
      }
    }
  }
};
#else
template <class P, class T> struct Gather<P, T, true> {
  static constexpr long before = 0;
  template <class D> inline void next(const Context &X, long i, long n, D &data) {
    node_load<P::size>(data.b, X.B[P::number], i, n);
  }
};
#endif

// Loads the data of one node, and the first guess of its unknown.
template <class P> inline void load_one(const Context &X, long i, long total, typename P::template Data<double> &data, double *u) {
  Gather<P, double, P::cell_nodes != 0> gather;
  for (long j = i - gather.before; j <= i; ++j) gather.next(X, j, total, data);
  P::load(X, i, total, data);
  P::guess(X, i, total, u);
}

template <class P> bool freeze(const Context &X, Frozen &frozen) {
  if constexpr (P::frozen) {
    constexpr int N = P::size;
    double J[N * N], A[N * N], x[N];
    P::jacobian_at_zero(X, J);
    for (int k = 0; k < N; ++k) {
      for (int j = 0; j < N * N; ++j) A[j] = J[j];
      for (int j = 0; j < N; ++j) x[j] = j == k;
      if (!solve_pivoting<N>(A, x)) return false;
      for (int j = 0; j < N; ++j) frozen.inverse[j * N + k] = x[j];
    }
    return true;
  }
  return false;
}

// Solves the local problems P of nodes (or cells) first..last; `total` of them may be read.
template <class P> int solve_range(const Context &X, long first, long last, long total, const Frozen &frozen, const Tolerances &tol, Report &report, int &most) {
  constexpr int N = P::size;
  typedef typename P::Number T;
  Gather<P, T, P::cell_nodes != 0> gather = {};
  for (long i = first - gather.before; i < last; i += lanes<T>::count) {
    int iterations = -1;
    {
      typename P::template Data<T> data;
      T u[N];
      gather.next(X, i, total, data);
      if (i < first) continue;
      P::load(X, i, total, data);
      if constexpr (P::frozen)
        if (frozen.ready) {
          P::guess(X, i, total, u);
          iterations = newton_frozen<P>(data, u, tol, frozen.inverse);
        }
      if (iterations < 0) {
        P::guess(X, i, total, u);
        iterations = newton<P>(data, u, tol);
      }
      if (iterations >= 0) P::store(X, i, last, u);
    }
    if (iterations < 0) {
      for (long j = i; j < last && j < i + lanes<T>::count; ++j) {
        typename P::template Data<double> data;
        double u[N], norm = 0.0;
        load_one<P>(X, j, total, data, u);
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
  return 0;
}

// Sum of squares of the residual over nodes (or cells) first..last, given components left out.
template <class P> double residual_square(const Context &X, long first, long last, long total, const Essential *e) {
  typename P::template Data<double> data;
  double u[P::size], R[P::size], sum = 0.0;
  long next = 0;  // the essential nodes are in increasing order
  for (long i = first; i < last; ++i) {
    load_one<P>(X, i, total, data, u);
    P::residual(data, u, R);
    if (e && next < e->count && e->node[next] == i) {
      for (int k = 0; k < P::size; ++k) R[k] *= e->mask[P::size * next + k];
      ++next;
    }
    sum += square<P::size>(R);
  }
  return sum;
}

template <class P> void save_essential(const Context &X, const Essential &e, long first, long last, long total) {
  if (!e.old.p)
    for (long s = 0; s < e.count; ++s)
      if (e.node[s] >= first && e.node[s] < last) P::guess(X, e.node[s], total, e.saved + P::size * s);
}

// Repeats the solves of nodes first..last that have given components.
template <class P> int solve_essential(const Context &X, const Essential &e, long first, long last, long total, const Tolerances &tol, Report &report) {
  constexpr int N = P::size;
  for (long s = 0; s < e.count; ++s) {
    const long i = e.node[s];
    if (i < first || i >= last) continue;
    const double *mask = e.mask + N * s;
    typename P::template Data<double> data;
    double u[N], old[N], target[N], norm = 0.0;
    load_one<P>(X, i, total, data, u);
    if (!e.old.p) {
      for (int k = 0; k < N; ++k) u[k] = e.saved[N * s + k];
    } else {
      node_load<N>(old, e.old, i, total);
      for (int k = 0; k < N; ++k) target[k] = 0.0;
      if (e.target.p) node_load<N>(target, e.target, i, total);
      for (int k = 0; k < N; ++k)
        if (mask[k] == 0.0) u[k] = (1.0 - e.share) * old[k] + e.share * target[k];
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

// A phase that solves at the nodes of a span of those that this rank owns.
template <class P> int solve_nodes(const Context &X, Span span, const Range &nodes, const Frozen &frozen, int &most) {
  const long first = begin_of(span, nodes.first), last = end_of(span, nodes.first, nodes.last);
  if (first >= last) return 0;
  const Tolerances &tol = X.tol[P::number];
  Report &report = X.report[P::number];
  const Essential &e = X.essential[P::number];
  save_essential<P>(X, e, first, last, nodes.total);
  const int bad = solve_range<P>(X, first, last, nodes.total, frozen, tol, report, most);
  return bad ? bad : solve_essential<P>(X, e, first, last, nodes.total, tol, report);
}

// A phase that solves in the cells of a span.
template <class P> int solve_cells(const Context &X, Span span, int &most) {
  const long first = begin_of(span, 0), last = end_of(span, 0, X.cells);
  Frozen frozen;
  frozen.ready = false;
  return solve_range<P>(X, first, last, X.cells, frozen, X.tol[P::number], X.report[P::number], most);
}

}  // namespace
