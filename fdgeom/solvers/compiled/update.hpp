// Values of functions as Firedrake keeps them, for an update node by node. Included after simd.hpp.

namespace {

struct Field { double *p; long count; };  // count: how many nodes

struct Context {
  const Field *F;      // functions
  double *const *C;    // constants
};

template <int BS, class T> inline void node_load(T *w, Field f, long i) {
  for (int l = 0; l < lanes<T>::count; ++l) {
    const double *p = f.p + BS * (i + l < f.count ? i + l : f.count - 1);
    for (int k = 0; k < BS; ++k) put(w[k], l, p[k]);
  }
}
template <int BS, class T> inline void node_store(Field f, long i, const T *w) {
  for (int l = 0; l < lanes<T>::count && i + l < f.count; ++l)
    for (int k = 0; k < BS; ++k) f.p[BS * (i + l) + k] = get(w[k], l);
}

}  // namespace
