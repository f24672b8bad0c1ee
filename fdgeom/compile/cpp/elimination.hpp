// Elimination of nodes one after another: a row of a block is a vector. Included after
// chain_unknowns.hpp and blocks.hpp; chain.hpp eliminates one chain, tree.hpp chains that meet.
//
// Of each node are kept X = D⁻¹ [U r], where U couples it with the next node to be eliminated and r
// is its right-hand side, D⁻¹, and L, which couples the next node with it. So further right-hand
// sides cost a fraction of the work. Nodes with a border also couple with the node where their
// segment begins: then D⁻¹ B and C are kept, which couple it with that one, and that one with it.

namespace {

template <class Op>
constexpr int chain_unknowns() {
  if constexpr (Op::tree)
    return Op::chain_unknowns;
  else
    return Op::n;
}

template <class Op>
struct Elimination : ChainUnknowns<Op> {
  using Base = ChainUnknowns<Op>;
  using Base::F, Base::G, Base::is_free, Base::tangent_once, Base::X;
  static constexpr int n = chain_unknowns<Op>();
  using B = Block<n>;
  static constexpr int R = B::R, V = B::V;
  static constexpr int in_X = (n + 1) * R, in_factors = 2 * n * R, in_border = 2 * n * R;
  typedef typename B::Row Row;
  typedef typename B::WideRow WideRow;

  raw *nodes, *factors, *border;  // [node]: X by columns; D⁻¹ by rows, L by columns; D⁻¹ B by
                                  // columns, C by rows

  Elimination(const Run& x, Fields f, Outs g) : Base(x, f, g) {}

  // The cells of a block of chains that belong to this rank.
  FDGEOM_INLINE lane_mask cells_of(long k) const {
#ifdef FDGEOM_RANKS
    return *(const raw*)(X.own_cells + k * W) > 0.5;
#else
    return first_lanes(X.counts[k]);
#endif
  }

  // Makes the rows of prescribed unknowns those of the identity, with zero on the right-hand side.
  template <int Q>
  FDGEOM_INLINE void hold(long node, Row* D, raw (*U)[Q]) const {
    if constexpr (Op::restricted)
#pragma GCC unroll 32
      for (int i = 0; i < n; ++i)
        if (!is_free(node, i)) {
          for (int v = 0; v < R; ++v) D[i][v] = raw{};
          D[i][i / W][i % W] = 1.0;
          for (int v = 0; v < Q; ++v) U[i][v] = raw{};
        }
  }

  // What is eliminated in one direction: what its cells leave to the next ones, and the rows of the
  // nodes of a block of cells.
  struct Half {
    long lane, node;             // of the next node: its lane in the block, and its number
    WideRow P[n];                // L X of the last node
    Row PB[n];                   // L D⁻¹ B
    WideRow C[n];                // rows of the start of a border: coupling with the next node
    Row A[n];                    // and with itself
    double* start;               // what the right-hand side of the start loses
    raw r[n], E[n * n];          // of the last cells: residual and matrix of their farther nodes
    raw a[Op::tangent_carried];  // values of the last nodes
    raw d[n][V][W], u[n][R][W], l[n][R][W];  // rows of [D r] and U, columns of L
  };
  static void clear(Half& h) {
    for (int i = 0; i < n; ++i) {
      h.r[i] = raw{};
      for (int v = 0; v < V; ++v) h.P[i][v] = h.C[i][v] = raw{};
      for (int v = 0; v < R; ++v) h.PB[i][v] = h.A[i][v] = raw{};
    }
    for (raw& e : h.E) e = raw{};
  }

