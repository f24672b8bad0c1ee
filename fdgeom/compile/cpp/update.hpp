// Values of functions as Firedrake keeps them, for assignments node by node. Included after lanes.hpp.

namespace {

// count: how many nodes.
struct NodalValues { double *p; long count; };

template <int N> inline void load_nodes(raw *w, const NodalValues &f, long i) {
  for (int l = 0; l < W; ++l) {
    const double *p = f.p + N * (i + l < f.count ? i + l : f.count - 1);
    for (int k = 0; k < N; ++k) w[k][l] = p[k];
  }
}
template <int N> inline void store_nodes(const NodalValues &f, long i, const raw *w) {
  for (int l = 0; l < W && i + l < f.count; ++l)
    for (int k = 0; k < N; ++k) f.p[N * (i + l) + k] = w[k][l];
}

}  // namespace
