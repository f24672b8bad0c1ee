// Vectors of W doubles, and dense solves for one block or for W blocks at once.
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

// x := A⁻¹ x without pivoting, every loop unrolled. A is overwritten.
template <int N, class T> inline void solve_plain(T *A, T *x) {
#pragma GCC unroll 64
  for (int k = 0; k < N; ++k) {
    const T inverse = 1.0 / A[k * N + k];
#pragma GCC unroll 64
    for (int i = k + 1; i < N; ++i) {
      const T factor = A[i * N + k] * inverse;
#pragma GCC unroll 64
      for (int j = k + 1; j < N; ++j) A[i * N + j] -= factor * A[k * N + j];
      x[i] -= factor * x[k];
    }
    A[k * N + k] = inverse;
  }
#pragma GCC unroll 64
  for (int k = N - 1; k >= 0; --k) {
    T sum = x[k];
#pragma GCC unroll 64
    for (int j = k + 1; j < N; ++j) sum -= A[k * N + j] * x[j];
    x[k] = sum * A[k * N + k];
  }
}

// x := A⁻¹ x of one block, with row exchanges; false if the block is singular or not finite.
template <int N> bool solve_pivoting(double *A, double *x) {
  double largest = 0.0;
  for (int k = 0; k < N * N; ++k) largest = std::fmax(largest, std::fabs(A[k]));
  for (int k = 0; k < N; ++k) {
    int p = k;
    for (int i = k + 1; i < N; ++i)
      if (std::fabs(A[i * N + k]) > std::fabs(A[p * N + k])) p = i;
    if (!(std::fabs(A[p * N + k]) > 1e-15 * largest)) return false;
    if (p != k) {
      for (int j = 0; j < N; ++j) { double t = A[k * N + j]; A[k * N + j] = A[p * N + j]; A[p * N + j] = t; }
      double t = x[k]; x[k] = x[p]; x[p] = t;
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

template <int N, class T> inline T square(const T *x) {
  T sum = x[0] * x[0];
#pragma GCC unroll 64
  for (int k = 1; k < N; ++k) sum += x[k] * x[k];
  return sum;
}

// single: do one update in any case. more: number of updates beyond convergence.
struct Tolerances { double rtol, atol, stol; int max_it, single, more; };
// The square of an update relative to the unknown that changes its last digits only.
constexpr double round_off = 4e-30;
// The same if updates shrink at a steady rate, where the remaining errors of all steps have one sign.
constexpr double frozen_round_off = 1e-31;

// The lanes that have not converged after an update. The others have reached round-off, as in settled.py:
// the residual is no longer halved, and the update is small or the residual is a small fraction of the
// first one. All arguments are squares.
template <class T> inline T still_open(T open, T norm, T last, T first, T step, T size) {
  const T halved = above(0.25 * last, norm, open);
  const T large = above(step, 1e-16 * size, above(norm, 1e-12 * first, open));
  return halved + large + above(norm, T(1e300), open);
}

struct Report { long solves, iterations, most, worst, failed; double norm; int reason; double sum; };

// Newton's method for one block (T = double) or W blocks (T = vec), without pivoting. Returns the number
// of iterations, or -1 if some block has not converged: then the caller repeats it with pivoting.
template <class P, class T>
inline int newton(const typename P::template Data<T> &data, T *u, const Tolerances &tol) {
  constexpr int N = P::size;
  T R[N], J[N * N], first = 0.0, last = 0.0, before = 0.0, size = 0.0, open = 1.0;
  int left = -1;  // updates still to do, once converged
  for (int it = 0;; ++it) {
    P::residual(data, u, R);
    const T norm = square<N>(R);
    if (it == 0) first = norm;
    const T a = norm - (tol.rtol * tol.rtol) * first;
    // The next update would be about the last one times the last ratio of residuals.
    if (it > 0) open = still_open(open, norm, last, first, before, size);
    if (left < 0 && (all_le(a, T(tol.atol * tol.atol)) || all_le(open, T(0.0)) ||
                     (it > 0 && all_le(norm * before, round_off * size * last)))) left = tol.more;
    if (left == 0) return it;
    if (left > 0) --left;
    else if (it == tol.max_it) return -1;
    last = norm;
    P::jacobian(data, u, J);
    if (P::affine) {
      // One update solves the problem; its residual shows whether pivots were too small.
      T K[N * N], dx[N], check[N];
      for (int k = 0; k < N * N; ++k) K[k] = J[k];
      for (int k = 0; k < N; ++k) dx[k] = R[k];
      solve_plain<N>(K, dx);
      for (int i = 0; i < N; ++i) {
        check[i] = -R[i];
        for (int j = 0; j < N; ++j) check[i] += J[i * N + j] * dx[j];
      }
      for (int k = 0; k < N; ++k) u[k] -= dx[k];
      return all_le(square<N>(check), 1e-22 * norm) ? 1 : -1;
    }
    solve_plain<N>(J, R);
    for (int k = 0; k < N; ++k) u[k] -= R[k];
    if (tol.single) return 1;
    // The next update would be about this one times the rate at which updates shrink.
    const T step = square<N>(R);
    size = square<N>(u);
    if (left < 0 && (all_le(step, (tol.stol * tol.stol) * size) ||
                     (it > 0 && all_le(step * step, round_off * size * before)))) left = tol.more;
    if (left == 0) return it + 1;
    before = step;
  }
}

// Newton's method with the inverse of the Jacobian at u = 0, for a weight of one, in place of the
// Jacobian: updates shrink at about the rate of Δt. Also returns -1 if they shrink slowly.
template <class P, class T>
inline int newton_frozen(const typename P::template Data<T> &data, T *u, const Tolerances &tol, const double *inverse) {
  constexpr int N = P::size, most = 6;
  const T scale = 1.0 / P::weight(data);
  T R[N], dx[N], first = 0.0, last = 0.0, before = 0.0;
  int left = -1;
  for (int it = 0;; ++it) {
    P::residual(data, u, R);
    const T norm = square<N>(R);
    if (it == 0) first = norm;
    if (left < 0 && (all_le(norm - (tol.rtol * tol.rtol) * first, T(tol.atol * tol.atol)) ||
                     (it > 0 && all_le(norm * before, round_off * square<N>(u) * last)))) left = tol.more;
    // After convergence the present residual gives one more update, which reduces the error again.
    const bool last_one = left == 0;
    if (left > 0) --left;
    else if (!last_one && (it == most || it == tol.max_it)) return -1;
    last = norm;
#pragma GCC unroll 64
    for (int i = 0; i < N; ++i) {
      dx[i] = inverse[i * N] * R[0];
#pragma GCC unroll 64
      for (int j = 1; j < N; ++j) dx[i] += inverse[i * N + j] * R[j];
      dx[i] *= scale;
      u[i] -= dx[i];
    }
    if (last_one) return it;
    const T step = square<N>(dx), size = square<N>(u);
    if (left < 0 && (all_le(step, (tol.stol * tol.stol) * size) ||
                     (it > 0 && all_le(step * step, frozen_round_off * size * before)))) left = tol.more;
    if (left == 0) return it + 1;
    if (left < 0 && it > 0 && !all_le(step, 0.01 * before + round_off * size)) return -1;
    before = step;
  }
}

// Newton's method for one block with pivoting; components with mask 0 are given. Returns the number of
// iterations, or -1: too many, -2: a singular block, -3: not finite.
template <class P>
int newton_pivoting(const typename P::template Data<double> &data, double *u, const Tolerances &tol,
                    const double *mask, double *norm_out) {
  constexpr int N = P::size;
  double R[N], J[N * N], first = 0.0, last = 0.0, before = 0.0, size = 0.0, open = 1.0;
  int left = -1;
  for (int it = 0;; ++it) {
    P::residual(data, u, R);
    if (mask) for (int k = 0; k < N; ++k) R[k] *= mask[k];
    const double norm = square<N>(R);
    *norm_out = std::sqrt(norm);
    if (!(norm <= 1e300)) return -3;
    if (it == 0) first = norm;
    if (it > 0) open = still_open(open, norm, last, first, before, size);
    if (left < 0 && (norm <= tol.rtol * tol.rtol * first || norm <= tol.atol * tol.atol || open == 0.0 ||
                     (it > 0 && norm * before <= round_off * size * last))) left = tol.more;
    if (left == 0) return it;
    if (left > 0) --left;
    else if (it == tol.max_it) return -1;
    last = norm;
    P::jacobian(data, u, J);
    if (mask)
      for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) J[i * N + j] = mask[i] * J[i * N + j] + (i == j ? 1.0 - mask[i] : 0.0);
    if (!solve_pivoting<N>(J, R)) return -2;
    for (int k = 0; k < N; ++k) u[k] -= R[k];
    const double step = square<N>(R);
    size = square<N>(u);
    if (!(step <= 1e300)) return -3;
    if (tol.single) return 1;
    if (P::affine) return it + 1;
    if (left < 0 && (step <= tol.stol * tol.stol * size ||
                     (it > 0 && step * step <= round_off * size * before))) left = tol.more;
    if (left == 0) return it + 1;
    before = step;
  }
}

}  // namespace
