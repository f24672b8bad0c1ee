// Block tridiagonal LU of the equations along one chain for up to three unknowns a node, in scalars.
// Included after chain_unknowns.hpp and blocks.hpp; the interface is that of TreeSolve.
//
// The halves are eliminated towards the middle node in turns: two recurrences whose latencies
// overlap. With unknowns in cells all nodes are eliminated from the left, each with the cell after
// it: the last node alone may have no stiffness.

namespace {

template <class Op>
struct SmallChain : ChainUnknowns<Op> {
  using Base = ChainUnknowns<Op>;
  using Base::F, Base::free_at, Base::G, Base::is_free, Base::n, Base::node_blocks;
  using Base::residual, Base::rhs, Base::tangent_once, Base::X;
  static constexpr int numbers = 3 * n * n + n, V = (numbers + W - 1) / W;
  static constexpr bool one_sided = [] {
    bool found = false;
    for (int i = 0; i < n; ++i) found = found || Op::in_cell[i];
    return found;
  }();
  typedef double Matrix[n][n], Wide[n][n + 1];
  // Of a node: its block D; L, which couples the next node to be eliminated with it; U = [U r],
  // which couples it with that node, and its right-hand side. The elimination makes D⁻¹ of D, and
  // X = D⁻¹ [U r] of U, with the right-hand side less L X of the node before.
  struct Node {
    Matrix D, L;
    Wide U;
    double unused[V * W - numbers];
  };
  const long cells, M;  // the node that is eliminated last
  raw* memory;   // [node][V]
  raw* found;    // [block][unknown]: the solution

  SmallChain(const Run& x, Fields f, Outs g)
      : Base(x, f, g), cells(x.nodes - 1), M(one_sided ? cells : cells / (2 * W) * W) {
    static thread_local std::vector<raw> kept;
    const long in_blocks = node_blocks * n, in_nodes = node_blocks * W * V;
    if (long(kept.size()) < in_nodes + 2 * in_blocks) kept.resize(in_nodes + 2 * in_blocks);
    memory = kept.data();
    rhs = memory + in_nodes;
    found = rhs + in_blocks;
  }
  FDGEOM_INLINE Node& node(long j) const { return *(Node*)(memory + j * V); }

  template <int C>
  FDGEOM_INLINE static void multiply(const Matrix& A, const double (&B)[n][C], double (&AB)[n][C]) {
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c) {
        AB[i][c] = A[i][0] * B[0][c];
#pragma GCC unroll 8
        for (int m = 1; m < n; ++m) AB[i][c] += A[i][m] * B[m][c];
      }
  }
  // The inverse by cofactors; false if a cofactor's cancellation may have cost digits.
  FDGEOM_INLINE static bool invert(const Matrix& D, Matrix& I) {
    if constexpr (n == 1) {
      I[0][0] = 1.0 / D[0][0];
      return true;
    } else if constexpr (n == 2) {
      const double p = D[0][0] * D[1][1], q = D[0][1] * D[1][0], f = 1.0 / (p - q);
      I[0][0] = f * D[1][1];
      I[0][1] = -f * D[0][1];
      I[1][0] = -f * D[1][0];
      I[1][1] = f * D[0][0];
      return std::fabs(p - q) > 1e-4 * (std::fabs(p) + std::fabs(q));
    } else {
      double C[3][3];
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          const int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
          C[i][j] = D[a][c] * D[b][d] - D[a][d] * D[b][c];
        }
      const double p = D[0][0] * C[0][0], q = D[0][1] * C[1][0], r = D[0][2] * C[2][0];
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) I[i][j] = C[i][j] / (p + q + r);
      return std::fabs(p + q + r) > 1e-4 * (std::fabs(p) + std::fabs(q) + std::fabs(r));
    }
  }
  // The inverse by elimination with exchanges of rows; false if the block is singular.
  __attribute__((noinline)) static bool invert_pivoting(const Matrix& D, Matrix& I) {
    double right[n] = {};
    std::memcpy(I, D, sizeof(Matrix));
    return Block<n>::invert(&I[0][0], right, 0.0);
  }

  // Eliminates node j. LX: of the node before, then of this one.
  FDGEOM_INLINE bool eliminate(long j, Wide& LX) {
    Node& at = node(j);
    Matrix D, inverse;
    Wide U, X;
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
      const bool free = is_free(j, i);
#pragma GCC unroll 8
      for (int c = 0; c < n; ++c) {
        D[i][c] = free ? at.D[i][c] - LX[i][c] : i == c;
        U[i][c] = free ? at.U[i][c] : 0.0;
      }
      U[i][n] = free ? at.U[i][n] - LX[i][n] : 0.0;
    }
    bool good = true;
    if (__builtin_expect(!invert(D, inverse), 0)) good = invert_pivoting(D, inverse);
    multiply(inverse, U, X);
    multiply(at.L, X, LX);
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
#pragma GCC unroll 8
      for (int c = 0; c < n; ++c) at.D[i][c] = inverse[i][c];
