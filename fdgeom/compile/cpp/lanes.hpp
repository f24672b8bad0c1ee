// Vectors of W doubles, one number of each of W neighbouring places, and dense solves in them.
#include <cstdint>
#include <cstring>
// GCC's special functions, which nothing uses, would take a tenth of a second.
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <cmath>

// Inlined, since calls would pass vectors through memory.
#define FDGEOM_INLINE __attribute__((always_inline)) inline

namespace {

// As in build.py: a vector is a register, since compilers shuffle and compare wider ones number by number.
constexpr int W = FDGEOM_WIDTH;

// The compiler's own vectors: a class around them doubles the time of compilation, and a cast of an array
// of vectors to an array of such classes would break the rules of aliasing.
typedef double raw __attribute__((vector_size(8 * W)));
typedef int64_t lane_mask __attribute__((vector_size(8 * W)));
#if FDGEOM_WIDTH == 8
constexpr lane_mask lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7};  // of the lanes
#else
constexpr lane_mask lane_numbers = {0, 1, 2, 3};
#endif

FDGEOM_INLINE raw lanes(double s) { return raw{} + s; }
FDGEOM_INLINE raw choose(lane_mask c, raw a, raw b) { return c ? a : b; }
// Of the numbers of a and b, counted through, those at p.
FDGEOM_INLINE raw shuffle(raw a, raw b, lane_mask p) {
#ifdef __clang__
  raw r;
  for (int l = 0; l < W; ++l) r[l] = p[l] < W ? a[p[l]] : b[p[l] - W];
  return r;
#else
  return __builtin_shuffle(a, b, p);
#endif
}
FDGEOM_INLINE lane_mask first_lanes(long count) { return lane_numbers < lane_mask{} + count; }
FDGEOM_INLINE raw fabs(raw a) { return a < 0.0 ? -a : a; }

// A few instructions of AVX-512 and AVX: GCC needs half a second to read the whole of immintrin.h.
#if FDGEOM_WIDTH == 8 && defined(__AVX512F__) && !defined(__clang__)
#define FDGEOM_WIDE
FDGEOM_INLINE raw sqrt(raw a) { return __builtin_ia32_sqrtpd512_mask(a, a, -1, 4); }
FDGEOM_INLINE bool all_le(raw a, raw b) { return (unsigned char)__builtin_ia32_cmppd512_mask(a, b, 18, -1, 4) == 255; }
FDGEOM_INLINE void stream(double *p, raw a) { __builtin_ia32_movntpd512(p, a); }
#elif FDGEOM_WIDTH == 4 && defined(__AVX__) && !defined(__clang__)
#define FDGEOM_WIDE
FDGEOM_INLINE raw sqrt(raw a) { return __builtin_ia32_sqrtpd256(a); }
FDGEOM_INLINE bool all_le(raw a, raw b) { return __builtin_ia32_movmskpd256((raw)(a <= b)) == 15; }
FDGEOM_INLINE void stream(double *p, raw a) { __builtin_ia32_movntpd256(p, a); }
#else
FDGEOM_INLINE raw sqrt(raw a) {
  raw r;
  for (int l = 0; l < W; ++l) r[l] = std::sqrt(a[l]);
  return r;
}
// Whether a ≤ b in every lane; false for a NaN.
FDGEOM_INLINE bool all_le(raw a, raw b) {
  const lane_mask m = a <= b;
  int64_t every = -1;
  for (int l = 0; l < W; ++l) every &= m[l];
  return every != 0;
}
#endif
FDGEOM_INLINE bool none(lane_mask m) {
  int64_t some = 0;
  for (int l = 0; l < W; ++l) some |= m[l];
  return !some;
}
FDGEOM_INLINE bool all_le(raw a, double b) { return all_le(a, lanes(b)); }

#define FDGEOM_LANES1(f) \
  inline raw f(raw a) { raw r; for (int l = 0; l < W; ++l) r[l] = std::f(a[l]); return r; }
FDGEOM_LANES1(tan) FDGEOM_LANES1(asin) FDGEOM_LANES1(acos) FDGEOM_LANES1(atan) FDGEOM_LANES1(exp)
FDGEOM_LANES1(log) FDGEOM_LANES1(sinh) FDGEOM_LANES1(cosh) FDGEOM_LANES1(tanh)
FDGEOM_LANES1(erf)
#define FDGEOM_LANES2(f) \
  inline raw f(raw a, raw b) { raw r; for (int l = 0; l < W; ++l) r[l] = std::f(a[l], b[l]); return r; }
