// Copies of functions from Firedrake's storage into the order of the chain, and back.

namespace {

struct Copy {
  Field chain;
  double *values;
  const int *order;  // the place of each node of the chain among the values; null: the same
  int size;          // values a node
};

constexpr long padding = 16;  // as in layout.py

// Calls each(value, its place in the chain) for blocks of nodes that fit into the first cache.
template <class F> inline void every_value(const Copy &c, F each) {
  const long n = c.chain.count, size = c.size, some = 64;
  for (long i = 0; i < n; i += some) {
    const long end = i + some < n ? i + some : n;
    for (long k = 0; k < size; ++k) {
      double *row = c.chain.p + k * c.chain.stride;
      if (c.order)
        for (long j = i; j < end; ++j) each(c.values[size * c.order[j] + k], row[j]);
      else
        for (long j = i; j < end; ++j) each(c.values[size * j + k], row[j]);
    }
  }
}

}  // namespace

extern "C" {

// The padding repeats the values at the ends.
void fdgeom_copy_in(const Copy *copies, int many) {
  for (const Copy *c = copies; c < copies + many; ++c) {
    every_value(*c, [](double value, double &place) { place = value; });
    const long n = c->chain.count;
    for (int k = 0; k < c->size; ++k) {
      double *row = c->chain.p + k * c->chain.stride;
      for (long l = 0; l < padding; ++l) { row[-1 - l] = row[0]; row[n + l] = row[n - 1]; }
    }
  }
}

void fdgeom_copy_out(const Copy *copies, int many) {
  for (const Copy *c = copies; c < copies + many; ++c)
    every_value(*c, [](double &value, double place) { value = place; });
}
}
