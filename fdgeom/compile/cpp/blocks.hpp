// Blocks of a node in vectors: rows of n numbers, and rows of n numbers with a right-hand side.
// Included after lanes.hpp.
#include <utility>

namespace {

// Transposes W vectors, which are the rows of a matrix.
FDGEOM_INLINE void transpose(raw* x) {
#pragma GCC unroll 8
  for (int h = W / 2; h; h /= 2) {
    const lane_mask low = lane_numbers + (((lane_numbers & h) != 0) & (W - h)), high = low + h;
#pragma GCC unroll 8
    for (int i = 0; i < W; ++i)
      if (!(i & h)) {
        const raw a = x[i], b = x[i + h];
        x[i] = shuffle(a, b, low);
        x[i + h] = shuffle(a, b, high);
      }
  }
}

// a with column c of b.
FDGEOM_INLINE raw blend(raw a, raw b, int c) {
  return shuffle(a, b, lane_numbers + ((lane_numbers == c) & W));
}

// Calls f(0), f(1), … f(n - 1): unrolled, if that code is short. Of larger blocks it is no faster.
template <int n, class Call>
FDGEOM_INLINE void each(Call f) {
  if constexpr (n > 8)
    for (int i = 0; i < n; ++i) f(i);
  else
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) f(i);
}

template <int N>
struct Block {
  static constexpr int n = N;
  static constexpr int R = (n + W - 1) / W;  // vectors of a row
  static constexpr int V = (n + W) / W;      // vectors of a row with its right-hand side
  typedef raw Row[R];
  typedef raw WideRow[V];

  // Gauss–Jordan: row k becomes that of the pivot, and column k of the others zero, which then keeps that of the
  // inverse. Returns true if the pivot is small beside what is below it.
  template <int Q>
  FDGEOM_INLINE static bool step(Row* D, raw (*U)[Q], int k) {
    bool small = false;
    const double pivot = D[k][k / W][k % W];
    const raw inverse = raw{} + 1.0 / pivot;
#pragma GCC unroll 4
    for (int v = 0; v < R; ++v) {
      const raw row = v == k / W ? blend(D[k][v], raw{} + 1.0, k % W) : D[k][v];
      D[k][v] = row * inverse;
    }
#pragma GCC unroll 8
    for (int v = 0; v < Q; ++v) U[k][v] *= inverse;
    const double most = 1e4 * std::fabs(pivot);
    raw own[R + Q];
#pragma GCC unroll 16
    for (int v = 0; v < R + Q; ++v) own[v] = v < R ? D[k][v] : U[k][v - R];
    each<n>([&](int i) __attribute__((always_inline)) {
      if (i == k) return;
      const double f = D[i][k / W][k % W];
      if (i > k) small |= !(std::fabs(f) <= most);
#pragma GCC unroll 8
      for (int v = 0; v < R; ++v) {
        const raw row = v == k / W ? blend(D[i][v], raw{}, k % W) : D[i][v];
        D[i][v] = row - (raw{} + f) * own[v];
      }
#pragma GCC unroll 16
      for (int v = 0; v < Q; ++v) U[i][v] -= (raw{} + f) * own[R + v];
    });
    return small;
  }
  // D becomes D⁻¹ and U, in rows of Q vectors, becomes D⁻¹ U, for S independent blocks side by side, without
  // exchanges. Returns true if a pivot is small: then exchanges are needed.
  template <int S, int Q>
  FDGEOM_INLINE static bool eliminate(Row (*D)[n], raw (*U)[n][Q]) {
    bool small = false;
#pragma GCC unroll 32
    for (int k = 0; k < n; ++k)
#pragma GCC unroll 2
      for (int s = 0; s < S; ++s) small |= step<Q>(D[s], U[s], k);
    return small;
  }

