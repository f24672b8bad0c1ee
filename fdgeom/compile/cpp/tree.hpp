// Solves along chains: their segments, and where they meet the small system of the nodes between them.
// Included after segments.hpp.

namespace {

template <class Op>
struct TreeSolve : SegmentSolve<Op> {
  using Base = ChainUnknowns<Op>;
  using Parts = SegmentSolve<Op>;
  using Base::F, Base::G, Base::residual, Base::rhs, Base::tangent_once, Base::X;
  using B = typename Parts::B;
  using Parts::border, Parts::elements, Parts::elements_of_segments, Parts::factors, Parts::found;
  using Parts::hold, Parts::in_border, Parts::in_element, Parts::in_factors, Parts::in_X;
  using Parts::is_free, Parts::less, Parts::link_blocks, Parts::link_r, Parts::m, Parts::more;
  using Parts::n, Parts::nodes, Parts::R, Parts::small, Parts::solved, Parts::T, Parts::V;
  using Parts::x;
  using typename Parts::Row, typename Parts::WideRow;

  int in_fronts = 0;  // negative eigenvalues of the small system

  TreeSolve(const Run& run, Fields f, Outs g) : Parts(run, f, g) {}

  // The middle nodes of those of two segments that close a chain, and the solution there.
  bool close(long s, int many, raw& sum) {
    bool good = true;
    long which[4], count = 0;  // segments whose targets are solved for
    for (long a = s; a < s + many; ++a) {
      const Segment& q = T.segments[a];
      if (!q.closes) continue;
      if (q.other >= 0) which[count++] = q.other;
      which[count++] = a;
      Row D[n] = {};
      WideRow U[n] = {};
      for (int i = 0; i < n; ++i) {
        double r = 0.0, less = 0.0;
        for (const long b : {q.other, a}) {
          if (b < 0) continue;
          r += more[b * 4 * n + i];
          less += more[b * 4 * n + 2 * n + i];
          for (int j = 0; j < n; ++j) D[i][j / W][j % W] += elements[b * in_element + i * n + j];
        }
        if constexpr (Op::transposed) r -= Base::source_of(q.target, i);
        if (is_free(q.target, i)) sum[0] += r * r;
        U[i][n / W][n % W] = r - less;
      }
      hold(q.target, D, U);
      good = B::eliminate_pivoting(D, U) && good;
      raw* const f = factors + q.target * in_factors;
      for (int i = 0; i < n; ++i) {
        found[q.target / W * m + i][q.target % W] = U[i][n / W][n % W];
        for (int v = 0; v < R; ++v) f[i * R + v] = D[i][v];
      }
    }
    for (long i = 0; i < count; i += 2) substitute_two(which[i], i + 1 < count ? which[i + 1] : -1);
    return good;
  }
  // The same by the factors of the last `linearise`.
  void close_again(long s) {
    const Segment& q = T.segments[s];
    const raw* const f = factors + q.target * in_factors;
    double z[n];
    for (int i = 0; i < n; ++i) {
      z[i] = is_free(q.target, i) ? rhs[q.target / W * n + i][q.target % W] : 0.0;
      for (const long b : {q.other, s})
        if (b >= 0 && is_free(q.target, i)) z[i] -= more[b * 4 * n + 2 * n + i];
    }
    for (int i = 0; i < n; ++i) {
      double y = 0.0;
      for (int j = 0; j < n; ++j) y += f[i * R + j / W][j % W] * z[j];
      found[q.target / W * m + i][q.target % W] = y;
    }
    substitute_two(q.other, s);
  }

