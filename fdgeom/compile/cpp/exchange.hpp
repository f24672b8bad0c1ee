// Several ranks: values of ghosts from their owners, sums, and agreement on failures. FDGEOM_RANKS is defined if
// there are several. Included after fields.hpp.

#ifdef FDGEOM_RANKS
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <vector>
#endif

namespace {

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

// Values of other ranks: `pack(n, out)` and `unpack(n, in)` write and read those of a neighbour, and return
// where they end; `receives(n)` is how many numbers come from it.
template <class Pack, class Receives, class Unpack> void with_neighbours(const Exchange &x, Pack pack, Receives receives, Unpack unpack) {
  const auto comm = (MPI_Comm)(intptr_t)x.comm;
  std::vector<MPI_Request> requests(2 * x.neighbours);
  for (int n = 0; n < x.neighbours; ++n) {
    const Neighbour &to = x.with[n];
    MPI_Irecv(to.in, receives(to), MPI_DOUBLE, to.rank, 0, comm, &requests[2 * n]);
    MPI_Isend(to.out, pack(to, to.out) - to.out, MPI_DOUBLE, to.rank, 0, comm, &requests[2 * n + 1]);
  }
  MPI_Waitall(2 * x.neighbours, requests.data(), MPI_STATUSES_IGNORE);
  for (int n = 0; n < x.neighbours; ++n) unpack(x.with[n], x.with[n].in);
}

// Replaces the values of ghosts that a call has written at a step, also where it copies them to.
void exchange(const Call &call, const Exchange &x, long step) {
  const Keep *const end = x.share + x.shares;
  const auto values = [&](const Keep &s) { return call.out[s.out].p + step * call.out[s.out].stride; };
  const auto pack = [&](const Neighbour &to, double *out) {
    for (const Keep *s = x.share; s != end; ++s)
      for (long i = 0; i < to.sends; ++i) {
        const double *p = at_place(values(*s), s->size / W, to.send[i]);
        for (long c = 0; c < s->size; c += W) *out++ = p[c];
      }
    return out;
  };
  const auto receives = [&](const Neighbour &from) {
    long width = 0;
    for (const Keep *s = x.share; s != end; ++s) width += s->size / W;
    return from.receives * width;
  };
  with_neighbours(x, pack, receives, [&](const Neighbour &from, const double *in) {
    for (const Keep *s = x.share; s != end; ++s)
      for (long i = 0; i < from.receives; ++i) {
        const long k = from.receive[i] / W;
        double *p = at_place(values(*s), s->size / W, from.receive[i]);
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
  const auto pack = [&](const Neighbour &to, double *out) {
    for (long i = 0; i < to.receives; ++i) {
      const double *p = at_place(call.sums, width, to.receive[i]);
      for (long c = 0; c < width; ++c) *out++ = p[c * W];
    }
    return out;
  };
  const auto receives = [&](const Neighbour &from) { return from.sends * width; };
  with_neighbours(*call.exchange, pack, receives, [&](const Neighbour &from, const double *in) {
    for (long i = 0; i < from.sends; ++i) {
      double *p = at_place(call.sums, width, from.send[i]);
      for (long c = 0; c < width; ++c) p[c * W] += *in++;
    }
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
