// Unknowns and residual of a solve along chains. Included after fields.hpp.
//
// A block of the equations belongs to a node: its unknowns, then those of the cell after it. For a
// solve along a chain emit.py writes a struct `Op` with `chain` = true and these constants:
//   n                       unknowns of a block, at most 24
//   unknown[n]              where they are: a field that is written (`outs`), its component, its size
//   in_cell[n]              whether they are those of the cell after the node
//   held[n]                 the field read that is 1 where an unknown is prescribed and 0 where it is
//                           solved for (of the same size, in the same component); -1: solved for
//                           everywhere
//   source[n]               the field with the right-hand side in a transposed solve; -1: none
//   chain_unknowns          the first of the n, which the cells of chains couple; the others are those
//                           of links alone
//   small                   whether scalars solve the equations of one chain: small_chain.hpp
//   meets                   whether chains meet, at links or at the ends of ranks
//   restricted, transposed, affine   whether `held` or `in_cell` is used; `source`; one update solves
//                           the equations
//   update                  whether it is one update, which `Report` describes
//   of, of_size             the field that ConvergenceTest.of is, -1: none; its components
//   attempts[]              `Attempt`s
//   chooses, damps          whether the guess with the smaller residual is first; whether attempts are damped
// and functions for W cells at once, those of block k and their nodes A and B:
//   start(k, which)                     writes a guess
//   tangent_once(s), residual_once(s)   values of constants: tangent_same and residual_same numbers
//   tangent_node(k, s, a)               values of one node, for the cells on both sides:
//                                       tangent_carried numbers
//   tangent_cell(k, s, a, b, r, J)      2n residuals, and 2n × 2n derivatives, with a at A and b at B
//   residual_node(k, s, a), residual_cell(k, s, a, b, r)
#include <cmath>
#include <vector>

namespace {

struct Slot {
  int field, component, size;
};
struct Attempt {
  int start, must_contract, damped, max_it;  // max_it: 0 for that of the test
};

template <class Op>
struct ChainUnknowns {
  static constexpr int n = Op::n, unknowns = n;
  const Run& X;
  Fields F;
  Outs G;
  const long node_blocks;
  raw* rhs = nullptr;  // residuals of the last `evaluate`, [block][unknown]
  raw tangent_once[Op::tangent_same], residual_once[Op::residual_same];
  double residual = 0.0, step = 0.0, size = 0.0;  // norms of residual, update and unknown
  bool counts = false;                             // whether negative eigenvalues are counted

  ChainUnknowns(const Run& x, Fields f, Outs g) : X(x), F(f), G(g), node_blocks(x.blocks) {
    Op::tangent_once(X, F, G, 0, tangent_once);
    Op::residual_once(X, F, G, 0, residual_once);
  }
  void start(int which) {
    for (long k = 0; k < node_blocks; ++k) Op::start(X, F, G, k, which);
  }

  // Whether a node has an unknown: there may be no cell after it.
  FDGEOM_INLINE bool is_there(long node, int i) const {
    return !Op::in_cell[i] || node % W < X.counts[node / W];
  }
  FDGEOM_INLINE bool is_free(long node, int i) const {
    if (!is_there(node, i)) return false;
    if (Op::held[i] < 0) return true;
    return held(i)[place(node, i)] < 0.5;
  }
  FDGEOM_INLINE double* held(int i) const { return F[Op::held[i] < 0 ? 0 : Op::held[i]]; }
  FDGEOM_INLINE double* source(int i) const { return F[Op::source[i] < 0 ? 0 : Op::source[i]]; }
  // 1 where an unknown is solved for, and the right-hand side, at W nodes or the nodes after them.
  template <bool after = false>
  FDGEOM_INLINE raw free_at(long k, int i) const {
    return 1.0 - number<after>(held(i), k, i);
  }
  template <bool after = false>
  FDGEOM_INLINE raw source_at(long k, int i) const {
    return number<after>(source(i), k, i);
  }
  template <bool after>
  FDGEOM_INLINE static raw number(double* p, long k, int i) {
    const Slot u = Op::unknown[i];
    return after ? next(p, k, u.component, u.size) : at(p, k, u.component, u.size);
  }
  FDGEOM_INLINE double source_of(long node, int i) const {
    return is_there(node, i) ? source(i)[place(node, i)] : 0.0;
  }
  FDGEOM_INLINE static long place(long node, int i) {
    return (node / W * Op::unknown[i].size + Op::unknown[i].component) * W + node % W;
  }
  FDGEOM_INLINE raw& value(long k, int i) const {
    const Slot u = Op::unknown[i];
    return at(G[u.field], k, u.component, u.size);
  }