  // Residual and tangent of the cells of block k; the rows of their nodes that are eliminated.
  // inner: 1 at those nodes; last: the last block of the chain. Out of line, or compiling takes a
  // third longer.
  template <bool right>
  __attribute__((noinline)) void load(Half& __restrict h, long k, raw inner, long last,
                                      raw& __restrict sum) {
    raw a[Op::tangent_carried], b[Op::tangent_carried], r[2 * n], J[4 * n * n];
    Op::tangent_node(X, F, G, right ? k : k + 1, tangent_once, a);
    for (int i = 0; i < Op::tangent_carried; ++i)
      b[i] = right ? shifted_left(a[i], h.a[i]) : shifted_left(h.a[i], a[i]);
    Op::tangent_cell(X, F, G, k, tangent_once, right ? a : h.a, b, r, J);
    for (int i = 0; i < Op::tangent_carried; ++i) h.a[i] = a[i];
    // The rows of the nodes that are eliminated, and of those after them.
    constexpr int own = right ? n : 0, far = right ? 0 : n;
    const long here = X.counts[k];
    const lane_mask cell = cells_of(k);
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
      r[i] = choose(cell, r[i], raw{});
      r[n + i] = choose(cell, r[n + i], raw{});
      raw both =
          right ? r[n + i] + shifted_left(r[i], h.r[i]) : r[i] + shifted_right(h.r[i], r[n + i]);
      h.r[i] = r[far + i];
      if (Op::source[i] >= 0) {
        both -= choose(inner > 0.5, right ? Base::source_next(k, i) : Base::source_at(k, i), raw{});
        if (right && Op::in_cell[i] && k == last) both[here - 1] = 0.0;
      }
      raw counted = both;
      if (Op::held[i] >= 0) counted *= right ? Base::free_next(k, i) : Base::free_at(k, i);
      if (Op::tree) counted *= inner;
      sum += counted * counted;
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
#pragma GCC unroll 8
        for (int c = 0; c < W; ++c) {
          const int j = v * W + c;
          if (j < n) {
            raw &near = J[(own + i) * 2 * n + own + j], &farther = J[(far + i) * 2 * n + far + j];
            if (right || several_ranks) farther = choose(cell, farther, raw{});
            const raw before = h.E[i * n + j];
            h.d[i][v][c] =
                near + (right ? shifted_left(farther, before) : shifted_right(before, farther));
            h.E[i * n + j] = farther;
            h.u[i][v][c] = J[(own + i) * 2 * n + far + j];
            h.l[i][v][c] = J[(far + j) * 2 * n + own + i];
          } else {
            h.d[i][v][c] = j == n ? both : raw{};
            if (v < R) h.u[i][v < R ? v : 0][c] = h.l[i][v < R ? v : 0][c] = raw{};
          }
        }
      for (int v = 0; v < V; ++v) transpose(h.d[i][v]);
      for (int v = 0; v < R; ++v) {
        transpose(h.u[i][v]);
        transpose(h.l[i][v]);
      }
    }
  }

