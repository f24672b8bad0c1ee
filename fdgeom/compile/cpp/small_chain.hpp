// Block tridiagonal LU of the equations along one chain for up to three unknowns a node, in
// scalars. Included after chain_unknowns.hpp and blocks.hpp; the interface is that of Chain.

namespace {

template <class Op>
struct SmallChain : ChainUnknowns<Op> {
  using Base = ChainUnknowns<Op>;
  using Base::cells, Base::F, Base::G, Base::is_free, Base::n, Base::node_blocks;
  using Base::residual, Base::rhs, Base::tangent_once, Base::X;
  static constexpr bool reuses =
      false;  // new factors cost little more than another right-hand side
  typedef double Matrix[n][n];
  // What is kept of a node: X = D⁻¹ U, D⁻¹ r, D⁻¹, L.
  struct Node {
    Matrix X, inverse, L;
    double y[n];
  };
  Node* nodes;

  SmallChain(const Run& x, Fields f, Outs g) : Base(x, f, g) {
    static thread_local std::vector<raw> right_sides;
    static thread_local std::vector<Node> memory;
    if (long(memory.size()) <= cells) memory.resize(cells + 1);
    if (long(right_sides.size()) < node_blocks * n) right_sides.resize(node_blocks * n);
    nodes = memory.data();
    rhs = right_sides.data();
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
      const double f = 1.0 / (p + q + r);
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) I[i][j] = f * C[i][j];
      return std::fabs(p + q + r) > 1e-4 * (std::fabs(p) + std::fabs(q) + std::fabs(r));
    }
  }
  // The inverse by elimination with exchanges of rows; false if the block is singular.
  __attribute__((noinline)) static bool invert_pivoting(const Matrix& D, Matrix& I) {
    typename Block<n>::Row rows[n] = {};
    typename Block<n>::WideRow right[n] = {};
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) rows[i][0][j] = D[i][j];
    const bool good = Block<n>::eliminate_pivoting(rows, right);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) I[i][j] = rows[i][0][j];
    return good;
  }

  // Eliminates node j with the matrix D, the right-hand side r and the coupling U to the next node;
  // P: L X and L y of the node before, then those of this node, for the next one's coupling L.
  FDGEOM_INLINE bool eliminate(long j, Matrix& D, double (&r)[n], Matrix& U, const Matrix& L,
                               double (&P)[n][n + 1]) {
    Node& node = nodes[j];
    for (int i = 0; i < n; ++i) {
      r[i] -= P[i][n];
      for (int c = 0; c < n; ++c) D[i][c] -= P[i][c];
    }
    for (int i = 0; i < n; ++i)
      if (!is_free(j, i)) {
        r[i] = 0.0;
        for (int c = 0; c < n; ++c) {
          D[i][c] = i == c;
          U[i][c] = 0.0;
        }
      }
    bool good = true;
    if (__builtin_expect(!invert(D, node.inverse), 0)) good = invert_pivoting(D, node.inverse);
    for (int i = 0; i < n; ++i) {
      double y = 0.0;
      for (int m = 0; m < n; ++m) y += node.inverse[i][m] * r[m];
      node.y[i] = y;
      for (int c = 0; c < n; ++c) {
        double x = 0.0;
        for (int m = 0; m < n; ++m) x += node.inverse[i][m] * U[m][c];
        node.X[i][c] = x;
      }
    }
    for (int i = 0; i < n; ++i) {
      for (int m = 0; m < n; ++m) node.L[i][m] = L[i][m];
      for (int c = 0; c <= n; ++c) {
        double x = 0.0;
        for (int m = 0; m < n; ++m) x += L[i][m] * (c < n ? node.X[m][c] : node.y[m]);
        P[i][c] = x;
      }
    }
    return good && std::isfinite(node.y[0]);
  }

  // Residual, tangent and elimination in one pass; false if a block is singular or not finite.
  __attribute__((noinline)) bool linearise() {
    raw r[2 * n], J[4 * n * n], b[Op::tangent_carried];
    raw a[Op::tangent_carried], after[Op::tangent_carried];
    double P[n][n + 1] = {}, sum = 0.0, f[n], last_r[n] = {};
    Matrix D, U = {}, L = {}, last = {};
    bool good = true;
    const auto counted = [&](long j) {
      for (int i = 0; i < n; ++i) {
        if (Op::transposed) f[i] -= Base::source_of(j, i);
        if (is_free(j, i)) sum += f[i] * f[i];
      }
    };
    Op::tangent_node(X, F, G, 0, tangent_once, a);
    for (long k = 0; k * W < cells; ++k) {
      Op::tangent_node(X, F, G, k + 1, tangent_once, after);
      for (int i = 0; i < Op::tangent_carried; ++i) b[i] = shifted_left(a[i], after[i]);
      Op::tangent_cell(X, F, G, k, tangent_once, a, b, r, J);
      for (int i = 0; i < Op::tangent_carried; ++i) a[i] = after[i];
      for (long l = 0; l < X.counts[k]; ++l) {
        for (int i = 0; i < n; ++i) {
          f[i] = r[i][l] + last_r[i];
          for (int j = 0; j < n; ++j) {
            D[i][j] = J[i * 2 * n + j][l] + last[i][j];
            U[i][j] = J[i * 2 * n + n + j][l];
            L[i][j] = J[(n + i) * 2 * n + j][l];
            last[i][j] = J[(n + i) * 2 * n + n + j][l];
          }
          last_r[i] = r[n + i][l];
        }
        counted(k * W + l);
        good = eliminate(k * W + l, D, f, U, L, P) && good;
      }
    }
    for (int i = 0; i < n; ++i) {
      f[i] = last_r[i];
      for (int j = 0; j < n; ++j) {
        D[i][j] = last[i][j];
        U[i][j] = L[i][j] = 0.0;
      }
    }
    counted(cells);
    good = eliminate(cells, D, f, U, L, P) && good;
    residual = std::sqrt(sum);
    return good && std::isfinite(residual);
  }

  // The right-hand sides become those of the last `evaluate`, by the factors of the last
  // `linearise`.
  __attribute__((noinline)) void apply() {
    double y[n] = {}, z[n];
    for (long j = 0; j <= cells; ++j) {
      for (int i = 0; i < n; ++i) {
        z[i] = rhs[j / W * n + i][j % W];
        for (int m = 0; j && m < n; ++m) z[i] -= nodes[j - 1].L[i][m] * y[m];
        if (!is_free(j, i)) z[i] = 0.0;
      }
      for (int i = 0; i < n; ++i) {
        y[i] = 0.0;
        for (int m = 0; m < n; ++m) y[i] += nodes[j].inverse[i][m] * z[m];
      }
      for (int i = 0; i < n; ++i) nodes[j].y[i] = y[i];
    }
  }

  // Gives the solution block by block, from the last one on.
  template <class Take>
  FDGEOM_INLINE void solution(Take take) {
    double x[n] = {}, y[n];
    for (long k = node_blocks - 1; k >= 0; --k) {
      raw v[n] = {};
      for (long l = cells - k * W < W - 1 ? cells - k * W : W - 1; l >= 0; --l) {
        const Node& node = nodes[k * W + l];
        for (int i = 0; i < n; ++i) {
          y[i] = node.y[i];
          for (int c = 0; c < n; ++c) y[i] -= node.X[i][c] * x[c];
        }
        for (int i = 0; i < n; ++i) v[i][l] = x[i] = y[i];
      }
      take(k, v);
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
    for (long j = 0; j <= cells; ++j)
      found += negative_of_inverse<n>([&](int i) { return is_free(j, i); },
                                      [&](int i, int c) { return nodes[j].inverse[i][c]; });
    return found;
  }
};

}  // namespace