  // The cells of a block of chains that belong to this rank.
  FDGEOM_INLINE lane_mask cells_of(long k) const {
#ifdef FDGEOM_RANKS
    return *(const raw*)(X.own_cells + k * W) > 0.5;
#else
    return first_lanes(X.counts[k]);
#endif
  }
  // The residuals of the nodes of chains become `rhs`; returns the squares of those at nodes where
  // `inner` is 1, null: everywhere.
  FDGEOM_INLINE raw residuals(const double* inner) {
    constexpr int m = Op::chain_unknowns;
    raw r[2 * m], last[m] = {}, b[Op::residual_carried], sum = {};
    raw a[Op::residual_carried], after[Op::residual_carried];
    bool begins = true;
    for (long k = 0; k < X.chain_blocks; ++k) {
      const long here = X.counts[k];
      const lane_mask cell = cells_of(k);
      if (here > 0) {
        if (begins) Op::residual_node(X, F, G, k, residual_once, a);
        Op::residual_node(X, F, G, k + 1, residual_once, after);
        for (int i = 0; i < Op::residual_carried; ++i) b[i] = shifted_left(a[i], after[i]);
        Op::residual_cell(X, F, G, k, residual_once, a, b, r);
        for (int i = 0; i < Op::residual_carried; ++i) a[i] = after[i];
      }
      begins = here == 0;
      for (int i = 0; i < m; ++i) {
        r[i] = choose(cell, r[i], raw{});
        r[m + i] = choose(cell, r[m + i], raw{});
        raw both = r[i] + shifted_right(last[i], r[m + i]);
        if (Op::held[i] >= 0) both *= free_at(k, i);
        rhs[k * m + i] = both;
        if (inner) both *= *(const raw*)(inner + k * W);
        sum += both * both;
        last[i] = r[m + i];
      }
    }
    return sum;
  }

  // Subtracts an update d of block k, and adds to the squares of the norms.
  FDGEOM_INLINE void move(long k, const raw* d, raw& moved, raw& sizes) {
    for (int i = 0; i < n; ++i) {
      raw& u = value(k, i);
      u -= d[i];
      moved += d[i] * d[i] * there(k, i);
      const raw q = u * there(k, i);
      sizes += q * q;
    }
    pad_block(k);
  }
  void norms(raw moved, raw sizes) {
    double squares[] = {total(moved), total(sizes)};
    sum_over_ranks(X, squares, 2);
    step = std::sqrt(squares[0]);
    size = std::sqrt(squares[1]);
  }
  // The norm over all ranks.
  double root(raw squares) const {
    double sum = total(squares);
    sum_over_ranks(X, &sum, 1);
    return std::sqrt(sum);
  }
  void pad_block(long k) const {
    for (int i = 0; i < n; ++i)
      if (const Slot u = Op::unknown[i]; u.component == 0)
        pad(G[u.field], k, Op::in_cell[i] ? X.counts[k] : X.node_counts[k], u.size);
  }
  // 1 where there is a value of an unknown that belongs to this rank.
  FDGEOM_INLINE raw there(long k, int i) const {
    return *(const raw*)((Op::in_cell[i] ? X.own_cells : X.mask) + k * W);
  }

  double norm() const {
    raw sum = {};
    for (long k = 0; k < node_blocks; ++k)
      for (int i = 0; i < n; ++i) {
        const raw q = value(k, i) * there(k, i);
        sum += q * q;
      }
    return root(sum);
  }
  // The norm of ConvergenceTest.of.
  double norm_of() const {
    raw sum = {};
    if constexpr (Op::of >= 0)
      for (long k = 0; k < node_blocks; ++k)
        for (int i = 0; i < Op::of_size; ++i) {
          const raw q = at(F[Op::of], k, i, Op::of_size) * *(const raw*)(X.mask + k * W);
          sum += q * q;
        }
    return root(sum);
  }

  // Unknowns that a line search begins with, and may move from: u = saved - λ d.
  void save(raw* saved) const {
    for (long k = 0; k < node_blocks; ++k)
      for (int i = 0; i < n; ++i) saved[k * n + i] = value(k, i);
  }
  void put(const raw* saved, double length, const raw* d) {
    raw moved = {}, sizes = {};
    for (long k = 0; k < node_blocks; ++k) {
      for (int i = 0; i < n; ++i) value(k, i) = saved[k * n + i];
      raw part[n];
      for (int i = 0; i < n; ++i) part[i] = length * d[k * n + i];
      move(k, part, moved, sizes);
    }
    size = root(sizes);
  }
};

}  // namespace
