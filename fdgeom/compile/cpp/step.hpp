// Steps: their calls, block by block. Included after local.hpp (and newton.hpp, if a solve couples neighbours),
// before the structs of the operations. unit(X, op, call, step, begin, end, most), which emit.py writes, does
// `work<Op>` for the number of an operation.

#include <limits>
#include <vector>

namespace {

// A solve along a chain: newton.hpp.
template <class Op> int solve_chain(const Run &X, const Call &call, Fields F, Outs G, Report &report, int &most);

// Prefetches what the next step reads here.
template <class Op> FDGEOM_INLINE void prefetch(const Call &call, Fields F, long k) {
#pragma GCC unroll 16
  for (int j = 0; j < Op::ins; ++j)
    if (call.in[j].stride)
#pragma GCC unroll 8
      for (int c = 0; c < Op::in_sizes[j]; ++c) __builtin_prefetch(F[j] - call.in[j].stride + (k * Op::in_sizes[j] + c) * W, 0, 2);
}

// The places of the blocks begin..end, by themselves.
template <class Op> FDGEOM_INLINE int at_places(const Run &X, const Call &call, Fields F, Outs G, Report &report, long begin, long end, int &most) {
  raw b[Op::nb], last[Op::nb] = {};
  const raw *all = nullptr;
  if constexpr (Op::gathers) {
    if (X.sharing) all = gather_all<Op>(X, F, G);
    else if (begin > 0 && begin < end) gather<Op>(X, F, G, begin - 1, last, b);
  }
  if constexpr (Op::sums) {
    std::memset(call.sums, 0, X.blocks * Op::nb * W * sizeof(double));
    Op::sum_cells(X, F, call.sums);
    add_ghosts(call);
  }
  // Checks of cells are those of the chains.
  if constexpr (Op::checks && !Op::at_nodes) end = end < X.chain_blocks ? end : X.chain_blocks;
  bool apart = false;  // whether fields of steps lie apart
  for (int j = 0; j < Op::ins; ++j) apart |= call.in[j].stride != 0;
  bool passes = false;  // the nodes of block k, without the value of a check
  if constexpr (Op::skips) passes = begin < end && all_le(Op::sufficient(X, F, G, begin), raw{});
  for (long k = begin; k < end; ++k) {
    if (__builtin_expect(apart, 0)) prefetch<Op>(call, F, k);
    if constexpr (Op::gathers) {
      if (__builtin_expect(all != nullptr, 0))
        for (int i = 0; i < Op::nb; ++i) b[i] = all[k * Op::nb + i];
      else gather<Op>(X, F, G, k, last, b);
    }
    if constexpr (Op::sums)
      for (int i = 0; i < Op::nb; ++i) b[i] = at(call.sums, k, i, Op::nb);
    if constexpr (Op::in_cells) {
      if (k < X.chain_blocks) Op::cell_stores(X, F, G, k);
      if constexpr (Op::links) if (k >= X.chain_blocks && (k - X.chain_blocks) % 2 == 0) Op::link_stores(X, F, G, k);
    }
    if constexpr (Op::checks) {
      if constexpr (Op::skips) {
        const bool here = passes;
        passes = all_le(Op::sufficient(X, F, G, k + 1), raw{});
        if (__builtin_expect(here && passes, 1)) continue;
      }
      const raw value = Op::value(X, F, G, k, b);
      const long there = Op::at_nodes ? X.node_counts[k] : X.counts[k];
      if (__builtin_expect(!all_le(value, Op::limit()), 0))
        for (long l = 0; l < there; ++l)
          if (!(value[l] <= Op::limit())) { report.failed = k * W + l; report.norm = value[l]; return exceeded; }
    } else if constexpr (Op::solves) {
      const int found = solve_block<Op>(X, call, F, G, k, b, report);
      if (found < 0) return found;
      if (found > most) most = found;
    } else
      Op::store(X, F, G, k, b, nullptr);
  }
  return 0;
}

// An operation at the blocks begin..end of a step. Returns 0 or a `Reason`; `most`: Newton iterations.
template <class Op> __attribute__((noinline)) int work(const Run &X, const Call &call, Report &report, long step, long begin, long end, int &most) {
  double *F[Op::ins + 1], *G[Op::outs + 1];
  for (int j = 0; j < call.ins; ++j) F[j] = call.in[j].p + step * call.in[j].stride;
  for (int j = 0; j < call.outs; ++j) G[j] = call.out[j].p + step * call.out[j].stride;
  begin = begin < 0 ? 0 : begin;
  end = end < X.blocks ? end : X.blocks;
  if constexpr (Op::chain) {
    if (const int bad = solve_chain<Op>(X, call, F, G, report, most)) return bad;
  } else if (const int bad = at_places<Op>(X, call, F, G, report, begin, end, most))
    return bad;
  for (const Keep *q = call.keep; q != call.keep + call.keeps; ++q) {
    const double *from = G[q->out] + begin * q->size;
    double *to = q->p + step * q->stride + begin * q->size;
    const long many = begin < end ? (end - begin) * q->size : 0;
#ifdef FDGEOM_WIDE
    for (long i = 0; i < many; i += W) stream(to + i, *(const raw *)(from + i));
#else
    std::memcpy(to, from, many * sizeof(double));
#endif
  }
  return 0;
}

int unit(const Run &X, const Call &call, Report &report, long step, long begin, long end, int &most);
void invert(const Run &X, const Call &call);

// A long chain is taken through the calls of several steps block by block, while a block is in the cache.
// Each call stays a vector behind the one before, since it reads neighbours.
constexpr long block = 256 / W, most_calls = 128, everything = 1L << 60;

struct Steps {
  const Run &X;
  const long first, steps;
  const bool back;
  std::vector<Run> own;  // with the numbers of each call

