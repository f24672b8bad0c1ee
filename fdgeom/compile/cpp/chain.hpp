// Block tridiagonal LU of the equations along one chain; a row of a block is a vector.
// Included after chain_unknowns.hpp and blocks.hpp.
//
// The two halves of the chain are eliminated towards its middle node side by side: two recurrences
// whose latencies overlap ("twisted" factorisation); with `from_right` all nodes from the right. Of each node are kept X = D⁻¹ [U r], where U
// couples it with the next node to be eliminated and r is its right-hand side, D⁻¹, and L, which
// couples the next node with it. So further right-hand sides cost a fraction of the work.

namespace {

template <class Op>
struct Chain : ChainUnknowns<Op> {
  using Base = ChainUnknowns<Op>;
  using Base::cells, Base::F, Base::free_at, Base::free_next, Base::G, Base::is_free, Base::n;
  using Base::node_blocks, Base::residual, Base::rhs, Base::tangent_once, Base::X;
  using B = Block<n>;
  static constexpr int R = B::R, V = B::V;
  static constexpr int in_X = (n + 1) * R, in_factors = 2 * n * R;  // vectors of a node
  typedef typename B::Row Row;
  typedef typename B::WideRow WideRow;

  const long K, left, M;  // blocks of cells; those of the left half; the middle node
  raw *nodes, *factors;   // [node]: X by columns; D⁻¹ by rows and L by columns

  Chain(const Run& x, Fields f, Outs g)
      : Base(x, f, g), K((cells + W - 1) / W), left(Op::from_right ? 0 : K / 2), M(left * W) {
    static thread_local std::vector<raw> memory;
    const size_t size = (cells + 1) * (in_X + in_factors) + node_blocks * n;
    if (memory.size() < size) memory.resize(size);
    nodes = memory.data();
    factors = nodes + (cells + 1) * in_X;
    rhs = factors + (cells + 1) * in_factors;
  }

  // Makes the rows of prescribed unknowns those of the identity, with zero on the right-hand side.
  FDGEOM_INLINE void hold(long node, Row* D, WideRow* U) const {
    if constexpr (Op::restricted)
#pragma GCC unroll 32
      for (int i = 0; i < n; ++i)
        if (!is_free(node, i)) {
          for (int v = 0; v < R; ++v) D[i][v] = raw{};
          D[i][i / W][i % W] = 1.0;
          for (int v = 0; v < V; ++v) U[i][v] = raw{};
        }
  }

  // One half: what its cells leave to the next ones, and the rows of the nodes of a block of cells.
  struct Half {
    WideRow P[n] = {};             // L X of the last node
    raw r[n] = {}, E[n * n] = {};  // of the last cells: residual and matrix of their farther nodes
    raw a[Op::tangent_carried];    // values of the last nodes
    raw d[n][V][W], u[n][R][W], l[n][R][W];  // rows of [D r] and U, columns of L
  };

