// Products and factors of blocks of N unknowns, in every lane of a vector.
// Included after simd.hpp and the definition of N.

namespace {

constexpr int NN = N * N;
constexpr int R3 = 2 * N + 1;           // columns on the right of a node: next node, left end, 1
#if FDGEOM_WIDTH > 1
typedef int64_t lane_mask __attribute__((vector_size(8 * FDGEOM_WIDTH)));
inline vec choose(lane_mask c, vec a, vec b) { return c ? a.v : b.v; }
inline lane_mask less(vec a, vec b) { return a.v < b.v; }
inline lane_mask less_equal(vec a, vec b) { return a.v <= b.v; }
inline lane_mask equal(vec a, vec b) { return a.v == b.v; }
inline lane_mask both(lane_mask a, lane_mask b) { return a & b; }
inline lane_mask either(lane_mask a, lane_mask b) { return a | b; }
inline lane_mask no(lane_mask a) { return ~a; }
#endif

inline double sum_of(vec a) {
  // Pairwise summation, so that no addition waits for all others.
  double s[W];
  store(s, a);
  for (int n = W / 2; n; n /= 2)
    for (int l = 0; l < n; ++l) s[l] += s[l + n];
  return s[0];
}

// out := base - A B for R rows and 4 or fewer columns; A has N columns, B and out rows of `stride`.
template <int R, int K> FDGEOM_INLINE void product_block(const vec *A, const vec *B, const vec *base, int bstride, vec *out, int stride) {
  vec sum[R][K];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < K; ++j) sum[i][j] = base ? base[i * bstride + j] : vec(0.0);
  for (int k = 0; k < N; ++k)
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < K; ++j) sum[i][j] -= A[i * N + k] * B[k * R3 + j];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < K; ++j) out[i * stride + j] = sum[i][j];
}

// out := base - A B for N rows and `columns` columns of B = X + some column; base null: zero.
template <int K> inline void product_rows(const vec *A, const vec *B, const vec *base, int bstride, vec *out, int stride) {
  constexpr int R = N < 6 ? N : 6;
  for (int i = 0; i + R <= N; i += R)
    product_block<R, K>(A + i * N, B, base ? base + i * bstride : nullptr, bstride, out + i * stride, stride);
  constexpr int left = N % R;
  if constexpr (left > 0)
    product_block<left, K>(A + (N - left) * N, B, base ? base + (N - left) * bstride : nullptr, bstride,
                           out + (N - left) * stride, stride);
}
__attribute__((noinline)) void product(const vec *A, const vec *B, const vec *base, vec *out) {
  int j = 0;
  for (; j + 4 <= N; j += 4) product_rows<4>(A, B + j, base ? base + j : nullptr, N, out + j, N);
  for (; j + 2 <= N; j += 2) product_rows<2>(A, B + j, base ? base + j : nullptr, N, out + j, N);
  if (j < N) product_rows<1>(A, B + j, base ? base + j : nullptr, N, out + j, N);
}
FDGEOM_INLINE void product_vector(const vec *A, const vec *x, int xstride, const vec *base, vec *out) {
  for (int i = 0; i < N; ++i) {
    vec sum = base[i];
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) sum -= A[i * N + k] * x[k * xstride];
    out[i] = sum;
  }
}

// D := its LU without pivoting, the inverses of the pivots on the diagonal.
__attribute__((noinline)) void factorise(vec *D, vec &smallest) {
  vec diagonal[N];
  for (int k = 0; k < N; ++k) diagonal[k] = fabs(D[k * N + k]);
  for (int k = 0; k < N; ++k) {
    const vec pivot = D[k * N + k];
    const vec margin = fabs(pivot) - 1e-14 * diagonal[k];
    smallest = choose(less_equal(smallest, margin), smallest, margin);
    const vec inverse = 1.0 / pivot;
    D[k * N + k] = inverse;
    for (int i = k + 1; i < N; ++i) {
      const vec factor = D[i * N + k] * inverse;
      D[i * N + k] = factor;
#pragma GCC unroll 8
      for (int j = k + 1; j < N; ++j) D[i * N + j] -= factor * D[k * N + j];
    }
  }
}

// x := D⁻¹ x for K columns of rows of `stride`.
template <int K> FDGEOM_INLINE void substitute(const vec *D, vec *x, int stride) {
  vec y[N][K];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < K; ++j) y[i][j] = x[i * stride + j];
#pragma GCC unroll 8
    for (int k = 0; k < i; ++k)
#pragma GCC unroll 4
      for (int j = 0; j < K; ++j) y[i][j] -= D[i * N + k] * y[k][j];
  }
#pragma GCC unroll 8
  for (int i = N - 1; i >= 0; --i) {
#pragma GCC unroll 8
    for (int k = i + 1; k < N; ++k)
#pragma GCC unroll 4
      for (int j = 0; j < K; ++j) y[i][j] -= D[i * N + k] * y[k][j];
#pragma GCC unroll 4
    for (int j = 0; j < K; ++j) x[i * stride + j] = y[i][j] *= D[i * N + i];
  }
}
__attribute__((noinline)) void substitute_all(const vec *D, vec *X) {
  int j = 0;
  for (; j + 4 <= R3; j += 4) substitute<4>(D, X + j, R3);
  for (; j < R3; ++j) substitute<1>(D, X + j, R3);
}

}  // namespace
