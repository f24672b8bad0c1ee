// Fields in blocks of W places, the calls of a step, and what the code of an operation consists of.
//
// Values lie as [block of W places][component][lane]. Chains lie one after another, each from the beginning
// of a block, its nodes in the order of the arc length; a cell has the place of its left node. Lanes after
// the last node of a chain are gaps: they repeat the last value before them (`pad`).
//
// emit.py writes a struct `Op` for each distinct operation. All its functions have the arguments
//   (const Run &X, Fields F, Outs G, long k, ...)
// where F are the fields that it reads (`ins`), G those that it writes (`outs`), and k the block.
// Constants of every struct:
//   ins, outs; in_sizes[]: components of each field that is read; at_nodes: whether it is done at the nodes
//   (else in the cells); gathers: cells give something to their nodes; in_cells: it writes values of cells
//   beside those of nodes; solves, checks, chain: see below.
// Functions, of W places at once:
//   store(b, u)                 writes its values; b: what cells give to the node, u: the unknowns
//   cell(ra, rb)                what each cell gives to its left and its right node: nb numbers (`gathers`)
//   cell_stores()               writes values of cells (`in_cells`)
// A solve at each place (`solves`, n unknowns, nw numbers that do not depend on them):
//   prepare(b, w), residual(w, u, R), tangent(w, b, u, J)
//   guess(u); hold(u, m)        sets prescribed unknowns and m = 0 there, 1 elsewhere (`held`)
//   solution(b, R, u)           by elimination, with the residual R at the guess (`affine`)
//   tangent_at_zero(J)          the tangent at u = 0 (`chord`: it depends on constants alone)
// In links (`links`), whose first nodes have the places of block k and second nodes those of block k + 1:
//   link(ra, rb), link_stores()
// A check (`checks`): value(b) and the constant limit(); sufficient() is negative at both nodes of cells that
// need no value (`skips`).
// On a general mesh (`sums`): sum_cells(sums), what cells give to their nodes; b is read from there.
// A solve that couples neighbours (`chain`): see chain_unknowns.hpp.
#include <vector>
#ifdef FDGEOM_RANKS
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace {

typedef double *const *Fields;
typedef double *const *Outs;

struct Place { double *p; long stride; };  // the field of a step: p + step * stride
struct Keep { int out; double *p; long stride, size; };  // a copy past the caches of what a call writes
struct Test;      // convergence.hpp
struct Tree;      // chain_lu.hpp
struct Exchange;  // below
struct Report {
  long solves, iterations, failed;  // failed: the place
  double norm;                      // of the residual
  // Of an update: its norm, that of ConvergenceTest.of, and the number of negative eigenvalues.
  double step, of;
  long negative;
};
struct NodeMap { const int *nodes; long total; };  // the nodes of each cell; how many nodes there are
struct Call {
  int op, ins, outs, keeps;
  double fraction, at;   // its length and its time, as parts of the step
  const Place *in, *out;
  const Keep *keep;
  const Exchange *exchange;  // after it: one for each kind of places
  long exchanges;
  const char *ghosts;    // 1 for each node of another rank; null on one rank
  const char *held;      // blocks with prescribed unknowns; null: none
  double *inverse;       // of the tangent at zero (`chord`), and whether it is there; null: none
  const Test *test;      // of a solve
  long extra_updates;    // after the convergence of a local one
  int old, inertia;      // of an update: take the factors of the last one; count negative eigenvalues
  const Tree *tree;      // its segments; null: one in scalars
  // On a general mesh: the places of the call, and the maps from cells to nodes.
  long blocks, cells;
  const int64_t *counts;  // null on chains
  const NodeMap *maps;
  double *sums;           // what cells give to nodes (`sums`), in blocks: so many numbers a place
  long given;
};
// A copy between a function and its field: dofs[place] is the number of its node (or cell). After the last
// one comes a copy without a field.
struct Copy { double *field, *values; const int *dofs; const int64_t *counts; long blocks, size; };
struct Run {
  const Call *calls;
  long count;                // calls of a step
  Report *reports;           // one for each call
  const double *const *C;    // constants
  long nodes, blocks;        // places up to the last node; blocks of places
  const int64_t *node_counts, *counts;  // nodes and cells in each block
  const double *mask;        // 1 at nodes of this rank
  const double *own_cells;   // 1 at cells of this rank
  double time, dt;           // of the step; in the functions of an operation its own
  long elapsed;              // so many steps after `time` the first one begins
  const double *inverse;     // of the present call; null: none
  const Exchange *exchange;  // null on one rank
  const char *ghosts;        // of the present call
  long cells;                // of the present call on a general mesh
  const NodeMap *maps;
  long chain_blocks;         // blocks of chains, before pairs of blocks of the links between them
  const long *shared; long sharing;  // nodes with several places: the number of places, then these
  const Tree *tree;          // of the present call; null: none
  const Copy *load, *store;  // before the first and after the last step; null: none
  int finite;                // whether all values of the last `store` were
};

// What an operation does not, unless its struct says otherwise.
struct Nothing {
  static constexpr bool at_nodes = false, gathers = false, in_cells = false, links = false, sums = false;
  static constexpr bool checks = false, skips = false, solves = false, affine = false, chord = false, held = false;
  static constexpr bool chain = false;
};

constexpr int inverse_size = 64;
constexpr int exceeded = -21;  // of a check; other failures are a `Reason`

FDGEOM_INLINE raw &at(double *p, long k, int c, int size) { return *(raw *)(p + (k * size + c) * W); }
// The same of the place after each.
FDGEOM_INLINE raw next(double *p, long k, int c, int size) { return shifted_left(at(p, k, c, size), at(p, k + 1, c, size)); }

// The same of the second nodes of links.
FDGEOM_INLINE raw after(double *p, long k, int c, int size) { return at(p, k + 1, c, size); }

// Fills the gaps of a block, in which `there` places are none.
FDGEOM_INLINE void pad(double *p, long k, long there, int size) {
  if (__builtin_expect(there == W, 1)) return;
  for (int c = 0; c < size; ++c) {
    double *x = p + (k * size + c) * W;
    const double last = there ? x[there - 1] : k ? x[W - 1 - W * size] : 0.0;
    for (long l = there; l < W; ++l) x[l] = last;
  }
}

// b of a block of nodes from what the cells on both sides give; `last` is what the cells before give.
template <class Op> FDGEOM_INLINE void gather(const Run &X, Fields F, Outs G, long k, raw *last, raw *b) {
  raw ra[Op::nb], rb[Op::nb];
  Op::cell(X, F, G, k, ra, rb);
  if (__builtin_expect(X.counts[k] < W, 0)) {
    const lane_mask there = first_lanes(X.counts[k]);
#pragma GCC unroll 64
    for (int i = 0; i < Op::nb; ++i) { ra[i] = choose(there, ra[i], raw{}); rb[i] = choose(there, rb[i], raw{}); }
  }
#pragma GCC unroll 64
  for (int i = 0; i < Op::nb; ++i) {
    b[i] = ra[i] + shifted_right(last[i], rb[i]);
    last[i] = rb[i];
  }
}

// What cells give to their nodes, in all blocks, where nodes have several places: each gets the sum.
template <class Op> FDGEOM_INLINE const raw *gather_all(const Run &X, Fields F, Outs G) {
  static thread_local std::vector<raw> memory;
  const size_t size = X.blocks * Op::nb;
  if (memory.size() < size) memory.resize(size);
  raw *const b = memory.data(), last[Op::nb];
  for (raw &x : last) x = raw{};
  for (long k = 0; k < X.chain_blocks; ++k) gather<Op>(X, F, G, k, last, b + k * Op::nb);
  for (long k = X.chain_blocks; k < X.blocks; k += 2) {
    for (int i = 0; i < 2 * Op::nb; ++i) b[k * Op::nb + i] = raw{};
    if constexpr (Op::links) Op::link(X, F, G, k, b + k * Op::nb, b + (k + 1) * Op::nb);
    for (int i = 0; i < 2 * Op::nb; ++i)
      for (long l = X.counts[k]; l < W; ++l) b[k * Op::nb + i][l] = 0.0;
  }
  const long *q = X.shared;
  for (long s = 0; s < X.sharing; ++s, q += 1 + *q)
    for (int i = 0; i < Op::nb; ++i) {
      double sum = 0.0;
      for (long m = 1; m <= *q; ++m) sum += b[q[m] / W * Op::nb + i][q[m] % W];
      for (long m = 1; m <= *q; ++m) b[q[m] / W * Op::nb + i][q[m] % W] = sum;
    }
  return b;
}

// Several ranks: values of ghosts from their owners, sums, and agreement on failures. FDGEOM_RANKS is defined
// if there are several.
//
// Another rank: places whose values it needs, places whose values it owns, and memory for both.
struct Neighbour { int rank; long sends, receives; const int *send, *receive; double *out, *in; };
struct Exchange {
  int64_t comm;
  int neighbours, ends;  // ends: 1 if values are exchanged at the first places, 2 at the last ones
  const Neighbour *with;
  const Keep *share;           // values whose ghosts are fetched; p null: not copied
  long shares;
  const int64_t *counts;       // of their places in each block
};

#ifdef FDGEOM_RANKS

constexpr bool several_ranks = true;

FDGEOM_INLINE double *at_place(double *p, long size, int place) { return p + place / W * size * W + place % W; }

// Values of other ranks, `width` numbers of a place: pack(place, out) writes those that another rank needs, and
// unpack(place, in) reads those that it sends. back: from ghosts to their owners.
template <class Pack, class Unpack> void with_neighbours(const Exchange &x, long width, bool back, Pack pack, Unpack unpack) {
  const auto comm = (MPI_Comm)(intptr_t)x.comm;
  std::vector<MPI_Request> requests(2 * x.neighbours);
  for (int n = 0; n < x.neighbours; ++n) {
    const Neighbour &to = x.with[n];
    const long sends = back ? to.receives : to.sends, receives = back ? to.sends : to.receives;
    MPI_Irecv(to.in, receives * width, MPI_DOUBLE, to.rank, 0, comm, &requests[2 * n]);
    for (long i = 0; i < sends; ++i) pack((back ? to.receive : to.send)[i], to.out + i * width);
    MPI_Isend(to.out, sends * width, MPI_DOUBLE, to.rank, 0, comm, &requests[2 * n + 1]);
  }
  MPI_Waitall(2 * x.neighbours, requests.data(), MPI_STATUSES_IGNORE);
  for (int n = 0; n < x.neighbours; ++n) {
    const Neighbour &from = x.with[n];
    for (long i = 0; i < (back ? from.sends : from.receives); ++i)
      unpack((back ? from.send : from.receive)[i], from.in + i * width);
  }
}

// Replaces the values of ghosts that a call has written at a step, also where it copies them to.
void exchange(const Call &call, const Exchange &x, long step) {
  const Keep *const end = x.share + x.shares;
  const auto values = [&](const Keep &s) { return call.out[s.out].p + step * call.out[s.out].stride; };
  long width = 0;
  for (const Keep *s = x.share; s != end; ++s) width += s->size / W;
  const auto pack = [&](int place, double *out) {
    for (const Keep *s = x.share; s != end; ++s) {
      const double *p = at_place(values(*s), s->size / W, place);
      for (long c = 0; c < s->size; c += W) *out++ = p[c];
    }
  };
  with_neighbours(x, width, false, pack, [&](int place, const double *in) {
    for (const Keep *s = x.share; s != end; ++s) {
      const long k = place / W;
      double *p = at_place(values(*s), s->size / W, place);
      for (long c = 0; c < s->size; c += W) p[c] = *in++;
      pad(values(*s), k, x.counts[k], s->size / W);
      if (s->p) std::memcpy(s->p + step * s->stride + k * s->size, values(*s) + k * s->size, s->size * sizeof(double));
    }
  });
}

void exchange(const Call &call, long step) {
  for (long i = 0; i < call.exchanges; ++i) exchange(call, call.exchange[i], step);
}

// Adds the sums of ghosts to those of their owners.
void add_ghosts(const Call &call) {
  if (!call.given || !call.exchanges) return;
  const long width = call.given;
  const auto pack = [&](int place, double *out) {
    for (long c = 0; c < width; ++c) out[c] = at_place(call.sums, width, place)[c * W];
  };
  with_neighbours(*call.exchange, width, true, pack, [&](int place, const double *in) {
    for (long c = 0; c < width; ++c) at_place(call.sums, width, place)[c * W] += in[c];
  });
}

FDGEOM_INLINE MPI_Comm ranks(const Run &X) { return (MPI_Comm)(intptr_t)X.exchange->comm; }

int agree(const Run &X, int reason) {
  int all = 0;
  MPI_Allreduce(&reason, &all, 1, MPI_INT, MPI_MIN, ranks(X));
  return all;
}
// Replaces numbers by their sums over ranks.
void sum_over_ranks(const Run &X, double *values, long many) {
  MPI_Allreduce(MPI_IN_PLACE, values, many, MPI_DOUBLE, MPI_SUM, ranks(X));
}
// Whether a number is the largest of all ranks; true on one rank alone.
bool is_largest(const Run &X, double value) {
  struct { double value; int rank; } own = {value, 0}, most;
  MPI_Comm_rank(ranks(X), &own.rank);
  MPI_Allreduce(&own, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, ranks(X));
  return most.rank == own.rank;
}

#else
constexpr bool several_ranks = false;
FDGEOM_INLINE void exchange(const Call &, long) {}
FDGEOM_INLINE void add_ghosts(const Call &) {}
FDGEOM_INLINE void sum_over_ranks(const Run &, double *, long) {}
FDGEOM_INLINE bool is_largest(const Run &, double) { return true; }
FDGEOM_INLINE int agree(const Run &, int reason) { return reason; }
#endif

}  // namespace