  // Solves the equations of W nodes at once where cells couple no nodes, and gives those of the
  // small system to it.
  bool nodes_alone(raw& sum) {
    raw r[2 * n], J[2 * n * n], last[n] = {}, E[n * n] = {}, x[n], check = {};
    raw a[Op::tangent_carried], after[Op::tangent_carried], b[Op::tangent_carried];
    const Segment *next = T.segments, *const end = next + T.count;
    bool begins = true;
    for (long k = 0; k < X.chain_blocks; ++k) {
      const long here = X.counts[k];
      const lane_mask cell = Base::cells_of(k);
      if (here > 0) {
        if (begins) Op::tangent_node(X, F, G, k, tangent_once, a);
        Op::tangent_node(X, F, G, k + 1, tangent_once, after);
        for (int i = 0; i < Op::tangent_carried; ++i) b[i] = shifted_left(a[i], after[i]);
        Op::tangent_cell(X, F, G, k, tangent_once, a, b, r, J);
        for (int i = 0; i < Op::tangent_carried; ++i) a[i] = after[i];
      }
      begins = here == 0;
      const raw inner = *(const raw*)(T.inner + k * W);
      raw* const D = factors + k * n * n;
      for (int i = 0; i < n; ++i) {
        r[i] = choose(cell, r[i], raw{});
        r[n + i] = choose(cell, r[n + i], raw{});
        x[i] = r[i] + shifted_right(last[i], r[n + i]);
        last[i] = r[n + i];
        if (Op::source[i] >= 0) x[i] -= Base::source_at(k, i) * inner;
#pragma GCC unroll 8
        for (int j = 0; j < n; ++j) {
          D[i * n + j] = raw{};
          if (!Op::couples[i * n + j]) continue;
          raw &near = J[i * n + j], &far = J[(n + i) * n + j];
          near = choose(cell, near, raw{});
          far = choose(cell, far, raw{});
          D[i * n + j] = near + shifted_right(E[i * n + j], far);
          E[i * n + j] = far;
        }
      }
      for (; next != end && next->target / W == k; ++next) {
        const long s = next - T.segments, l = next->target % W;
        for (int i = 0; i < n; ++i) {
          more[s * 4 * n + i] = x[i][l];
          more[s * 4 * n + 2 * n + i] = 0.0;
          for (int j = 0; j < n; ++j) elements[s * in_element + i * n + j] = D[i * n + j][l];
        }
      }
      raw free[n], every = inner;
      for (int i = 0; i < n; ++i) {
        free[i] = Op::held[i] < 0 ? inner : inner * Base::free_at(k, i);
        every *= free[i];
      }
      if (!all_le(lanes(0.5), every))
        for (int i = 0; i < n; ++i) {
          x[i] = choose(free[i] > 0.5, x[i], raw{});
          for (int j = 0; j < n; ++j)
            D[i * n + j] = choose(free[i] > 0.5, D[i * n + j], lanes(i == j));
        }
      for (int i = 0; i < n; ++i) sum += x[i] * x[i];
      Op::solve_node(X, F, G, k, D, x, found + k * m);
      for (int i = 0; i < n; ++i) check += fabs(found[k * m + i]);
    }
    return all_le(check, 1e300);
  }

  // The same by the matrices of the last `linearise`, for the right-hand sides of `evaluate`.
  void nodes_again() {
    for (long k = 0; k < X.chain_blocks; ++k) {
      raw z[n];
      const raw inner = *(const raw*)(T.inner + k * W);
      for (int i = 0; i < n; ++i) {
        const raw free = Op::held[i] < 0 ? inner : inner * Base::free_at(k, i);
        z[i] = choose(free > 0.5, rhs[k * n + i], raw{});
      }
      Op::solve_node(X, F, G, k, factors + k * n * n, z, found + k * m);
    }
  }

  // Adds what segments give to a right-hand side of the small system: [which half] of `more`.
  void add_segments(int which, double* to) {
    for (long s = T.alone; s < T.count; ++s) {
      const int* const ids = T.segments[s].ids;
      const double* const r = more + s * 4 * n + which * 2 * n;
      const int many = T.segments[s].start < 0 ? n : 2 * n;
      for (int i = 0; i < many; ++i)
        if (ids[i] >= 0) to[ids[i]] += r[i];
    }
  }
  void take_less() {
    for (long u = 0; u < T.size; ++u) small[u] -= less[u];
  }
  void add_links() {
    const double* const r = (const double*)link_r;
    for (long q = 0; q < T.link_places; ++q) small[T.of_links[2 * q]] += r[T.of_links[2 * q + 1]];
    if constexpr (Op::transposed)
      for (long u = 0; u < T.size; ++u)
        if (T.where[u] >= 0) small[u] -= Base::source_of(T.where[u], T.component[u]);
  }
  // The norm of the residual, with these squares inside of segments; makes that of the small system
  // zero where unknowns are prescribed.
  void measure(double sum) {
    for (long u = 0; u < T.size; ++u) {
      if (T.free[u] < 0.5) small[u] = 0.0;
      sum += small[u] * small[u];
    }
    residual = std::sqrt(sum);
  }

