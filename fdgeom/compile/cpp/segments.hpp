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
struct SegmentSolve : ChainUnknowns<Op> {
  using Base = ChainUnknowns<Op>;
  using Base::F, Base::G, Base::is_free, Base::tangent_once, Base::rhs, Base::X;
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

  SegmentSolve(const Run& run, Fields f, Outs g)
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
    const lane_mask number = lane_mask{1, 2, 3, 4, 5, 6, 7, 8} + (k * W + right - least - 1);
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
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
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

  // One node: out of line, since the code is large and most nodes go in pairs.
  template <int Q>
  __attribute__((noinline)) bool eliminate_one(Half& h) {
    return eliminate<1, Q>({&h, nullptr});
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
        good = eliminate<2, Q>({&both[0], &both[1]}) && good;
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
};

}  // namespace
