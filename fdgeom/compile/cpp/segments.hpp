// Block LU of the equations along chains that meet at nodes. Included after elimination.hpp
// and fronts.hpp.
//
// The nodes of a segment of a chain are eliminated towards its end, the target. Where the segment
// begins at a node that other segments or links share, its nodes have a border: they also couple with
// that one. Two segments are eliminated side by side: two recurrences whose latencies overlap.
// Targets, nodes at links and their multipliers form a small system (fronts.hpp). Chains without
// links are solved one by one, while they are in the cache: two segments end at the middle node,
// which closes the chain. Where cells couple no nodes (`local`), `factors` has D, [block][n][n].

namespace {

// emit_chain.py orders the unknowns: first the `chain_unknowns` that the cells of chains couple,
// then those of links alone. Further functions of an `Op`:
//   link_tangent(k, r, J), link_residual(k, r)   of W links: 2n residuals, and `link_entries`
//   derivatives
// and the constants `chain_unknowns` and `local`: whether the cells of chains couple no nodes. Then
// segments are single nodes, `tangent_cell` gives the matrices of both nodes alone, `couples` tells
// which entries they have, and solve_node(k, D, r, x) solves D x = r.
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
struct SegmentSolve : Elimination<Op> {
  using Base = ChainUnknowns<Op>;
  using Parts = Elimination<Op>;
  using Base::F, Base::G, Base::residual, Base::rhs, Base::tangent_once, Base::residual_once,
      Base::X;
  using Base::pad_block, Base::place, Base::value;
  using Parts::border, Parts::cells_of, Parts::factors, Parts::is_free, Parts::nodes;
  static constexpr int m = Op::n, n = Parts::n;
  using B = Block<n>;
  using typename Parts::Half, typename Parts::Row, typename Parts::WideRow;
  using Parts::in_border, Parts::in_factors, Parts::in_X, Parts::R, Parts::V;
  static constexpr int in_element = 4 * n * n;

  const Tree& T;
  const long link_blocks;
  raw* found;   // [block][unknown]: the solution
  raw* link_r;  // [block of links][2m]
  double* elements;  // [segment][4][n][n], then of links [block][entry][lane]
  double *small, *less, *x,
      *more;  // right-hand side of the small system and what the segments' solutions take from it,
              // and its solution; [segment][2n]: of rows

  SegmentSolve(const Run& run, Fields f, Outs g)
      : Parts(run, f, g), T(*run.tree), link_blocks((run.blocks - run.chain_blocks) / 2) {
    static thread_local std::vector<raw> memory;
    const long places = Op::local ? 0 : run.chain_blocks * W;
    const size_t own =
                     places * (in_X + in_factors) + (T.bordered < T.count ? places * in_border : 0) +
                     (Op::local ? run.chain_blocks * n * n : 0),
                 vectors = run.blocks * (n + m) + link_blocks * (2 * m + Op::link_entries),
                 numbers = (T.count * (in_element + 4 * n) + T.size) / W + 4;
    if (memory.size() < own + vectors + numbers) memory.resize(own + vectors + numbers);
    nodes = memory.data();
    factors = nodes + places * in_X;
    border = factors + places * in_factors;
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

  struct SegmentHalf : Half {
    const Segment* s;
    long k;  // the present block
  };
  template <bool right>
  void load(SegmentHalf& h, long k, raw& sum) {
    const raw own_mask = *(const raw*)(T.inner + k * W),
              next_mask = *(const raw*)(T.inner + (k + 1) * W);
    raw inner = right ? shifted_left(own_mask, next_mask) : own_mask;
#ifdef FDGEOM_RANKS
    // Other segments may have nodes in this block.
    const long least = h.s->back ? h.s->begin - h.s->count : h.s->begin - 1;
    const lane_mask number = lane_mask{1, 2, 3, 4, 5, 6, 7, 8} + (k * W + right - least - 1);
    inner = choose((number > 0) & (number <= h.s->count), inner, raw{});
#endif
    Parts::template load<right>(h, k, inner, h.s->last - 1, sum);
  }

  // Loads the block of the next node if it is another one.
  FDGEOM_INLINE void reach(SegmentHalf& h, raw& sum) {
    if (h.s->back) {
      if (h.lane < 0) {
        load<true>(h, --h.k, sum);
        h.lane = X.counts[h.k] - 1;
      }
    } else if (h.lane == W) {
      load<false>(h, ++h.k, sum);
      h.lane = 0;
    }
  }
  FDGEOM_INLINE static void pass(SegmentHalf& h) {
    const long d = h.s->back ? -1 : 1;
    h.lane += d;
    h.node += d;
  }
  void begin(SegmentHalf& h, const Segment& s, raw& sum) {
    h.s = &s;
    h.node = s.begin;
    h.start = more + (&s - T.segments) * 4 * n + 3 * n;
    Parts::clear(h);
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
    h.lane += s.back ? -1 : 1;
  }

  // Eliminates S segments side by side, then what is left of the longer one.
  template <int Q>
  __attribute__((noinline)) bool segments(const Segment* s, int many, raw& sum) {
    SegmentHalf both[2];
    Half* const pair[2] = {both, both + 1};
    bool good = true;
    long left[2] = {s[0].count, many > 1 ? s[1].count : 0};
    for (int i = 0; i < many; ++i) begin(both[i], s[i], sum);
    for (; left[0] > 0 && left[1] > 0; --left[0], --left[1]) {
      reach(both[0], sum);
      reach(both[1], sum);
      good = this->template eliminate<2, Q>(pair) && good;
      pass(both[0]);
      pass(both[1]);
    }
    for (int i = 0; i < many; ++i) {
      Half* const one[2] = {both + i, nullptr};
      for (; left[i] > 0; --left[i]) {
        reach(both[i], sum);
        good = this->template eliminate<1, Q>(one) && good;
        pass(both[i]);
      }
    }
    for (int i = 0; i < many; ++i) end(both[i], sum);
    return good;
  }
  // What a segment gives to the small system.
  void end(SegmentHalf& h, raw& sum) {
    const Segment& s = *h.s;
    const long lane = (s.target + (s.back ? 0 : W - 1)) % W, which = h.s - T.segments;
    double *const e = elements + which * in_element, *const r = more + which * 4 * n;
    for (int i = 0; i < n; ++i) {
      r[i] = h.r[i][lane];
      r[2 * n + i] = h.P[i][n / W][n % W];
      for (int j = 0; j < n; ++j) {
        const int v = j / W, c = j % W;
        e[i * n + j] = h.E[i * n + j][lane] - h.P[i][v][c];
        e[(n + i) * n + j] = -h.PB[i][v][c];
        e[(2 * n + i) * n + j] = h.C[i][v][c];
        e[(3 * n + i) * n + j] = h.A[i][v][c];
      }
    }
  }
};

}  // namespace
