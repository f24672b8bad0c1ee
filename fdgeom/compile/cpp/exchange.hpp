// Several ranks: values of ghosts from their owners, and agreement on failures. FDGEOM_RANKS is defined if
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
};

#ifdef FDGEOM_RANKS

// Replaces the values of ghosts that a call has written at a step, also where it copies them to.
void exchange(const Run &X, const Call &call, long step) {
  if (!call.shares) return;
  const Exchange &x = *call.exchange;
  const auto comm = (MPI_Comm)(intptr_t)x.comm;
  const auto values = [&](const Keep &s) { return call.out[s.out].p + step * call.out[s.out].stride; };
  const auto of_place = [](double *p, const Keep &s, int place) { return p + place / W * s.size + place % W; };
  std::vector<MPI_Request> requests(2 * x.neighbours);
  long width = 0;
  for (const Keep *s = call.share; s != call.share + call.shares; ++s) width += s->size / W;
  for (int n = 0; n < x.neighbours; ++n) {
    const Neighbour &to = x.with[n];
    double *out = to.out;
    for (const Keep *s = call.share; s != call.share + call.shares; ++s)
      for (long i = 0; i < to.sends; ++i) {
        const double *p = of_place(values(*s), *s, to.send[i]);
        for (long c = 0; c < s->size; c += W) *out++ = p[c];
      }
    MPI_Irecv(to.in, to.receives * width, MPI_DOUBLE, to.rank, 0, comm, &requests[2 * n]);
    MPI_Isend(to.out, to.sends * width, MPI_DOUBLE, to.rank, 0, comm, &requests[2 * n + 1]);
  }
  MPI_Waitall(2 * x.neighbours, requests.data(), MPI_STATUSES_IGNORE);
  for (int n = 0; n < x.neighbours; ++n) {
    const Neighbour &from = x.with[n];
    const double *in = from.in;
    for (const Keep *s = call.share; s != call.share + call.shares; ++s)
      for (long i = 0; i < from.receives; ++i) {
        const int place = from.receive[i];
        double *p = of_place(values(*s), *s, place);
        for (long c = 0; c < s->size; c += W) p[c] = *in++;
        pad(values(*s), place / W, X.node_counts[place / W], s->size / W);
        if (s->p) std::memcpy(s->p + step * s->stride + place / W * s->size, values(*s) + place / W * s->size, s->size * sizeof(double));
      }
  }
}
int agree(const Run &X, int reason) {
  int all = 0;
  MPI_Allreduce(&reason, &all, 1, MPI_INT, MPI_MIN, (MPI_Comm)(intptr_t)X.exchange->comm);
  return all;
}

#else
FDGEOM_INLINE void exchange(const Run &, const Call &, long) {}
FDGEOM_INLINE int agree(const Run &, int reason) { return reason; }
#endif

}  // namespace