  Steps(const Run &x, long f, long n, bool b) : X(x), first(f), steps(n), back(b), own(x.count, x) {
    for (long c = 0; c < X.count; ++c) {
      const Call &call = X.calls[c];
      own[c].dt = call.fraction * X.dt;
      own[c].time = X.time + (X.elapsed + call.at) * X.dt;
      invert(own[c], call);
      own[c].ghosts = call.ghosts;
      if (call.counts) {
        own[c].blocks = call.blocks;
        own[c].counts = own[c].node_counts = call.counts;
        own[c].cells = call.cells;
        own[c].maps = call.maps;
      }
      own[c].inverse = call.inverse && call.inverse[inverse_size] ? call.inverse : nullptr;
      own[c].tree = call.tree;
    }
  }
  long number(long s) const { return back ? steps - 1 - s : s; }
  // Call c of step s at some blocks.
  FDGEOM_INLINE int take(long s, long c, long begin, long end, int &most) {
    const Call &call = X.calls[c];
    const long step = number(s);
    own[c].time = X.time + (X.elapsed + step + call.at) * X.dt;  // the same for each division into calls
    return unit(own[c], call, X.reports[c], first + step, begin, end, most);
  }
  void fetch(long s, long c) { exchange(X.calls[c], first + number(s)); }
  void count(long c, int iterations) {
    X.reports[c].solves += 1;
    X.reports[c].iterations += iterations;
  }
  // One step; returns 0 or a failure of some rank, on that rank of the call `failed`. After a failure a rank
  // still exchanges values, since the others do.
  int one(long s, int *failed) {
    int bad = 0;
    for (long c = 0; c < X.count; ++c) {
      int most = 0;
      // In a solve that couples neighbours all ranks take part, or none.
      if (X.calls[c].tree) bad = agreed(bad, failed);
      if (bad) add_ghosts(X.calls[c]);
      else if ((bad = take(s, c, 0, everything, most))) *failed = c;
      if (bad && !X.exchange) return bad;
      fetch(s, c);
      count(c, most);
    }
    return agreed(bad, failed);
  }
  // The failure of all ranks; one with another reason has no failed call, so that reason and place agree.
  int agreed(int bad, int *failed) {
    const int all = agree(X, bad);
    if (bad != all) *failed = -1;
    return all;
  }
  // Steps s .. s + many - 1, block by block: on several ranks first at ends with ghosts, then from the left
  // to the right one.
  int blocked(long s, long many) {
    int most[most_calls] = {}, bad = 0;
    const long calls = many * X.count;
    const int ends = X.exchange ? X.exchange->ends : 0;
    const long right = ends & 2 ? X.blocks - block - calls : everything;
    long l = ends & 1 ? block + calls : 0;
    for (long k = 0; ends && k < calls; ++k) {
      const long i = s + k / X.count, c = k % X.count;
      if (!bad && ends & 1) bad = take(i, c, 0, l - k, most[k]);
      if (!bad && ends & 2) bad = take(i, c, right + k, everything, most[k]);
      fetch(i, c);
    }
    for (bool is_last = false; !is_last && !bad; l += block) {
      is_last = ends & 2 ? l + block > right : l - calls >= X.blocks;
      for (long i = 0, behind = 0; i < many; ++i)
        for (long c = 0; c < X.count && !bad; ++c, ++behind)
          bad = take(s + i, c, l ? l - behind : 0, !is_last ? l + block - behind : ends & 2 ? right + behind : everything, most[behind]);
    }
    for (long k = 0; k < calls; ++k) count(k % X.count, most[k]);
    return agree(X, bad);
  }
};

// Steps, whose fields are in the rows `first` and following of a trajectory, or backwards from the last row.
// Returns 0 or a `Reason`; `done`: steps before it, `failed`: its call. With `blocked` only the returned
// value is valid after a failure.
int advance(const Run &X, long first, long steps, bool back, bool blocked, long *done, int *failed) {
  *done = 0;
  Steps run(X, first, steps, back);
  blocked = blocked && X.count && X.count <= most_calls;
  while (*done < steps) {
    const long left = steps - *done, several = blocked ? most_calls / X.count : 1, many = left < several ? left : several;
    if (const int bad = blocked ? run.blocked(*done, many) : run.one(*done, failed)) return bad;
    *done += many;
  }
  return 0;
}

}  // namespace