  // The same with exchanges of rows; false if a pivot is not above `least`, or the solution is not finite.
  template <int Q>
  __attribute__((noinline)) static bool eliminate_pivoting(Row* D, raw (*U)[Q], double least = 0.0) {
    int order[n];
    for (int k = 0; k < n; ++k) {
      const int v = k / W, c = k % W;
      int p = k;
      for (int i = k + 1; i < n; ++i)
        if (std::fabs(D[i][v][c]) > std::fabs(D[p][v][c])) p = i;
      order[k] = p;
      if (p != k) {
        std::swap(D[p], D[k]);
        std::swap(U[p], U[k]);
      }
      if (!(std::fabs(D[k][v][c]) > least)) return false;
      step<Q>(D, U, k);
    }
    for (int k = n - 1; k >= 0; --k)
      if (const int p = order[k]; p != k)
        for (int i = 0; i < n; ++i) {
          const double own = D[i][k / W][k % W];
          D[i][k / W][k % W] = D[i][p / W][p % W];
          D[i][p / W][p % W] = own;
        }
    return finite(U);
  }
  template <int Q>
  static bool finite(const raw (*U)[Q]) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += U[i][n / W][n % W];
    return std::isfinite(sum);
  }
  // One block, with exchanges where they are needed; false as above.
  template <int Q>
  __attribute__((noinline)) static bool solve(Row* D, raw (*U)[Q]) {
    Row rows[1][n];
    raw right[1][n][Q];
    std::memcpy(rows, D, sizeof(rows));
    std::memcpy(right, U, sizeof(right));
    if (__builtin_expect(eliminate<1, Q>(rows, right), 0)) return eliminate_pivoting<Q>(D, U);
    std::memcpy(D, rows, sizeof(rows));
    std::memcpy(U, right, sizeof(right));
    return finite(U);
  }
  // A := A⁻¹ and x := A⁻¹ x, in numbers; false if a pivot is below a part of the largest entry, or as above.
  static bool invert(double* A, double* x, double tiny) {
    Row D[n] = {};
    WideRow U[n] = {};
    double largest = 0.0;
    for (int i = 0; i < n; ++i) {
      U[i][n / W][n % W] = x[i];
      for (int j = 0; j < n; ++j) {
        D[i][j / W][j % W] = A[i * n + j];
        largest = std::fmax(largest, std::fabs(A[i * n + j]));
      }
    }
    if (!eliminate_pivoting(D, U, tiny * largest)) return false;
    for (int i = 0; i < n; ++i) {
      x[i] = U[i][n / W][n % W];
      for (int j = 0; j < n; ++j) A[i * n + j] = D[i][j / W][j % W];
    }
    return true;
  }

  // The columns of n rows of `chunks` vectors: `count` of them, R vectors each.
  template <int chunks>
  FDGEOM_INLINE static void columns(const raw (*rows)[chunks], int count, raw* to) {
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < chunks; ++v) {
        raw C[W];
#pragma GCC unroll 8
        for (int c = 0; c < W; ++c)
          C[c] = i * W + c < n ? rows[i * W + c < n ? i * W + c : 0][v] : raw{};
        transpose(C);
#pragma GCC unroll 8
        for (int c = 0; c < W; ++c)
          if (v * W + c < count) to[(v * W + c) * R + i] = C[c];
      }
  }
};

// The number of negative eigenvalues of a symmetric matrix of the order n, which is overwritten:
// LDLᵀ with diagonal blocks of one or two rows (Bunch and Parlett 1971).
inline int negative_eigenvalues(double* A, int n) {
  int found = 0;
  for (int k = 0; k < n;) {
    int d = k, p = k, q = k;
    for (int i = k; i < n; ++i) {
      if (std::fabs(A[i * n + i]) > std::fabs(A[d * n + d])) d = i;
      for (int j = k; j < i; ++j)
        if (p == q || std::fabs(A[i * n + j]) > std::fabs(A[p * n + q])) p = i, q = j;
    }
    const auto exchange = [&](int a, int b) {
      for (int j = 0; j < n; ++j) std::swap(A[a * n + j], A[b * n + j]);
      for (int j = 0; j < n; ++j) std::swap(A[j * n + a], A[j * n + b]);
    };
    if (p == q || std::fabs(A[d * n + d]) >= 0.6404 * std::fabs(A[p * n + q])) {
      exchange(k, d);
      const double pivot = A[k * n + k];
      found += pivot < 0.0;
      for (int i = k + 1; i < n && pivot != 0.0; ++i)
        for (int j = k + 1; j < n; ++j) A[i * n + j] -= A[i * n + k] * A[k * n + j] / pivot;
      k += 1;
    } else {
      exchange(k, q);
      exchange(k + 1, p);
      const double a = A[k * n + k], b = A[k * n + k + 1], c = A[(k + 1) * n + k + 1];
      const double determinant = a * c - b * b;
      found += determinant < 0.0 ? 1 : a < 0.0 ? 2 : 0;
      for (int i = k + 2; i < n; ++i) {
        const double x = A[i * n + k], y = A[i * n + k + 1];
        for (int j = k + 2; j < n; ++j)
          A[i * n + j] -= (x * (c * A[k * n + j] - b * A[(k + 1) * n + j]) +
                           y * (a * A[(k + 1) * n + j] - b * A[k * n + j])) /
                          determinant;
      }
      k += 2;
    }
  }
  return found;
}
// The same of the free rows and columns of a block, from the entries of its inverse.
template <int n, class Free, class Entry>
int negative_of_inverse(Free is_free, Entry inverse) {
  double A[n * n];
  int rows[n], m = 0;
  for (int i = 0; i < n; ++i)
    if (is_free(i)) rows[m++] = i;
  for (int p = 0; p < m; ++p)
    for (int q = 0; q < m; ++q) A[p * m + q] = inverse(rows[p], rows[q]);
  return negative_eigenvalues(A, m);
}

}  // namespace
