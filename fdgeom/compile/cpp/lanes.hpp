// Vectors of W doubles, one number of each of W neighbouring places, and dense solves in them.
#include <cmath>
#include <cstdint>
#include <cstring>

// Inlined, since calls would pass vectors through memory.
#define FDGEOM_INLINE __attribute__((always_inline)) inline

namespace {

// As in layout.py, on all machines: narrower registers hold a vector in parts.
constexpr int W = 8;

// The compiler's own vectors: a class around them doubles the time of compilation, and a cast of an array
// of vectors to an array of such classes would break the rules of aliasing.
typedef double raw __attribute__((vector_size(8 * W)));
typedef int64_t lane_mask __attribute__((vector_size(8 * W)));

FDGEOM_INLINE raw lanes(double s) { return raw{} + s; }
FDGEOM_INLINE raw choose(lane_mask c, raw a, raw b) { return c ? a : b; }
FDGEOM_INLINE lane_mask first_lanes(long count) { return lane_mask{0, 1, 2, 3, 4, 5, 6, 7} < lane_mask{} + count; }
FDGEOM_INLINE raw fabs(raw a) { return a < 0.0 ? -a : a; }

// A few instructions of AVX-512: GCC needs half a second to read the whole of immintrin.h.
#if defined(__AVX512F__) && !defined(__clang__)
#define FDGEOM_WIDE
FDGEOM_INLINE raw sqrt(raw a) { return __builtin_ia32_sqrtpd512_mask(a, a, -1, 4); }
FDGEOM_INLINE bool all_le(raw a, raw b) { return (unsigned char)__builtin_ia32_cmppd512_mask(a, b, 18, -1, 4) == 255; }
FDGEOM_INLINE void stream(double *p, raw a) { __builtin_ia32_movntpd512(p, a); }
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
FDGEOM_INLINE raw shifted_right(raw before, raw now) {
#ifdef __clang__
  return __builtin_shufflevector(before, now, 7, 8, 9, 10, 11, 12, 13, 14);
#else
  return __builtin_shuffle(before, now, lane_mask{7, 8, 9, 10, 11, 12, 13, 14});
#endif
}
// A vector without its first lane, then the first lane of the next.
FDGEOM_INLINE raw shifted_left(raw now, raw after) {
#ifdef __clang__
  return __builtin_shufflevector(now, after, 1, 2, 3, 4, 5, 6, 7, 8);
#else
  return __builtin_shuffle(now, after, lane_mask{1, 2, 3, 4, 5, 6, 7, 8});
#endif
}

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

// x := A⁻¹ x of one place, with row exchanges; false if the matrix is singular or not finite.
template <int N> bool solve_pivoting(double *A, double *x) {
  double largest = 0.0;
  for (int k = 0; k < N * N; ++k) largest = std::fmax(largest, std::fabs(A[k]));
  for (int k = 0; k < N; ++k) {
    int p = k;
    for (int i = k + 1; i < N; ++i)
      if (std::fabs(A[i * N + k]) > std::fabs(A[p * N + k])) p = i;
    if (!(std::fabs(A[p * N + k]) > 1e-15 * largest)) return false;
    if (p != k) {
      for (int j = 0; j < N; ++j) { const double t = A[k * N + j]; A[k * N + j] = A[p * N + j]; A[p * N + j] = t; }
      const double t = x[k]; x[k] = x[p]; x[p] = t;
    }
    for (int i = k + 1; i < N; ++i) {
      const double factor = A[i * N + k] / A[k * N + k];
      for (int j = k; j < N; ++j) A[i * N + j] -= factor * A[k * N + j];
      x[i] -= factor * x[k];
    }
  }
  for (int k = N - 1; k >= 0; --k) {
    for (int j = k + 1; j < N; ++j) x[k] -= A[k * N + j] * x[j];
    x[k] /= A[k * N + k];
  }
  return true;
}

}  // namespace