  // Residual, tangent and elimination in one pass; false if a block is singular or not finite.
  __attribute__((noinline)) bool linearise() {
    raw sum = {};
    bool good = true;
    if constexpr (Op::local) good = nodes_alone(sum);
    for (long s = 0; s < T.count && !Op::local;) {
      const bool plain = s < T.bordered;
      const int many = s + 1 < (plain ? T.bordered : T.count) ? 2 : 1;
      const Segment* const q = T.segments + s;
      good = (plain ? this->template segments<V>(q, many, sum)
                    : this->template segments<Op::meets ? V + R : V>(q, many, sum)) &&
             good;
      if (s < T.alone) good = close(s, many, sum) && good;
      s += many;
    }
    if constexpr (Op::meets) return factorise(total(sum), good);
    residual = std::sqrt(total(sum));
    return good && std::isfinite(residual);
  }
  // The same of the small system.
  bool factorise(double sum, bool good) {
    raw* const linked = (raw*)(elements + elements_of_segments());
    for (long k = 0; k < link_blocks; ++k)
      Op::link_tangent(X, F, G, X.chain_blocks + 2 * k, link_r + k * 2 * m,
                       linked + k * Op::link_entries);
    std::memset(less, 0, 2 * T.size * sizeof(double));
    add_segments(0, small);
    add_segments(1, less);
    add_links();
    clear_fronts(*T.fronts);
    double* const matrix = T.fronts->memory;
    for (long i = 0; i < T.entries; ++i) matrix[T.to[i]] += elements[T.from[i]];
    // Behind the right-hand sides lie the squares and the number of ranks with a singular block.
    double* const others = small + T.size;
    others[0] = sum;
    others[1] = !good;
    sum_over_ranks(X, matrix, others + 2 - matrix);
    measure(others[0]);
    take_less();
    if (!std::isfinite(residual) || others[1] > 0.0) return false;
    int* const negative = Base::counts ? &in_fronts : nullptr;
    return factorise_fronts(*T.fronts, negative, Op::update ? 0.0 : TINY);
  }

