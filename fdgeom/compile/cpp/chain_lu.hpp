// Block LU of the equations along chains: the elimination of segments of them, node after node. A row
// of a block is a vector. Included after chain_unknowns.hpp and fronts.hpp.
//
// The nodes of a segment of a chain are eliminated towards its end, the target. Of each node are kept
// X = D⁻¹ [U r], where U couples it with the next node to be eliminated and r is its right-hand side,
// D⁻¹, and L, which couples the next node with it. So further right-hand sides cost a fraction of the
// work. Where the segment begins at a node that other segments or links share, its nodes have a
// border: they also couple with that one. Then D⁻¹ B and C are kept, which couple them with that one,
// and that one with them. Two segments are eliminated side by side: two recurrences whose latencies
// overlap.
//
// Targets, nodes at links and their multipliers form a small system (fronts.hpp). Chains without
// links are solved one by one, while they are in the cache: two segments end at the middle node,
// which closes the chain ("twisted" factorisation).
// Where cells couple no nodes (`local`), `factors` has D, [block][n][n].

namespace {

// Further functions of an `Op` where chains meet:
//   link_tangent(k, r, J), link_residual(k, r)   of W links: 2n residuals, and `link_entries`
//   derivatives
// and the constant `local`: whether the cells of chains couple no nodes. Then segments are single
// nodes, `tangent_cell` gives the matrices of both nodes alone, `couples` tells which entries they
// have, and solve_node(k, D, r, x) solves D x = r.
struct Segment {
  long first, last;    // blocks of its cells
  long target, begin;  // places of the target, and of the first eliminated node
  long start;          // place of the node of the border; -1: none
  long count;          // eliminated nodes
  long other;  // of a chain by itself: the segment before that ends at the same target; -1: none
  int back, bordered;  // whether it is eliminated from the right to the left
  int closes;          // whether it is the last one of a chain by itself
  const int* ids;      // numbers of the unknowns of target and start in the small system; -1: none
};
struct Tree {
  const Segment* segments;
  long count, alone,
      bordered;         // segments; those of chains by themselves; the first one with a border
  const double* inner;  // 1 at nodes that segments eliminate
  const Fronts* fronts;
  long size;             // unknowns of the small system
  double* small;         // [2 size + 2]: for its right-hand sides, behind the memory of the fronts
  const double* free;    // [size]: 0 where an unknown is prescribed, 1 elsewhere
  const int* where;      // [size]: of each its place; -1: that of another rank
  const int* component;  // [size]: and its number among the unknowns of a node
  // Numbers of unknowns, each with an address: one of its places in [block][unknown][lane], what
  // chains give to it in [block][unknown of chains][lane], and what links give in [block of
  // links][2n][lane].
  const int *at, *of_chains, *of_links;
  long places, chain_places, link_places;
  const int* from;  // [entries]: of the matrices of segments and links
  const int* to;    // [entries]: into those of the fronts
  long entries;
};

template <class Op>
struct TreeSolve : ChainUnknowns<Op> {
  using Base = ChainUnknowns<Op>;
  using Base::F, Base::G, Base::is_free, Base::residual, Base::rhs, Base::tangent_once, Base::X;
  static constexpr int m = Op::n, n = Op::chain_unknowns;
  using B = Block<n>;
  static constexpr int R = B::R, V = B::V;
  static constexpr int in_X = (n + 1) * R, in_factors = 2 * n * R, in_border = 2 * n * R;
  static constexpr int in_element = 4 * n * n;
  typedef typename B::Row Row;
  typedef typename B::WideRow WideRow;

  raw *nodes, *factors, *border;  // [node]: X by columns; D⁻¹ by rows, L by columns; D⁻¹ B by
                                  // columns, C by rows

  const Tree& T;
  const long link_blocks;
  raw* solved;  // [node]: the solution at nodes that segments eliminate
  raw* found;   // [block][unknown]: the solution
  raw* link_r;  // [block of links][2m]
  double* elements;  // [segment][4][n][n], then of links [block][entry][lane]
  double *small, *less, *x,
      *more;  // right-hand side of the small system and what the segments' solutions take from it,
              // and its solution; [segment][2n]: of rows
  int in_fronts = 0;  // negative eigenvalues of the small system

