// Block tridiagonal LU of the equations along one chain. Included after elimination.hpp.
//
// The two halves of the chain are eliminated towards its middle node side by side: two recurrences
// whose latencies overlap ("twisted" factorisation); with `from_right` all nodes from the right.

namespace {

template <class Op>
struct Chain : Elimination<Op> {
  using Base = ChainUnknowns<Op>;
  using Parts = Elimination<Op>;
  using Base::cells, Base::F, Base::G, Base::node_blocks, Base::residual, Base::rhs;
  using Base::tangent_once, Base::X;
  using Parts::factors, Parts::is_free, Parts::n, Parts::nodes;
  using Parts::in_factors, Parts::in_X, Parts::R, Parts::V;
  using B = Block<n>;
  using typename Parts::Half, typename Parts::Row, typename Parts::WideRow;

  const long K, left, M;  // blocks of cells; those of the left half; the middle node

  Chain(const Run& x, Fields f, Outs g)
      : Parts(x, f, g), K((cells + W - 1) / W), left(Op::from_right ? 0 : K / 2), M(left * W) {
    static thread_local std::vector<raw> memory;
    const size_t size = (cells + 1) * (in_X + in_factors) + node_blocks * n;
    if (memory.size() < size) memory.resize(size);
    nodes = memory.data();
    factors = nodes + (cells + 1) * in_X;
    rhs = factors + (cells + 1) * in_factors;
  }

  template <bool right>
  void load(Half& h, long k, raw& sum) {
    const raw inner = choose(first_lanes(X.counts[k]), lanes(1.0), raw{});
    Parts::template load<right>(h, k, inner, K - 1, sum);
  }
  static void set(Half& h, long lane, long node) {
    h.lane = lane;
    h.node = node;
  }
  // Eliminates one node: out of line, since the code is large and most nodes go in pairs.
  __attribute__((noinline)) bool eliminate_one(Half& h) {
    return this->template eliminate<1, V>({&h, nullptr});
  }

  // Residual, tangent and elimination in one pass; false if a block is singular or not finite.
  __attribute__((noinline)) bool linearise() {
    Half first, last;
    Parts::clear(first);
    Parts::clear(last);
    raw sum = {};
    bool good = true;
    Op::tangent_node(X, F, G, 0, tangent_once, first.a);
    Op::tangent_node(X, F, G, K, tangent_once, last.a);
    long kl = 0, kr = K - 1;
    for (; kr >= 2 * left; --kr) {
      load<true>(last, kr, sum);
      for (long l = X.counts[kr] - 1; l >= 0; --l) {
        set(last, l, kr * W + 1 + l);
        good = eliminate_one(last) && good;
      }
    }
    for (; kl < left; ++kl, --kr) {
      load<false>(first, kl, sum);
      load<true>(last, kr, sum);
      const long here = X.counts[kr];
      for (long l = 0; l < W; ++l) {
        set(first, l, kl * W + l);
        set(last, here - 1 - l, kr * W + here - l);
        good = (l < here ? this->template eliminate<2, V>({&first, &last}) : eliminate_one(first)) &&
               good;
      }
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
    this->hold(M, D, U);
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
        this->solve_node(k * W + l, before, t[l], y);
        before = factors + (k * W + l) * in_factors;
      }
    }
    for (long j = cells; j > M; --j) {
      if (j == cells || j % W == W - 1) right_sides(j / W, t);
      this->solve_node(j, after, t[j % W], z);
      after = factors + j * in_factors;
    }
    right_sides(left, t);
    if (before)
      for (int j = 0; j < n; ++j)
        for (int v = 0; v < R; ++v) t[0][v] -= before[(n + j) * R + v] * (raw{} + y[j / W][j % W]);
    this->solve_node(M, after, t[0], z);
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
        if (l <= there) Parts::substitute(nodes + (kr * W + l) * in_X, y);
        for (int v = 0; v < R; ++v) last[v * W + l] = l <= there ? y[v] : raw{};
        if (kl >= 0) {
          const long j = W - 1 - l + begins;
          Parts::substitute(nodes + (kl * W + j) * in_X, x);
          for (int v = 0; v < R; ++v) first[v * W + j] = x[v];
        }
      }
      if (begins && kl >= 0) {
        Parts::substitute(nodes + kl * W * in_X, x);
        for (int v = 0; v < R; ++v) first[v * W] = x[v];
      }
      if (there >= 0) give(kr, last);
      if (kl >= 0) give(kl, first);
    }
  }

  // The number of negative eigenvalues of a symmetric matrix: those of the diagonal blocks.
  int negative() const {
    int found = 0;
    for (long j = 0; j <= cells; ++j) found += Parts::negative_at(j);
    return found;
  }
};

}  // namespace
