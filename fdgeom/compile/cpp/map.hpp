// General meshes: values of the nodes of cells, found through maps. Included after fields.hpp.
//
// TSFC's kernels are templates of the type of numbers: `vec` for W cells at once, `double` where they branch.

namespace {

// A vector with conversion from numbers, which the kernels assign.
struct vec {
  raw v;
  vec() = default;
  vec(double s) : v(raw{} + s) {}
  vec(raw r) : v(r) {}
};
FDGEOM_INLINE vec operator+(vec a, vec b) { return a.v + b.v; }
FDGEOM_INLINE vec operator-(vec a, vec b) { return a.v - b.v; }
FDGEOM_INLINE vec operator*(vec a, vec b) { return a.v * b.v; }
FDGEOM_INLINE vec operator/(vec a, vec b) { return a.v / b.v; }
FDGEOM_INLINE vec operator-(vec a) { return -a.v; }
FDGEOM_INLINE vec &operator+=(vec &a, vec b) { a.v += b.v; return a; }
#define FDGEOM_VEC1(f) FDGEOM_INLINE vec f(vec a) { return f(a.v); }
FDGEOM_VEC1(fabs) FDGEOM_VEC1(sqrt) FDGEOM_VEC1(sin) FDGEOM_VEC1(cos) FDGEOM_VEC1(tan)
FDGEOM_VEC1(asin) FDGEOM_VEC1(acos) FDGEOM_VEC1(atan) FDGEOM_VEC1(exp) FDGEOM_VEC1(log)
FDGEOM_VEC1(sinh) FDGEOM_VEC1(cosh) FDGEOM_VEC1(tanh) FDGEOM_VEC1(erf)
FDGEOM_INLINE vec pow(vec a, vec b) { return pow(a.v, b.v); }
FDGEOM_INLINE vec atan2(vec a, vec b) { return atan2(a.v, b.v); }
FDGEOM_LANES2(fmin) FDGEOM_LANES2(fmax)
FDGEOM_INLINE vec fmin(vec a, vec b) { return fmin(a.v, b.v); }
FDGEOM_INLINE vec fmax(vec a, vec b) { return fmax(a.v, b.v); }
using std::fabs; using std::sqrt; using std::sin; using std::cos; using std::tan; using std::asin;
using std::acos; using std::atan; using std::exp; using std::log; using std::sinh; using std::cosh;
using std::tanh; using std::erf; using std::pow; using std::atan2; using std::fmin; using std::fmax;

template <class T> struct lanes_of { static constexpr int count = 1; };
template <> struct lanes_of<vec> { static constexpr int count = W; };
template <> struct lanes_of<raw> { static constexpr int count = W; };
FDGEOM_INLINE void put(vec &a, int l, double x) { a.v[l] = x; }
FDGEOM_INLINE void put(double &a, int, double x) { a = x; }
FDGEOM_INLINE void put(raw &a, int l, double x) { a[l] = x; }
FDGEOM_INLINE double get(const vec &a, int l) { return a.v[l]; }
FDGEOM_INLINE double get(const double &a, int) { return a; }
// A vector of W cells as a number of the kernels, from lane l on, and back.
FDGEOM_INLINE void from_lanes(vec &to, raw from, int) { to.v = from; }
FDGEOM_INLINE void from_lanes(double &to, raw from, int l) { to = from[l]; }
FDGEOM_INLINE void to_lanes(raw &to, vec from, int) { to = from.v; }
FDGEOM_INLINE void to_lanes(raw &to, double from, int l) { to[l] = from; }

FDGEOM_INLINE double *node(double *p, int n, int size) { return p + (long)(unsigned(n) / W) * size * W + unsigned(n) % W; }

// The values at the ND nodes of the cells c, c + 1, ...; beyond the last cell those of the last one.
template <int ND, int BS, class T> FDGEOM_INLINE void gather_cells(T *to, double *p, const NodeMap &m, long c, long cells) {
  for (int l = 0; l < lanes_of<T>::count; ++l) {
    const int *n = m.nodes + ND * (c + l < cells ? c + l : cells - 1);
    for (int a = 0; a < ND; ++a) {
      const double *x = node(p, n[a], BS);
      for (int k = 0; k < BS; ++k) put(to[a * BS + k], l, x[k * W]);
    }
  }
}

// Adds to BS of the `size` numbers of each node, from the first one on.
template <int ND, int BS, class T> FDGEOM_INLINE void add_to_nodes(double *p, int first, int size, const NodeMap &m, long c, long cells, const T *from) {
  for (int l = 0; l < lanes_of<T>::count && c + l < cells; ++l)
    for (int a = 0; a < ND; ++a) {
      double *x = node(p, m.nodes[ND * (c + l) + a], size) + first * W;
      for (int k = 0; k < BS; ++k) x[k * W] += get(from[a * BS + k], l);
    }
}

// Sets the values at the nodes of the W cells of a block; the gaps after the last node repeat it.
template <int ND, int BS> FDGEOM_INLINE void put_in_cells(double *p, const NodeMap &m, long c, long cells, const raw *from) {
  for (int l = 0; l < W && c + l < cells; ++l)
    for (int a = 0; a < ND; ++a) {
      const int n = m.nodes[ND * (c + l) + a];
      const int places = n + 1 == m.total ? W - n % W : 1;
      for (int k = 0; k < BS; ++k)
        for (int g = 0; g < places; ++g) node(p, n, BS)[k * W + g] = from[a * BS + k][l];
    }
}

}  // namespace