  // Residual and tangent of the cells of block k; the rows of their nodes that are eliminated in
  // this half. Out of line, or compiling takes a third longer.
  template <bool right>
  __attribute__((noinline)) void load(Half& __restrict h, long k, raw& __restrict sum) {
    raw a[Op::tangent_carried], b[Op::tangent_carried], r[2 * n], J[4 * n * n];
    Op::tangent_node(X, F, G, right ? k : k + 1, tangent_once, a);
    for (int i = 0; i < Op::tangent_carried; ++i)
      b[i] = right ? shifted_left(a[i], h.a[i]) : shifted_left(h.a[i], a[i]);
    Op::tangent_cell(X, F, G, k, tangent_once, right ? a : h.a, b, r, J);
    for (int i = 0; i < Op::tangent_carried; ++i) h.a[i] = a[i];
    // The rows of the nodes that are eliminated, and of those after them.
    constexpr int own = right ? n : 0, far = right ? 0 : n;
    const long here = X.counts[k];
    const lane_mask cell = first_lanes(here);
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
      r[i] = choose(cell, r[i], raw{});
      r[n + i] = choose(cell, r[n + i], raw{});
      raw both =
          right ? r[n + i] + shifted_left(r[i], h.r[i]) : r[i] + shifted_right(h.r[i], r[n + i]);
      h.r[i] = r[far + i];
      if (Op::source[i] >= 0) {
        both -= right ? Base::source_next(k, i) : Base::source_at(k, i);
        both = choose(cell, both, raw{});
        if (right && Op::in_cell[i] && k == K - 1) both[here - 1] = 0.0;
      }
      const raw counted = Op::held[i] < 0 ? both : both * (right ? free_next(k, i) : free_at(k, i));
      sum += counted * counted;
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
#pragma GCC unroll 8
        for (int c = 0; c < W; ++c) {
          const int j = v * W + c;
          if (j < n) {
            raw &near = J[(own + i) * 2 * n + own + j], &farther = J[(far + i) * 2 * n + far + j];
            if (right) farther = choose(cell, farther, raw{});
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

  // The rows of the node in lane l.
  FDGEOM_INLINE static void rows(const Half& h, long l, Row* D, WideRow* U) {
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
    }
  }
  // Keeps what is eliminated, and L X for the next node.
  FDGEOM_INLINE static void keep(Half& h, long l, raw* x, raw* f, const Row* D, const WideRow* U) {
#pragma GCC unroll 32
    for (int i = 0; i < n; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < R; ++v) {
        f[i * R + v] = D[i][v];
        f[(n + i) * R + v] = h.l[i][v][l];
      }
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        raw y = (raw{} + h.l[0][i / W][l][i % W]) * U[0][v];
#pragma GCC unroll 8
        for (int j = 1; j < n; ++j) y += (raw{} + h.l[j][i / W][l][i % W]) * U[j][v];
        h.P[i][v] = y;
      }
    B::template columns<V>(U, n + 1, x);
  }
  // Eliminates a node of each of S halves.
  template <int S>
  FDGEOM_INLINE bool eliminate(Half* const (&h)[2], const long (&l)[2], const long (&node)[2]) {
    Row D[S][n];
    WideRow U[S][n];
    for (int s = 0; s < S; ++s) {
      rows(*h[s], l[s], D[s], U[s]);
      hold(node[s], D[s], U[s]);
    }
    bool good = true;
    if (__builtin_expect(B::template eliminate<S, V>(D, U), 0))
      for (int s = 0; s < S; ++s) {
        Row exchanged[n];
        WideRow with[n];
        rows(*h[s], l[s], exchanged, with);
        hold(node[s], exchanged, with);
        good = B::eliminate_pivoting(exchanged, with) && good;
        for (int i = 0; i < n; ++i) {
          for (int v = 0; v < R; ++v) D[s][i][v] = exchanged[i][v];
          for (int v = 0; v < V; ++v) U[s][i][v] = with[i][v];
        }
      }
    for (int s = 0; s < S; ++s)
      keep(*h[s], l[s], nodes + node[s] * in_X, factors + node[s] * in_factors, D[s], U[s]);
    return good;
  }

  // Eliminates one node: out of line, since the code is large and most nodes go in pairs.
  __attribute__((noinline)) bool eliminate_one(Half& h, long l, long node) {
    return eliminate<1>({&h, nullptr}, {l, 0}, {node, 0});
  }

  // Residual, tangent and elimination in one pass; false if a block is singular or not finite.
  __attribute__((noinline)) bool linearise() {
    Half first, last;
    raw sum = {};
    bool good = true;
    Op::tangent_node(X, F, G, 0, tangent_once, first.a);
    Op::tangent_node(X, F, G, K, tangent_once, last.a);
    long kl = 0, kr = K - 1;
    for (; kr >= 2 * left; --kr) {
      load<true>(last, kr, sum);
      for (long l = X.counts[kr] - 1; l >= 0; --l)
        good = eliminate_one(last, l, kr * W + 1 + l) && good;
    }
    for (; kl < left; ++kl, --kr) {
      load<false>(first, kl, sum);
      load<true>(last, kr, sum);
      const long here = X.counts[kr];
      long l = 0;
      for (; l < here; ++l)
        good = eliminate<2>({&first, &last}, {l, here - 1 - l}, {kl * W + l, kr * W + here - l}) &&
               good;
      for (; l < W; ++l) good = eliminate_one(first, l, kl * W + l) && good;
    }
    return eliminate_middle(first, last, total(sum)) && good;
  }

  // The middle node, and the norm of the residual.
  bool eliminate_middle(const Half& first, const Half& last, double sum) {
    Row D[n] = {};
    WideRow U[n] = {};
    const auto entry = [](const Half& h, int i, int j) { return h.E[i * n + j]; };
    for (int i = 0; i < n; ++i) {
      double r = last.r[i][0] + (left ? first.r[i][W - 1] : 0.0);
      if constexpr (Op::transposed) r -= Base::source_of(M, i);
      for (int j = 0; j < n; ++j)
        D[i][j / W][j % W] = entry(last, i, j)[0] + (left ? entry(first, i, j)[W - 1] : 0.0) -
                             first.P[i][j / W][j % W] - last.P[i][j / W][j % W];
      U[i][n / W][n % W] = r - first.P[i][n / W][n % W] - last.P[i][n / W][n % W];
      if (is_free(M, i)) sum += r * r;
    }
    hold(M, D, U);
    const bool good = B::eliminate_pivoting(D, U);
    raw *const x = nodes + M * in_X, *const f = factors + M * in_factors;
    for (int c = 0; c < in_X; ++c) x[c] = raw{};
    for (int c = 0; c < in_factors; ++c) f[c] = raw{};
    for (int i = 0; i < n; ++i) {
      x[n * R + i / W][i % W] = U[i][n / W][n % W];
      for (int v = 0; v < R; ++v) f[i * R + v] = D[i][v];
    }
    residual = std::sqrt(sum);
    return good && std::isfinite(residual);
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
  // The residuals of block k, node by node.
  FDGEOM_INLINE void right_sides(long k, raw (*t)[R]) const {
    for (int v = 0; v < R; ++v) {
      raw C[W];
      for (int i = 0; i < W; ++i) C[i] = v * W + i < n ? rhs[k * n + v * W + i] : raw{};
      transpose(C);
      for (int l = 0; l < W; ++l) t[l][v] = C[l];
    }
  }
  // The right-hand sides in X become those of the last `evaluate`, by the factors of the last
  // `linearise`.
  __attribute__((noinline)) void apply() {
    raw t[W][R], y[R] = {}, z[R] = {};
    const raw *before = nullptr, *after = nullptr;
    for (long k = 0; k < left; ++k) {
      right_sides(k, t);
      for (long l = 0; l < W; ++l) {
        solve_node(k * W + l, before, t[l], y);
        before = factors + (k * W + l) * in_factors;
      }
    }
    for (long j = cells; j > M; --j) {
      if (j == cells || j % W == W - 1) right_sides(j / W, t);
      solve_node(j, after, t[j % W], z);
      after = factors + j * in_factors;
    }
    right_sides(left, t);
    if (before)
      for (int j = 0; j < n; ++j)
        for (int v = 0; v < R; ++v) t[0][v] -= before[(n + j) * R + v] * (raw{} + y[j / W][j % W]);
    solve_node(M, after, t[0], z);
  }

  // The solution x of a node: the right-hand side in X, less what X couples it with.
  FDGEOM_INLINE static void substitute(const raw* q, raw* x) {
    raw y[R];
#pragma GCC unroll 4
    for (int v = 0; v < R; ++v) {
      raw a = q[n * R + v] - q[v] * (raw{} + x[0][0]);
      raw b = n > 1 ? q[R + v] * (raw{} + x[1 / W][1 % W]) : raw{};
#pragma GCC unroll 16
      for (int c = 2; c < n; c += 2) {
        a -= q[c * R + v] * (raw{} + x[c / W][c % W]);
        if (c + 1 < n) b += q[(c + 1) * R + v] * (raw{} + x[(c + 1) / W][(c + 1) % W]);
      }
      y[v] = a - b;
    }
    for (int v = 0; v < R; ++v) x[v] = y[v];
  }
  // Gives the solution for the right-hand sides in X block by block, from the middle outwards.
  template <class Take>
  FDGEOM_INLINE void solution(Take take) {
    raw first[R * W], last[R * W] = {}, x[R], y[R];
    const auto give = [&](long k, raw* values) {
      for (int v = 0; v < R; ++v) transpose(values + v * W);
      take(k, values);
    };
    for (int v = 0; v < R; ++v) last[v * W] = x[v] = y[v] = nodes[M * in_X + n * R + v];
    long kr = left, kl = left - 1;
    for (; kr * W <= cells || kl >= 0; ++kr, --kl) {
      const long there =
          cells - kr * W < W - 1 ? cells - kr * W : W - 1;  // the last lane of the right half
      const bool begins = kr == left;
      for (long l = begins; l < W; ++l) {
        if (l <= there) substitute(nodes + (kr * W + l) * in_X, y);
        for (int v = 0; v < R; ++v) last[v * W + l] = l <= there ? y[v] : raw{};
        if (kl >= 0) {
          const long j = W - 1 - l + begins;
          substitute(nodes + (kl * W + j) * in_X, x);
          for (int v = 0; v < R; ++v) first[v * W + j] = x[v];
        }
      }
      if (begins && kl >= 0) {
        substitute(nodes + kl * W * in_X, x);
        for (int v = 0; v < R; ++v) first[v * W] = x[v];
      }
      if (there >= 0) give(kr, last);
      if (kl >= 0) give(kl, first);
    }
  }
  // u := u - x.
  __attribute__((noinline)) void update() {
    raw moved = {}, sizes = {};
    solution([&](long k, const raw* x) { Base::move(k, x, moved, sizes); });
    Base::norms(moved, sizes);
  }

  // The number of negative eigenvalues of a symmetric matrix: those of the diagonal blocks.
  int negative() const {
    int found = 0;
    for (long j = 0; j <= cells; ++j) {
      const raw* const f = factors + j * in_factors;
      found += negative_of_inverse<n>([&](int i) { return is_free(j, i); },
                                      [&](int i, int c) { return f[i * R + c / W][c % W]; });
    }
    return found;
  }
};

}  // namespace