FDGEOM_LANES2(pow) FDGEOM_LANES2(atan2)

inline double total(raw a) { double t = 0.0; for (int l = 0; l < W; ++l) t += a[l]; return t; }
// The last lane of one vector, then all but the last lane of the next.
FDGEOM_INLINE raw shifted_right(raw before, raw now) { return shuffle(before, now, lane_numbers + (W - 1)); }
// A vector without its first lane, then the first lane of the next.
FDGEOM_INLINE raw shifted_left(raw now, raw after) { return shuffle(now, after, lane_numbers + 1); }

template <int N> FDGEOM_INLINE raw square(const raw *x) {
  raw sum = x[0] * x[0];
#pragma GCC unroll 64
  for (int k = 1; k < N; ++k) sum += x[k] * x[k];
  return sum;
}

// x := A⁻¹ x in all lanes without pivoting, every loop unrolled. A is overwritten.
template <int N> FDGEOM_INLINE void solve_plain(raw *A, raw *x) {
#pragma GCC unroll 64
  for (int k = 0; k < N; ++k) {
    const raw inverse = 1.0 / A[k * N + k];
#pragma GCC unroll 64
    for (int i = k + 1; i < N; ++i) {
      const raw factor = A[i * N + k] * inverse;
#pragma GCC unroll 64
      for (int j = k + 1; j < N; ++j) A[i * N + j] -= factor * A[k * N + j];
      x[i] -= factor * x[k];
    }
    A[k * N + k] = inverse;
  }
#pragma GCC unroll 64
  for (int k = N - 1; k >= 0; --k) {
    raw sum = x[k];
#pragma GCC unroll 64
    for (int j = k + 1; j < N; ++j) sum -= A[k * N + j] * x[j];
    x[k] = sum * A[k * N + k];
  }
}

// Sine and cosine of W numbers, with errors below one unit in the last place.
//
// x = k π/2 + r, |r| ≤ π/4, with π/2 in three parts (W. Cody and W. Waite, Software Manual for the
// Elementary Functions, 1980); then the polynomials of Sun's fdlibm (1993) in r, and the rest that r
// leaves. libm takes one number at a time, and four times as long.
//
// The order of these operations counts, so it must survive the flags for fast arithmetic.
#ifdef __clang__
#define FDGEOM_IN_ORDER
#else
#define FDGEOM_IN_ORDER , optimize("no-fast-math")
#endif

// sin(x + quarters π/2)
template <int quarters>
__attribute__((noinline FDGEOM_IN_ORDER)) raw sine(raw x) {
#ifdef __clang__
#pragma clang fp reassociate(off)
#endif
  // Adding `to_integer` rounds, and leaves the integer in the last bits.
  constexpr double to_integer = 0x1.8p52;
  const raw sum = x * 0x1.45f306dc9c883p-1 + to_integer, k = sum - to_integer;
  const lane_mask quarter = (lane_mask)sum + quarters;
  // The first two parts have 33 bits, so their products with k are exact.
  const raw a = x - k * 0x1.921fb544p0, b = k * 0x1.0b4611a6p-34;
  const raw c = a - b, d = k * 0x1.3198a2e037073p-69 - ((a - c) - b);
  const raw r = c - d, rest = (c - r) - d;

  const raw z = r * r, half = 0.5 * z, most = 1.0 - half;
  const raw s = 8.33333333332248946124e-03 +
                z * (-1.98412698298579493134e-04 +
                     z * (2.75573137070700676789e-06 +
                          z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
  const raw sin_r = r - (z * (0.5 * rest - z * r * s) - rest + z * r * 1.66666666666666324348e-01);
  const raw t = 4.16666666666666019037e-02 +
                z * (-1.38888888888741095749e-03 +
                     z * (2.48015872894767294178e-05 +
                          z * (-2.75573143513906633035e-07 +
                               z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))));
  const raw cos_r = most + (1.0 - most - half + (z * z * t - r * rest));

  const raw found = (quarter & 1) != 0 ? cos_r : sin_r;
  return (quarter & 2) != 0 ? -found : found;
}

// Beyond 2²⁰ the products are not exact.
#define FDGEOM_SINE(f, quarters) \
  inline raw f(raw a) { \
    if (all_le(fabs(a), 0x1p20)) return sine<quarters>(a); \
    raw r; \
    for (int l = 0; l < W; ++l) r[l] = std::f(a[l]); \
    return r; \
  }
FDGEOM_SINE(sin, 0)
FDGEOM_SINE(cos, 1)

}  // namespace
