// Exchange of ghost values after solves, and agreement on failure. The process that loads this unit
// provides the functions and handles of PETSc and MPI.

namespace {

struct ExchangedField {
  void *sf, *unit;       // star forest of the space, MPI type of one node's values
  double *values;        // values as Firedrake keeps them, all local nodes
  int size;              // values a node
  long sends, ghosts;    // chain only: nodes that other ranks need, and own ghosts
  const int *send_at, *send_from, *ghost_at, *ghost_to;  // their numbers there and in the chain
  Field chain;
};

struct Exchange {
  int (*begin)(void *, void *, const void *, void *, void *);
  int (*end)(void *, void *, const void *, void *, void *);
  int (*allreduce)(const void *, void *, int, void *, void *, void *);
  void *replace, *integer, *minimum, *comm;
  const ExchangedField *fields;
};

inline void fdgeom_exchange(const Exchange *x, int which) {
  if (!x) return;
  const ExchangedField &f = x->fields[which];
#ifdef FDGEOM_CHAIN
  for (long s = 0; s < f.sends; ++s)
    for (int k = 0; k < f.size; ++k)
      f.values[(long)f.size * f.send_at[s] + k] = f.chain.p[k * f.chain.stride + f.send_from[s]];
#endif
  x->begin(f.sf, f.unit, f.values, f.values, x->replace);
  x->end(f.sf, f.unit, f.values, f.values, x->replace);
#ifdef FDGEOM_CHAIN
  for (long g = 0; g < f.ghosts; ++g)
    for (int k = 0; k < f.size; ++k)
      f.chain.p[k * f.chain.stride + f.ghost_to[g]] = f.values[(long)f.size * f.ghost_at[g] + k];
#endif
}

inline int fdgeom_agree(const Exchange *x, int reason) {
  int all = 0;
  x->allreduce(&reason, &all, 1, x->integer, x->minimum, x->comm);
  return all;
}

}  // namespace