#pragma GCC unroll 8
      for (int c = 0; c <= n; ++c) at.U[i][c] = X[i][c];
    }
    return good && std::isfinite(X[0][n]);
  }
  // The residual alone.
  __attribute__((noinline)) void evaluate() { residual = std::sqrt(total(Base::residuals(nullptr))); }

  // Calls f(j, values of its half) for all nodes but M, from the ends.
  template <class Values, class Call>
  FDGEOM_INLINE void from_ends(Values& left, Values& right, Call f) {
    long i = 0, j = cells;
    for (; M - i > j - M; ++i) f(i, left);
    for (; j - M > M - i; --j) f(j, right);
    for (; i < M; ++i, --j) {
      f(i, left);
      f(j, right);
    }
  }

  // Residual and tangent of all cells: the blocks, couplings and right-hand sides of the nodes.
  __attribute__((noinline)) void load() {
    raw r[2 * n] = {}, J[4 * n * n] = {}, b[Op::tangent_carried], sum = {};
    raw a[Op::tangent_carried], after[Op::tangent_carried];
    // Of the block before: residuals and matrices of farther nodes, and couplings.
    raw last_r[n] = {}, last[n * n] = {}, last_up[n * n] = {}, last_down[n * n] = {};
    Op::tangent_node(X, F, G, 0, tangent_once, a);
    for (long k = 0; k < node_blocks; ++k) {
      const long here = X.counts[k];
      const bool right = k * W >= M;
      const lane_mask cell = first_lanes(here);
      if (here) {
        Op::tangent_node(X, F, G, k + 1, tangent_once, after);
        for (int i = 0; i < Op::tangent_carried; ++i) b[i] = shifted_left(a[i], after[i]);
        Op::tangent_cell(X, F, G, k, tangent_once, a, b, r, J);
        for (int i = 0; i < Op::tangent_carried; ++i) a[i] = after[i];
      }
      raw t[V * W] = {}, *const D = t, *const L = t + n * n, *const U = t + 2 * n * n;
#pragma GCC unroll 8
      for (int i = 0; i < n; ++i) {
        const raw far = choose(cell, r[n + i], raw{});
        raw both = choose(cell, r[i], raw{}) + shifted_right(last_r[i], far);
        last_r[i] = far;
        if (Op::transposed) both -= Base::source_at(k, i);
        both = choose(first_lanes(Op::in_cell[i] ? here : X.node_counts[k]), both, raw{});
        U[i * (n + 1) + n] = both;
        if (Op::held[i] >= 0) both *= free_at(k, i);
        sum += both * both;
#pragma GCC unroll 8
        for (int j = 0; j < n; ++j) {
          const int e = i * n + j;
          const raw up = J[i * 2 * n + n + j], down = J[(n + i) * 2 * n + j];
          const raw matrix = choose(cell, J[(n + i) * 2 * n + n + j], raw{});
          D[e] = choose(cell, J[i * 2 * n + j], raw{}) + shifted_right(last[e], matrix);
          L[e] = right ? shifted_right(last_up[e], up) : down;
          U[i * (n + 1) + j] = right ? shifted_right(last_down[e], down) : up;
          last[e] = matrix;
          last_up[e] = up;
          last_down[e] = down;
        }
      }
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        transpose(t + v * W);
#pragma GCC unroll 8
        for (int l = 0; l < W; ++l) memory[(k * W + l) * V + v] = t[v * W + l];
      }
    }
    residual = std::sqrt(total(sum));
  }

  // Residual, tangent and elimination; false if a block is singular or not finite.
  __attribute__((noinline)) bool linearise() {
    load();
    Wide left = {}, right = {};
    bool good = true;
    from_ends(left, right, [&](long j, Wide& LX) __attribute__((always_inline)) {
      good = eliminate(j, LX) && good;
    });
    for (int i = 0; i < n; ++i)
      for (int c = 0; c <= n; ++c) left[i][c] += right[i][c];
    return eliminate(M, left) && good && std::isfinite(residual);
  }

  // The right-hand side of node j becomes y = D⁻¹ (r - L y). Ly: of the node before, then of this
  // one.
  FDGEOM_INLINE void solve_node(long j, double (&Ly)[n][1]) {
    Node& at = node(j);
    double z[n][1], y[n][1];
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i)
      z[i][0] = is_free(j, i) ? rhs[j / W * n + i][j % W] - Ly[i][0] : 0.0;
    multiply(at.D, z, y);
    multiply(at.L, y, Ly);
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) at.U[i][n] = y[i][0];
  }
  // The right-hand sides become those of the last `evaluate`, by the factors of the last
  // `linearise`.
  __attribute__((noinline)) void apply() {
    double left[n][1] = {}, right[n][1] = {};
    from_ends(left, right, [&](long j, double(&Ly)[n][1]) __attribute__((always_inline)) {
      solve_node(j, Ly);
    });
    for (int i = 0; i < n; ++i) left[i][0] += right[i][0];
    solve_node(M, left);
  }

  // The solution x of node j; before, x is that of the node eliminated after it.
  FDGEOM_INLINE void substitute(long j, double (&x)[n]) {
    const Node& at = node(j);
    double y[n];
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
      y[i] = at.U[i][n];
#pragma GCC unroll 8
      for (int c = 0; c < n; ++c) y[i] -= at.U[i][c] * x[c];
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) found[j / W * n + i][j % W] = x[i] = y[i];
  }
  // Gives the solution block by block.
  template <class Take>
  FDGEOM_INLINE void solution(Take take) {
    double x[n], y[n];
    for (int i = 0; i < n; ++i) {
      found[(node_blocks - 1) * n + i] = raw{};
      found[M / W * n + i][M % W] = x[i] = y[i] = node(M).U[i][n];
    }
    long i = M - 1, j = M + 1;
    for (; i >= 0 && j <= cells; --i, ++j) {
      substitute(i, x);
      substitute(j, y);
    }
    for (; i >= 0; --i) substitute(i, x);
    for (; j <= cells; ++j) substitute(j, y);
    for (long k = 0; k < node_blocks; ++k) take(k, found + k * n);
  }

  // The number of negative eigenvalues of a symmetric matrix: those of the diagonal blocks.
  int negative() const {
    int found = 0;
    for (long j = 0; j <= cells; ++j)
      found += negative_of_inverse<n>([&](int i) { return is_free(j, i); },
                                      [&](int i, int c) { return node(j).D[i][c]; });
    return found;
  }

  // The node with the largest residual of the last `evaluate`.
  long worst() const {
    long found = 0;
    double most = -1.0;
    for (long j = 0; j <= cells; ++j)
      for (int i = 0; i < n; ++i)
        if (const double r = std::fabs(rhs[j / W * n + i][j % W]); !(r <= most)) {
          found = j;
          most = r;
          if (std::isnan(r)) return j;
        }
    return found;
  }
};

}  // namespace
