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