  // The residual alone.
  __attribute__((noinline)) void evaluate() {
    raw sum = Base::residuals(T.inner);
    for (long s = 0; s < T.alone; ++s)
      if (const Segment& q = T.segments[s]; q.closes)
        for (int i = 0; i < n; ++i)
          if (const double x = rhs[q.target / W * n + i][q.target % W]; is_free(q.target, i))
            sum[0] += x * x;
    residual = std::sqrt(total(sum));
    if constexpr (Op::meets) evaluate_small(total(sum));
  }
  // The same of the small system.
  void evaluate_small(double sum) {
    for (long k = 0; k < link_blocks; ++k)
      Op::link_residual(X, F, G, X.chain_blocks + 2 * k, link_r + k * 2 * m);
    std::memset(small, 0, T.size * sizeof(double));
    const double* const from = (const double*)rhs;
    for (long q = 0; q < T.chain_places; ++q)
      small[T.of_chains[2 * q]] += from[T.of_chains[2 * q + 1]];
    add_links();
    small[T.size] = sum;
    sum_over_ranks(X, small, T.size + 1);
    measure(small[T.size]);
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
    if constexpr (Op::local) return nodes_again();
    for (long s = 0; s < T.count; ++s) {
      const Segment& q = T.segments[s];
      const long d = q.back ? -1 : 1;
      raw t[W][R], y[R] = {}, least[R] = {};
      const raw* before = nullptr;
      for (long j = 0, node = q.begin; j < q.count; ++j, node += d) {
        if (j == 0 || node % W == (q.back ? W - 1 : 0)) right_sides(node / W, t);
        this->solve_node(node, before, t[node % W], y);
        before = factors + node * in_factors;
        if (Op::meets && q.bordered) {
          Row rows[n];
          raw C[n * R];
          std::memcpy(rows, border + node * in_border + n * R, sizeof(rows));
          B::template columns<R>(rows, n, C);
          for (int j = 0; j < n; ++j)
            for (int v = 0; v < R; ++v) least[v] += C[j * R + v] * (raw{} + y[j / W][j % W]);
        }
      }
      double* const r = more + s * 4 * n + 2 * n;
      for (int i = 0; i < n; ++i) {
        r[n + i] = least[i / W][i % W];
        r[i] = 0.0;
        if (before)
          for (int j = 0; j < n; ++j) r[i] += before[(n + j) * R + i / W][i % W] * y[j / W][j % W];
      }
      if (q.closes) close_again(s);
    }
    if constexpr (!Op::meets) return;
    std::memset(less, 0, T.size * sizeof(double));
    add_segments(1, less);
    sum_over_ranks(X, less, T.size);
    take_less();
  }
  // Gives the solution for the right-hand sides in X block by block.
  template <class Take>
  FDGEOM_INLINE void solution(Take take) {
    if constexpr (Op::meets) {
      solve_small();
      for (long s = T.alone; s < T.count; s += 2) substitute_two(s, s + 1 < T.count ? s + 1 : -1);
    }
    for (long k = 0; k < X.blocks; ++k) {
      if (!Op::local && k < X.chain_blocks) inner_solution(k);
      take(k, found + k * m);
    }
  }
  void solve_small() {
    std::memcpy(x, small, T.size * sizeof(double));
    solve_fronts(*T.fronts, x);
    double* const to = (double*)found;
    for (long q = 0; q < T.places; ++q) to[T.at[2 * q + 1]] = x[T.at[2 * q]];
  }
  // The solution at the nodes of a block that segments have eliminated.
  FDGEOM_INLINE void inner_solution(long k) {
    const lane_mask inner = *(const raw*)(T.inner + k * W) > 0.5;
    for (int v = 0; v < R; ++v) {
      raw C[W];
      for (int l = 0; l < W; ++l) C[l] = solved[(k * W + l) * R + v];
      transpose(C);
#pragma GCC unroll 8
      for (int c = 0; c < W && v * W + c < n; ++c) {
        raw& to = found[k * m + v * W + c];
        to = choose(inner, C[c], to);
      }
    }
  }
  // The solution at the nodes of two segments, side by side; -1: none.
  __attribute__((noinline)) void substitute_two(long first, long second) {
    const long which[2] = {first, second};
    raw t[2][R], from[2][R];
    long node[2], left[2] = {0, 0}, d[2];
    for (int i = 0; i < 2; ++i) {
      if (which[i] < 0) continue;
      const Segment& q = T.segments[which[i]];
      d[i] = q.back ? 1 : -1;
      left[i] = q.count;
      node[i] = q.begin - d[i] * (q.count - 1);
      for (int v = 0; v < R; ++v) t[i][v] = from[i][v] = raw{};
      for (int c = 0; c < n; ++c) {
        t[i][c / W][c % W] = found[q.target / W * m + c][q.target % W];
        if (Op::meets && q.bordered) from[i][c / W][c % W] = found[q.start / W * m + c][q.start % W];
      }
    }
    const auto one = [&](int i) __attribute__((always_inline)) {
      const bool edge = Op::meets && T.segments[which[i]].bordered;
      Parts::substitute(nodes + node[i] * in_X, t[i], edge ? border + node[i] * in_border : nullptr, from[i]);
      for (int v = 0; v < R; ++v) solved[node[i] * R + v] = t[i][v];
      node[i] += d[i];
      --left[i];
    };
    while (left[0] > 0 && left[1] > 0) {
      one(0);
      one(1);
    }
    // Numbers known to the compiler keep the solutions in registers.
    while (left[0] > 0) one(0);
    while (left[1] > 0) one(1);
  }

  // The number of negative eigenvalues of a symmetric matrix: those of the diagonal blocks.
  int negative() const {
    double found = 0.0;
    for (long node = 0; node < X.chain_blocks * W; ++node)
      if (T.inner[node] > 0.5) found += Parts::negative_at(node);
    for (long s = 0; s < T.alone; ++s)
      if (T.segments[s].closes) found += Parts::negative_at(T.segments[s].target);
    sum_over_ranks(X, &found, 1);
    return in_fronts + int(found);
  }

  // The place with the largest residual of the last `evaluate`; -1 if another rank has that.
  long worst() const {
    long worst = 0;
    double most = -1.0;
    const auto compare = [&](long node, double r) {
      if (!(std::fabs(r) <= most)) {
        worst = node;
        most = std::isnan(r) ? HUGE_VAL : std::fabs(r);
      }
    };
    for (long node = 0; node < X.chain_blocks * W; ++node)
      for (int i = 0; i < n; ++i)
        if (T.inner[node] > 0.5 && is_free(node, i)) compare(node, rhs[node / W * n + i][node % W]);
    for (long s = 0; s < T.alone; ++s)
      if (const long node = T.segments[s].target; T.segments[s].closes)
        for (int i = 0; i < n; ++i)
          if (is_free(node, i)) compare(node, rhs[node / W * n + i][node % W]);
    for (long u = 0; u < T.size; ++u)
      if (T.where[u] >= 0) compare(T.where[u], small[u]);
    return is_largest(X, most) ? worst : -1;
  }
};

}  // namespace