  TreeSolve(const Run& run, Fields f, Outs g)
      : Base(run, f, g), T(*run.tree), link_blocks((run.blocks - run.chain_blocks) / 2) {
    static thread_local std::vector<raw> memory;
    const long places = Op::local ? 0 : run.chain_blocks * W;
    const size_t own =
                     places * (in_X + in_factors + R) + (T.bordered < T.count ? places * in_border : 0) +
                     (Op::local ? run.chain_blocks * n * n : 0),
                 vectors = run.blocks * (n + m) + link_blocks * (2 * m + Op::link_entries),
                 numbers = (T.count * (in_element + 4 * n) + T.size) / W + 4;
    if (memory.size() < own + vectors + numbers) memory.resize(own + vectors + numbers);
    nodes = memory.data();
    factors = nodes + places * in_X;
    solved = factors + places * in_factors;
    border = solved + places * R;
    rhs = nodes + own;
    found = rhs + run.blocks * n;
    for (long i = 0; i < run.blocks * m; ++i) found[i] = raw{};
    link_r = found + run.blocks * m;
    // The elements of links follow those of segments.
    elements = (double*)(link_r + link_blocks * 2 * m);
    more = elements + elements_of_segments() + link_blocks * Op::link_entries * W;
    x = more + T.count * 4 * n;
    less = T.small;
    small = less + T.size;
  }
  long elements_of_segments() const { return (T.count * in_element + W - 1) / W * W; }

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

  // A segment that is being eliminated: what its cells leave to the next ones, and the rows of the
  // nodes of a block of cells.
  struct Half {
    const Segment* s;
    long k;                      // the present block
    long lane, node, step;       // of the next node: its lane in the block, its number, and 1 or -1
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

  // Residual and tangent of the cells of block k; the rows of their nodes that are eliminated. Out of
  // line, or compiling takes a third longer.
  template <bool right>
  __attribute__((noinline)) void load(Half& __restrict h, long k, raw& __restrict sum) {
    const long last = h.s->last - 1;
    const raw own_mask = *(const raw*)(T.inner + k * W),
              next_mask = *(const raw*)(T.inner + (k + 1) * W);
    raw inner = right ? shifted_left(own_mask, next_mask) : own_mask;  // 1 at those nodes
#ifdef FDGEOM_RANKS
    // Other segments may have nodes in this block.
    const long least = h.s->back ? h.s->begin - h.s->count : h.s->begin - 1;
    const lane_mask number = lane_numbers + (k * W + right - least);
    inner = choose((number > 0) & (number <= h.s->count), inner, raw{});
#endif
    raw a[Op::tangent_carried], b[Op::tangent_carried], r[2 * n], J[4 * n * n];
    Op::tangent_node(X, F, G, right ? k : k + 1, tangent_once, a);
    for (int i = 0; i < Op::tangent_carried; ++i)
      b[i] = right ? shifted_left(a[i], h.a[i]) : shifted_left(h.a[i], a[i]);
    Op::tangent_cell(X, F, G, k, tangent_once, right ? a : h.a, b, r, J);
    for (int i = 0; i < Op::tangent_carried; ++i) h.a[i] = a[i];
    // The rows of the nodes that are eliminated, and of those after them.
    constexpr int own = right ? n : 0, far = right ? 0 : n;
    const long here = X.counts[k];
    const lane_mask cell = Base::cells_of(k);
    each<n>([&](int i) __attribute__((always_inline)) {
      r[i] = choose(cell, r[i], raw{});
      r[n + i] = choose(cell, r[n + i], raw{});
      raw both =
          right ? r[n + i] + shifted_left(r[i], h.r[i]) : r[i] + shifted_right(h.r[i], r[n + i]);
      h.r[i] = r[far + i];
      if (Op::source[i] >= 0) {
        both -= choose(inner > 0.5, Base::template source_at<right>(k, i), raw{});
        if (right && Op::in_cell[i] && k == last) both[here - 1] = 0.0;
      }
      raw counted = both;
      if (Op::held[i] >= 0) counted *= Base::template free_at<right>(k, i);
      counted *= inner;
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
    });
  }

