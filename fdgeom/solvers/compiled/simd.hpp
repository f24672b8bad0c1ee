// Vectors of W doubles.
#include <cmath>
#include <cstdint>
#include <cstring>

#ifndef FDGEOM_WIDTH
#if defined(__AVX512F__) || defined(__AVX__)
#define FDGEOM_WIDTH 8
#else
#define FDGEOM_WIDTH 4
#endif
#endif

// Inlined, since calls would pass vectors through memory.
#define FDGEOM_INLINE __attribute__((always_inline)) inline

namespace {

constexpr int W = FDGEOM_WIDTH;

#if FDGEOM_WIDTH == 8 && defined(__AVX512F__)
#define FDGEOM_WIDE
#endif

#if FDGEOM_WIDTH > 1
typedef double raw __attribute__((vector_size(8 * FDGEOM_WIDTH)));
typedef double raw_unaligned __attribute__((vector_size(8 * FDGEOM_WIDTH), aligned(8), may_alias));

struct vec {
  raw v;
  vec() = default;
  vec(double s) : v(raw{} + s) {}
  vec(raw r) : v(r) {}
  double operator[](int l) const { return v[l]; }
};
inline vec operator+(vec a, vec b) { return a.v + b.v; }
inline vec operator-(vec a, vec b) { return a.v - b.v; }
inline vec operator*(vec a, vec b) { return a.v * b.v; }
inline vec operator/(vec a, vec b) { return a.v / b.v; }
inline vec operator-(vec a) { return -a.v; }
inline vec &operator+=(vec &a, vec b) { a.v += b.v; return a; }
inline vec &operator-=(vec &a, vec b) { a.v -= b.v; return a; }
inline vec &operator*=(vec &a, vec b) { a.v *= b.v; return a; }
inline vec fabs(vec a) { return a.v < 0 ? -a.v : a.v; }

// A few instructions of AVX-512: GCC needs half a second to read the whole of immintrin.h.
#if defined(FDGEOM_WIDE) && !defined(__clang__)
inline raw wide_sqrt(raw a) { return __builtin_ia32_sqrtpd512_mask(a, a, -1, 4); }
inline int wide_le(raw a, raw b) { return (unsigned char)__builtin_ia32_cmppd512_mask(a, b, 18, -1, 4); }
inline int wide_equal(int there, raw a, raw b) { return (unsigned char)__builtin_ia32_cmppd512_mask(a, b, 0, there, 4); }
inline raw wide_load(int there, const double *p) { return __builtin_ia32_loadupd512_mask(p, raw{}, there); }
inline void wide_store(int there, double *p, raw a) { __builtin_ia32_storeupd512_mask(p, a, there); }
inline void wide_stream(double *p, raw a) { __builtin_ia32_movntpd512(p, a); }
#elif defined(FDGEOM_WIDE)
}  // namespace
#include <immintrin.h>
namespace {
inline raw wide_sqrt(raw a) { return (raw)_mm512_sqrt_pd((__m512d)a); }
inline int wide_le(raw a, raw b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LE_OQ); }
inline int wide_equal(int there, raw a, raw b) { return _mm512_mask_cmp_pd_mask(there, (__m512d)a, (__m512d)b, _CMP_EQ_OQ); }
inline raw wide_load(int there, const double *p) { return (raw)_mm512_maskz_loadu_pd(there, p); }
inline void wide_store(int there, double *p, raw a) { _mm512_mask_storeu_pd(p, there, (__m512d)a); }
inline void wide_stream(double *p, raw a) { _mm512_stream_pd(p, (__m512d)a); }
#endif

// One instruction if there is one: a loop over lanes passes the vector through memory, and stalls.
inline vec sqrt(vec a) {
#ifdef FDGEOM_WIDE
  return wide_sqrt(a.v);
#else
  vec r;
  for (int l = 0; l < W; ++l) r.v[l] = std::sqrt(a.v[l]);
  return r;
#endif
}

#define FDGEOM_LANES1(f) \
  inline vec f(vec a) { vec r; for (int l = 0; l < W; ++l) r.v[l] = std::f(a.v[l]); return r; }
FDGEOM_LANES1(sin) FDGEOM_LANES1(cos) FDGEOM_LANES1(tan)
FDGEOM_LANES1(asin) FDGEOM_LANES1(acos) FDGEOM_LANES1(atan) FDGEOM_LANES1(exp)
FDGEOM_LANES1(log) FDGEOM_LANES1(sinh) FDGEOM_LANES1(cosh) FDGEOM_LANES1(tanh)
FDGEOM_LANES1(erf)
#define FDGEOM_LANES2(f) \
  inline vec f(vec a, vec b) { vec r; for (int l = 0; l < W; ++l) r.v[l] = std::f(a.v[l], b.v[l]); return r; }
FDGEOM_LANES2(pow) FDGEOM_LANES2(atan2) FDGEOM_LANES2(fmin) FDGEOM_LANES2(fmax)

inline vec load(const double *p, vec *) { return vec(*(const raw_unaligned *)p); }
inline void store(double *p, vec a) { *(raw_unaligned *)p = a.v; }
// Whether a ≤ b in every lane; false for a NaN.
inline bool all_le(vec a, vec b) {
#ifdef FDGEOM_WIDE
  return wide_le(a.v, b.v) == 255;
#else
  auto m = a.v <= b.v;
  int64_t every = -1;
  for (int l = 0; l < W; ++l) every &= m[l];
  return every != 0;
#endif
}
// a where `there` is 1, zero elsewhere, even if a is not finite.
inline vec where(vec there, vec a) { return there.v > 0.5 ? a.v : raw{}; }
// `open` where a > b or one of them is NaN, zero elsewhere.
inline vec above(vec a, vec b, vec open) { return a.v <= b.v ? raw{} : open.v; }
inline double get(vec a, int l) { return a.v[l]; }
inline void put(vec &a, int l, double x) { a.v[l] = x; }
// The last lane of one vector, followed by all but the last lane of the next.
inline vec shifted(vec before, vec now) {
#ifdef __clang__
  vec r;
  for (int l = 0; l < W; ++l) r.v[l] = l ? now.v[l - 1] : before.v[W - 1];
  return r;
#else
  typedef int64_t places __attribute__((vector_size(8 * FDGEOM_WIDTH)));
  places p;
  for (int l = 0; l < W; ++l) p[l] = W - 1 + l;
  return __builtin_shuffle(before.v, now.v, p);
#endif
}
template <class T> struct lanes { static constexpr int count = 1; };
template <> struct lanes<vec> { static constexpr int count = W; };
#else
typedef double vec;
template <class T> struct lanes { static constexpr int count = 1; };
#endif

using std::fabs; using std::sqrt; using std::sin; using std::cos; using std::tan; using std::asin;
using std::acos; using std::atan; using std::exp; using std::log; using std::sinh; using std::cosh;
using std::tanh; using std::erf; using std::pow; using std::atan2; using std::fmin; using std::fmax;

inline double load(const double *p, double *) { return *p; }
inline void store(double *p, double a) { *p = a; }
inline bool all_le(double a, double b) { return a <= b; }
inline double where(double there, double a) { return there > 0.5 ? a : 0.0; }
inline double above(double a, double b, double open) { return a <= b ? 0.0 : open; }
inline double get(double a, int) { return a; }
inline void put(double &a, int, double x) { a = x; }
inline double shifted(double before, double) { return before; }

}  // namespace