  // The rows of the next node; U: [U r] and with a border B.
  template <int Q>
  FDGEOM_INLINE static void rows(const Half& h, Row* D, raw (*U)[Q]) {
    const long l = h.lane;
#pragma GCC unroll 32
    for (int i = 0; i < n; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const raw d = h.d[i][v][l] - h.P[i][v];
        if (v < R) {
          D[i][v < R ? v : 0] = d;
          U[i][v] = h.u[i][v < R ? v : 0][l];
        }
        if (v == n / W) U[i][v] = v < R ? blend(U[i][v], d, n % W) : d;
      }
      if constexpr (Q > V)
        for (int v = 0; v < R; ++v) U[i][V + v] = -h.PB[i][v];
    }
  }
  // Keeps what is eliminated, and L X for the next node.
  template <int Q>
  FDGEOM_INLINE void keep(Half& h, const Row* D, const raw (*U)[Q]) {
    const long l = h.lane;
    raw *const f = factors + h.node * in_factors, *const b = border + h.node * in_border;
#pragma GCC unroll 32
    for (int i = 0; i < n; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < R; ++v) {
        f[i * R + v] = D[i][v];
        f[(n + i) * R + v] = h.l[i][v][l];
      }
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i)
#pragma GCC unroll 8
      for (int v = 0; v < Q; ++v) {
        raw y = (raw{} + h.l[0][i / W][l][i % W]) * U[0][v];
#pragma GCC unroll 8
        for (int j = 1; j < n; ++j) y += (raw{} + h.l[j][i / W][l][i % W]) * U[j][v];
        if (v < V)
          h.P[i][v < V ? v : 0] = y;
        else
          h.PB[i][v < V ? 0 : v - V] = y;
      }
    Row own[n];
    if constexpr (Q > V) {
#pragma GCC unroll 8
      for (int i = 0; i < n; ++i) {
        raw y[Q];
        for (int v = 0; v < R; ++v) b[(n + i) * R + v] = h.C[i][v];
#pragma GCC unroll 8
        for (int v = 0; v < Q; ++v) {
          y[v] = (raw{} + h.C[i][0][0]) * U[0][v];
#pragma GCC unroll 8
          for (int j = 1; j < n; ++j) y[v] += (raw{} + h.C[i][j / W][j % W]) * U[j][v];
        }
        h.start[i] += y[n / W][n % W];
        for (int v = 0; v < V; ++v) h.C[i][v] = -y[v];
        for (int v = 0; v < R; ++v) {
          h.A[i][v] -= y[V + v];
          own[i][v] = U[i][V + v];
        }
      }
      B::template columns<R>(own, n, b);
    }
    raw* const to = nodes + h.node * in_X;
    if constexpr (Q == V) {
      B::template columns<V>(U, n + 1, to);
    } else {
      WideRow wide[n];
      for (int i = 0; i < n; ++i)
        for (int v = 0; v < V; ++v) wide[i][v] = U[i][v];
      B::template columns<V>(wide, n + 1, to);
    }
  }
  // Eliminates the next node of each of S halves.
  template <int S, int Q>
  FDGEOM_INLINE bool eliminate(Half* const (&h)[2]) {
    Row D[S][n];
    raw U[S][n][Q];
    for (int s = 0; s < S; ++s) {
      rows<Q>(*h[s], D[s], U[s]);
      hold<Q>(h[s]->node, D[s], U[s]);
    }
    bool good = true;
    if (__builtin_expect(B::template eliminate<S, Q>(D, U), 0))
      for (int s = 0; s < S; ++s) {
        Row exchanged[n];
        raw with[n][Q];
        rows<Q>(*h[s], exchanged, with);
        hold<Q>(h[s]->node, exchanged, with);
        good = B::template eliminate_pivoting<Q>(exchanged, with) && good;
        for (int i = 0; i < n; ++i) {
          for (int v = 0; v < R; ++v) D[s][i][v] = exchanged[i][v];
          for (int v = 0; v < Q; ++v) U[s][i][v] = with[i][v];
        }
      }
    for (int s = 0; s < S; ++s) keep<Q>(*h[s], D[s], U[s]);
    return good;
  }
  // The right-hand side of a node in X becomes y = D⁻¹ (z - L y), with the y of the node before.
  FDGEOM_INLINE void solve_node(long node, const raw* before, const raw* right, raw* y) const {
    raw C[n * R], z[R];
    raw rows[n][R];
    const raw* const f = factors + node * in_factors;
    for (int v = 0; v < R; ++v) z[v] = right[v];
    if (before)
#pragma GCC unroll 8
      for (int j = 0; j < n; ++j)
        for (int v = 0; v < R; ++v) z[v] -= before[(n + j) * R + v] * (raw{} + y[j / W][j % W]);
    if constexpr (Op::restricted)
      for (int i = 0; i < n; ++i)
        if (!is_free(node, i)) z[i / W][i % W] = 0.0;
#pragma GCC unroll 32
    for (int i = 0; i < n; ++i)
      for (int v = 0; v < R; ++v) rows[i][v] = f[i * R + v];
    B::template columns<R>(rows, n, C);
#pragma GCC unroll 4
    for (int v = 0; v < R; ++v) {
      raw x = C[v] * (raw{} + z[0][0]);
#pragma GCC unroll 8
      for (int j = 1; j < n; ++j) x += C[j * R + v] * (raw{} + z[j / W][j % W]);
      nodes[node * in_X + n * R + v] = y[v] = x;
    }
  }
  // The solution t of a node from that of the next one: the right-hand side in X, less what X
  // couples it with. edge: D⁻¹ B of a node with a border, or null; from: the solution at the start.
  FDGEOM_INLINE static void substitute(const raw* q, raw* t, const raw* edge = nullptr,
                                       const raw* from = nullptr) {
    raw y[R];
#pragma GCC unroll 4
    for (int v = 0; v < R; ++v) {
      raw a = q[n * R + v] - q[v] * (raw{} + t[0][0]);
      raw b = n > 1 ? q[R + v] * (raw{} + t[1 / W][1 % W]) : raw{};
#pragma GCC unroll 16
      for (int c = 2; c < n; c += 2) {
        a -= q[c * R + v] * (raw{} + t[c / W][c % W]);
        if (c + 1 < n) b += q[(c + 1) * R + v] * (raw{} + t[(c + 1) / W][(c + 1) % W]);
      }
      if (edge)
#pragma GCC unroll 16
        for (int c = 0; c < n; ++c) b += edge[c * R + v] * (raw{} + from[c / W][c % W]);
      y[v] = a - b;
    }
    for (int v = 0; v < R; ++v) t[v] = y[v];
  }

  // The number of negative eigenvalues of the diagonal block of a node, of a symmetric matrix.
  int negative_at(long node) const {
    const raw* const f = factors + node * in_factors;
    return negative_of_inverse<n>([&](int i) { return is_free(node, i); },
                                  [&](int i, int c) { return f[i * R + c / W][c % W]; });
  }
};

}  // namespace