  // The rows of the next node; U: [U r] and with a border B.
  template <int Q>
  FDGEOM_INLINE static void rows(const Half& h, Row* D, raw (*U)[Q]) {
    const long l = h.lane;
    each<n>([&](int i) __attribute__((always_inline)) {
#pragma GCC unroll 8
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
    });
  }
  // Keeps what is eliminated, and L X for the next node.
  template <int Q>
  FDGEOM_INLINE void keep(Half& h, const Row* D, const raw (*U)[Q]) {
    const long l = h.lane;
    raw *const f = factors + h.node * in_factors, *const b = border + h.node * in_border;
    each<n>([&](int i) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int v = 0; v < R; ++v) {
        f[i * R + v] = D[i][v];
        f[(n + i) * R + v] = h.l[i][v][l];
      }
    });
    each<n>([&](int i) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int v = 0; v < Q; ++v) {
        raw y = (raw{} + h.l[0][i / W][l][i % W]) * U[0][v];
#pragma GCC unroll 32
        for (int j = 1; j < n; ++j) y += (raw{} + h.l[j][i / W][l][i % W]) * U[j][v];
        if (v < V)
          h.P[i][v < V ? v : 0] = y;
        else
          h.PB[i][v < V ? 0 : v - V] = y;
      }
    });
    Row own[n];
    if constexpr (Q > V) {
      each<n>([&](int i) __attribute__((always_inline)) {
        raw y[Q];
        for (int v = 0; v < R; ++v) b[(n + i) * R + v] = h.C[i][v];
#pragma GCC unroll 16
        for (int v = 0; v < Q; ++v) {
          y[v] = (raw{} + h.C[i][0][0]) * U[0][v];
#pragma GCC unroll 32
          for (int j = 1; j < n; ++j) y[v] += (raw{} + h.C[i][j / W][j % W]) * U[j][v];
        }
        h.start[i] += y[n / W][n % W];
        for (int v = 0; v < V; ++v) h.C[i][v] = -y[v];
        for (int v = 0; v < R; ++v) {
          h.A[i][v] -= y[V + v];
          own[i][v] = U[i][V + v];
        }
      });
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
  FDGEOM_INLINE bool eliminate_nodes(Half* h) {
    Row D[S][n];
    raw U[S][n][Q];
    for (int s = 0; s < S; ++s) {
      rows<Q>(h[s], D[s], U[s]);
      hold<Q>(h[s].node, D[s], U[s]);
    }
    bool good = true;
    if constexpr (S == 1)
      good = B::template solve<Q>(D[0], U[0]);
    else if (__builtin_expect(B::template eliminate<S, Q>(D, U), 0))
      good = exchanged<S, Q>(h, D, U);
    for (int s = 0; s < S; ++s) keep<Q>(h[s], D[s], U[s]);
    return good;
  }
  template <int S, int Q>
  __attribute__((noinline)) bool exchanged(Half* h, Row (*D)[n], raw (*U)[n][Q]) {
    bool good = true;
    for (int s = 0; s < S; ++s) {
      rows<Q>(h[s], D[s], U[s]);
      hold<Q>(h[s].node, D[s], U[s]);
      good = B::template eliminate_pivoting<Q>(D[s], U[s]) && good;
    }
    return good;
  }
  // One node: out of line, since the code is large and most nodes go in pairs.
  template <int Q>
  __attribute__((noinline)) bool eliminate_one(Half& h) {
    return eliminate_nodes<1, Q>(&h);
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

  // Loads the block of the next node if it is another one; how many of `left` nodes are in it.
  __attribute__((noinline)) long reach(Half& h, long left, raw& sum) {
    if (h.lane < 0) {
      load<true>(h, --h.k, sum);
      h.lane = X.counts[h.k] - 1;
    } else if (h.lane == W) {
      load<false>(h, ++h.k, sum);
      h.lane = 0;
    }
    return std::min(left, h.step < 0 ? h.lane + 1 : W - h.lane);
  }
  void begin(Half& h, const Segment& s, raw& sum) {
    h.s = &s;
    h.node = s.begin;
    h.step = s.back ? -1 : 1;
    h.start = more + (&s - T.segments) * 4 * n + 3 * n;
    clear(h);
    const long node = s.start < 0 ? s.begin : s.start;
    h.k = s.back ? s.last - 1 : s.first;
    h.lane = s.back ? (node + W - 1) % W : node % W;
    Op::tangent_node(X, F, G, s.back ? s.last : s.first, tangent_once, h.a);
    if (s.back)
      load<true>(h, h.k, sum);
    else
      load<false>(h, h.k, sum);
    if (s.start < 0) return;
    // The first node stays: its rows, and what couples the next node with it.
    double* const r = more + (&s - T.segments) * 4 * n;
    const long l = h.lane;
    for (int i = 0; i < n; ++i) {
      for (int v = 0; v < R; ++v) {
        h.A[i][v] = h.d[i][v][l];
        h.C[i][v] = h.u[i][v][l];
      }
      for (int j = 0; j < n; ++j) h.PB[i][j / W][j % W] = -h.l[j][i / W][l][i % W];
      if (n % W) h.A[i][R - 1][n % W] = 0.0;
      r[n + i] = h.d[i][n / W][l][n % W];
      r[3 * n + i] = 0.0;
    }
    h.lane += h.step;
  }

  // Eliminates segments side by side, then what is left of the longer one.
  template <int Q>
  __attribute__((noinline)) bool segments(const Segment* s, int many, raw& sum) {
    Half both[2];
    bool good = true;
    long left[2] = {s[0].count, many > 1 ? s[1].count : 0};
    for (int i = 0; i < many; ++i) begin(both[i], s[i], sum);
    while (left[0] > 0 && left[1] > 0) {
      const long run = std::min(reach(both[0], left[0], sum), reach(both[1], left[1], sum));
      for (long j = 0; j < run; ++j) {
        good = eliminate_nodes<2, Q>(both) && good;
        for (Half& h : both) h.lane += h.step, h.node += h.step;
      }
      left[0] -= run;
      left[1] -= run;
    }
    for (int i = 0; i < many; ++i)
      while (left[i] > 0) {
        const long run = reach(both[i], left[i], sum);
        for (long j = 0; j < run; ++j) {
          good = eliminate_one<Q>(both[i]) && good;
          both[i].lane += both[i].step;
          both[i].node += both[i].step;
        }
        left[i] -= run;
      }
    for (int i = 0; i < many; ++i) end(both[i], sum);
    return good;
  }
  // What a segment gives to the small system.
  void end(Half& h, raw& sum) {
    const Segment& s = *h.s;
    const long lane = (s.target + (s.back ? 0 : W - 1)) % W, which = h.s - T.segments;
    double *const e = elements + which * in_element, *const r = more + which * 4 * n;
    for (int i = 0; i < n; ++i) {
      r[i] = h.r[i][lane];
      r[2 * n + i] = h.P[i][n / W][n % W];
      for (int j = 0; j < n; ++j) {
        const int v = j / W, c = j % W;
        e[i * n + j] = h.E[i * n + j][lane] - h.P[i][v][c];
        if (!Op::meets) continue;
        e[(n + i) * n + j] = -h.PB[i][v][c];
        e[(2 * n + i) * n + j] = h.C[i][v][c];
        e[(3 * n + i) * n + j] = h.A[i][v][c];
      }
    }
  }

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
      good = B::template solve<V>(D, U) && good;
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
      const bool done = plain ? segments<V>(q, many, sum)
                              : segments<Op::meets ? V + R : V>(q, many, sum);
      good = done && good;
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
        solve_node(node, before, t[node % W], y);
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
      substitute(nodes + node[i] * in_X, t[i], edge ? border + node[i] * in_border : nullptr, from[i]);
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
      if (T.inner[node] > 0.5) found += negative_at(node);
    for (long s = 0; s < T.alone; ++s)
      if (T.segments[s].closes) found += negative_at(T.segments[s].target);
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