extern "C" {

// Gaps get the value before them.
void fdgeom_load(const Copy *copies) {
  for (const Copy *q = copies; q->field; ++q)
    for (long k = 0; k < q->blocks; ++k)
      for (long c = 0; c < q->size; ++c)
        for (int l = 0; l < W; ++l)
          q->field[(k * q->size + c) * W + l] = q->values[q->dofs[k * W + l] * q->size + c];
}

// Returns whether all values are finite.
int fdgeom_store(const Copy *copies) {
  constexpr double largest = std::numeric_limits<double>::max();
  int finite = 1;
  for (const Copy *q = copies; q->field; ++q)
    for (long k = 0; k < q->blocks; ++k)
      for (long c = 0; c < q->size; ++c) {
        double *const field = q->field + (k * q->size + c) * W;
        const raw x = choose(first_lanes(q->counts[k]), *(const raw *)field, raw{});  // gaps may be anything
        finite &= all_le(x, largest) & all_le(lanes(-largest), x);
        for (int l = 0; l < q->counts[k]; ++l) q->values[q->dofs[k * W + l] * q->size + c] = field[l];
      }
  return finite;
}

int fdgeom_advance(Run *X, long first, long steps, int back, int blocked, long *done, int *failed) {
  if (X->load) fdgeom_load(X->load);
  const int bad = advance(*X, first, steps, back, blocked, done, failed);
  if (X->store && !bad) X->finite = fdgeom_store(X->store);
  return bad;
}
}
