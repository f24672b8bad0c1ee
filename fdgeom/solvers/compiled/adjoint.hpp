// Adjoints of local solves: cotangents of their inputs from those of their solutions.

namespace {

// x := A⁻ᵀ b of one block, rows exchanged; false if it is singular.
template <int N> bool solve_transposed(const double *A, const double *b, double *x) {
  double K[N * N];
  for (int i = 0; i < N; ++i) {
    x[i] = b[i];
    for (int j = 0; j < N; ++j) K[i * N + j] = A[j * N + i];
  }
  return solve_pivoting<N>(K, x);
}

// λ of nodes (or cells) first..last with Jᵀ λ = ū; J is the Jacobian of their problem at its solution.
template <class P> int adjoint_range(const Context &X, long first, long last, long total, Report &report) {
  constexpr int N = P::size;
  typedef typename P::Number T;
  for (long i = first; i < last; i += lanes<T>::count) {
    {
      typename P::template Data<T> data;
      T J[N * N], K[N * N], b[N], x[N], left[N];
      P::load(X, i, total, data);
      P::right(X, i, total, b);
      P::jacobian(data, data.u, J);
#pragma GCC unroll 64
      for (int k = 0; k < N; ++k) {
        x[k] = b[k];
#pragma GCC unroll 64
        for (int j = 0; j < N; ++j) K[k * N + j] = J[j * N + k];
      }
      solve_plain<N>(K, x);
      // The residual tells whether pivots were too small.
#pragma GCC unroll 64
      for (int k = 0; k < N; ++k) {
        left[k] = -b[k];
#pragma GCC unroll 64
        for (int j = 0; j < N; ++j) left[k] += J[j * N + k] * x[j];
      }
      if (all_le(square<N>(left), 1e-22 * square<N>(b))) {
        P::store(X, i, last, x);
        continue;
      }
    }
    for (long j = i; j < last && j < i + lanes<T>::count; ++j) {
      typename P::template Data<double> data;
      double J[N * N], b[N], x[N];
      P::load(X, j, total, data);
      P::right(X, j, total, b);
      P::jacobian(data, data.u, J);
      if (!solve_transposed<N>(J, b, x)) {
        report.failed = j; report.reason = -2; report.norm = 0.0;
        return -2;
      }
      P::store(X, j, j + 1, x);
    }
  }
  return 0;
}

// Repeats the nodes first..last that have given components u = (1 - share) old + ...: their rows are those
// of the identity, their cotangents are added to that of `old`, and λ is zero there.
template <class P> int adjoint_essential(const Context &X, const Essential &e, long first, long last, long total, Report &report) {
  constexpr int N = P::size;
  for (long s = 0; s < e.count; ++s) {
    const long i = e.node[s];
    if (i < first || i >= last) continue;
    const double *mask = e.mask + N * s;
    typename P::template Data<double> data;
    double J[N * N], b[N], x[N], old[N];
    P::load(X, i, total, data);
    P::right(X, i, total, b);
    P::jacobian(data, data.u, J);
    for (int r = 0; r < N; ++r)
      for (int c = 0; c < N; ++c) J[r * N + c] = mask[r] * J[r * N + c] + (r == c ? 1.0 - mask[r] : 0.0);
    if (!solve_transposed<N>(J, b, x)) {
      report.failed = i; report.reason = -2; report.norm = 0.0;
      return -2;
    }
    node_load<N>(old, e.old, i, total);
    for (int k = 0; k < N; ++k) {
      old[k] += (1.0 - mask[k]) * (1.0 - e.share) * x[k];
      x[k] *= mask[k];
    }
    node_store<N>(e.old, i, i + 1, old);
    P::store(X, i, i + 1, x);
  }
  return 0;
}

// A phase that computes λ at the nodes of a span of those that this rank owns.
template <class P> int adjoint_nodes(const Context &X, Span span, const Range &nodes) {
  const long first = begin_of(span, nodes.first), last = end_of(span, nodes.first, nodes.last);
  if (first >= last) return 0;
  Report &report = X.report[P::number];
  const int bad = adjoint_range<P>(X, first, last, nodes.total, report);
  return bad ? bad : adjoint_essential<P>(X, X.essential[P::number], first, last, nodes.total, report);
}

// A phase that computes λ in the cells of a span.
template <class P> int adjoint_cells(const Context &X, Span span) {
  const long first = begin_of(span, 0), last = end_of(span, 0, X.cells);
  return first < last ? adjoint_range<P>(X, first, last, X.cells, X.report[P::number]) : 0;
}

// A phase that sums contributions of the surrounding cells at nodes, and stores the sums or adds them.
template <class P> int gather_nodes(const Context &X, Span span, const Range &nodes) {
  constexpr int N = P::size;
  typedef typename P::Number T;
  const long first = begin_of(span, nodes.first), last = end_of(span, nodes.first, nodes.last);
  Gather<P, T, true> gather = {};
  for (long i = first - gather.before; i < last; i += lanes<T>::count) {
    typename P::template Data<T> data;
    T bar[N];
    gather.next(X, i, nodes.total, data);
    if (i < first) continue;
    if constexpr (P::adds) {
      P::load_bar(X, i, nodes.total, bar);
#pragma GCC unroll 64
      for (int k = 0; k < N; ++k) data.b[k] += bar[k];
    }
    P::store(X, i, last, data.b);
  }
  return 0;
}

// A phase that sums a number over cells.
template <class P> int sum_cells(const Context &X, Span span) {
  typedef typename P::Number T;
  const long first = begin_of(span, 0), last = end_of(span, 0, X.cells);
  double sum = 0.0;
  for (long i = first; i < last; i += lanes<T>::count) {
    T A[1];
    P::terms(X, i, A);
    for (long l = 0; l < lanes<T>::count && i + l < last; ++l) sum += get(A[0], l);
  }
  X.report[P::number].sum += sum;
  return 0;
}

}  // namespace
