// Newton on a chain of blocks, cut into W pieces of `m` cells, one in each lane of a vector.
//
// Lane l has the cells l m ... (l + 1) m - 1 and the nodes l m ... (l + 1) m; the last node of a piece
// is the first of the next and kept twice. Values are stored [node or cell of the piece][component]
// [lane], so the values of a cell's two nodes are neighbours. Cells and nodes beyond the chain's end
// (in the last lanes) have no equations but x = 0.
//
// The nodes inside the pieces are eliminated from left to right, as soon as their two cells are known,
// with a Schur complement towards the left end of the piece (Polizzi & Sameh, SPIKE, Parallel
// Computing 32, 2006): without pivoting, in the order of the chain. The W + 1 nodes between the pieces
// are then solved for by a banded LU with row exchanges.
// Included after simd.hpp and the definition of N; the generated code follows with a class Cell.

namespace {

constexpr int NN = N * N;
constexpr int R3 = 2 * N + 1;           // columns on the right of a node: next node, left end, 1
constexpr int S = (W + 1) * N;          // unknowns between the pieces
constexpr int BAND = 2 * N - 1;         // how far they couple
// Entries of a row to the right of its pivot and of a column below it, in whole vectors.
constexpr int WINDOW = (2 * BAND + W - 1) / W, BELOW = (BAND + W - 1) / W;
constexpr int ROW = ((S + W - 1) / W + WINDOW + 2) * W;

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

struct Reduced {
  double M[S * ROW], L[S * BELOW * W], r[ROW];  // L: the factors below each pivot
  double inverse[S];
  int pivot[S];
};

// What Python gives: see structs.py.
struct Chain {
  vec *const *F;            // functions
  double *const *C;         // constants
  long m, cells;
  const long *count;        // cells of each lane
  long whole;               // cells that all lanes have
  vec *free_;               // [m + 1][N]: 1 where an unknown is free, 0 where it is given
  const unsigned char *special;  // [m + 1]: whether some are not free there
  vec *X;                   // [m + 1][N][2 N + 1]
  vec *factors;             // [m + 1][3 N N] for other right-hand sides; null if there are none
  Reduced *reduced;
  vec *rhs;                 // [m + 1][N]: a right-hand side, and a solution
  vec *given;               // [m + 1][N]: values where an unknown is given
  vec *saved;               // [m + 1][N]: the unknown before a step
  double residual, update, size;  // norms of the last evaluation and of the last update
  double smallest;          // least pivot of the last elimination beside its diagonal entry
};

inline double sum_of(vec a) {
#if defined(__AVX512F__) && FDGEOM_WIDTH == 8
  return _mm512_reduce_add_pd((__m512d)a.v);
#else
  double s = 0.0;
  for (int l = 0; l < W; ++l) s += get(a, l);
  return s;
#endif
}

inline lane_mask has_cell(const Chain &X, long k) {
  lane_mask there;
  for (int l = 0; l < W; ++l) there[l] = k < X.count[l] ? -1 : 0;
  return there;
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

// Rows of given unknowns: x = 0.
inline void hold_rows(const vec *free_, vec *D, vec *X) {
  for (int i = 0; i < N; ++i) {
    const lane_mask keep = less(vec(0.5), free_[i]);
    for (int j = 0; j < N; ++j) D[i * N + j] = choose(keep, D[i * N + j], vec(i == j ? 1.0 : 0.0));
    for (int j = 0; j < R3; ++j) X[i * R3 + j] = choose(keep, X[i * R3 + j], vec(0.0));
  }
}
inline void hold_entries(const vec *free_, vec *r) {
  for (int i = 0; i < N; ++i) r[i] = choose(less(vec(0.5), free_[i]), r[i], vec(0.0));
}

inline void keep_cells(const Chain &X, long k, vec *values, int number) {
  const lane_mask there = has_cell(X, k);
  for (int i = 0; i < number; ++i) values[i] = choose(there, values[i], vec(0.0));
}

// What a pass leaves at the two ends of each piece.
struct Ends {
  vec left[NN], to_right[NN], to_left[NN], right[NN], r_left[N], r_right[N];
};

inline bool held(const Chain &X, int s, int i) {
  const int l = s < W ? s : W - 1;
  return get(X.free_[(s < W ? 0 : X.m) * N + i], l) < 0.5;
}

// Residuals of the nodes between the pieces; returns the sum of squares.
inline double gather(const Chain &X, const vec *left, const vec *right, double *r) {
  double square = 0.0;
  for (int s = 0; s <= W; ++s)
    for (int i = 0; i < N; ++i) {
      double value = (s < W ? get(left[i], s) : 0.0) + (s > 0 ? get(right[i], s - 1) : 0.0);
      if (held(X, s, i)) value = 0.0;
      r[s * N + i] = value;
      square += value * value;
    }
  return square;
}

// The matrix of the nodes between the pieces, and its LU; false if it is singular or not finite.
__attribute__((noinline)) bool factorise_between(const Chain &X, const Ends &e) {
  Reduced &q = *X.reduced;
  for (int s = 0; s <= W; ++s)
    for (int i = 0; i < N; ++i) {
      const int first = s > 1 ? (s - 2) * N : 0;
      double *row = q.M + (s * N + i) * ROW;
      for (int j = first; j < (s + 2) * N + WINDOW * W && j < ROW; ++j) row[j] = 0.0;
    }
  for (int l = 0; l < W; ++l)
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) {
        double *row = q.M + (l * N + i) * ROW + l * N + j, *next = row + N * ROW;
        row[0] += get(e.left[i * N + j], l);
        row[N] = get(e.to_right[i * N + j], l);
        next[0] = get(e.to_left[i * N + j], l);
        next[N] = get(e.right[i * N + j], l);
      }
  for (int s = 0; s <= W; ++s)
    for (int i = 0; i < N; ++i)
      if (held(X, s, i)) {
        double *row = q.M + (s * N + i) * ROW;
        for (int j = s > 1 ? (s - 1) * N : 0; j < S && j < (s + 2) * N; ++j) row[j] = 0.0;
        row[s * N + i] = 1.0;
      }
  for (int k = 0; k < S; ++k) {
    const int last = k + BAND < S - 1 ? k + BAND : S - 1;
    double *const mine = q.M + k * ROW, *const factors = q.L + k * BELOW * W;
    int p = k;
    double largest = std::fabs(mine[k]);
    for (int i = k + 1; i <= last; ++i) {
      const double size = std::fabs(q.M[i * ROW + k]);
      const bool larger = size > largest;
      largest = larger ? size : largest;
      p = larger ? i : p;
    }
    if (!(largest > 0.0 && largest < 1e300)) return false;
    q.pivot[k] = p;
    // Whole lines of the cache: what stands in them on the left of the pivot is done with.
    const int line = (k + 1) / W * W;
    const double inverse = q.inverse[k] = 1.0 / q.M[p * ROW + k];
    vec pivot[WINDOW + 1];
#pragma GCC unroll 16
    for (int j = 0; j <= WINDOW; ++j) pivot[j] = *(const vec *)(q.M + p * ROW + line + j * W);
    if (p != k) {
      double *const other = q.M + p * ROW;
      other[k] = mine[k];
#pragma GCC unroll 16
      for (int j = 0; j <= WINDOW; ++j) {
        const vec x = *(const vec *)(mine + line + j * W);
        *(vec *)(mine + line + j * W) = pivot[j];
        *(vec *)(other + line + j * W) = x;
      }
    }
    for (int i = k + 1; i <= last; ++i) {
      double *const row = q.M + i * ROW;
      const double factor = factors[i - k - 1] = q.M[i * ROW + k] * inverse;
#pragma GCC unroll 16
      for (int j = 0; j <= WINDOW; ++j)
        *(vec *)(row + line + j * W) = *(const vec *)(row + line + j * W) - factor * pivot[j];
    }
    for (int i = last - k; i < BELOW * W; ++i) factors[i] = 0.0;
  }
  return true;
}

__attribute__((noinline)) void solve_between(const Chain &X) {
  Reduced &q = *X.reduced;
  double *r = q.r;
  for (int j = S; j < ROW; ++j) r[j] = 0.0;
  for (int k = 0; k < S; ++k) {
    const int p = q.pivot[k];
    const double mine = r[p];
    r[p] = r[k];
    r[k] = mine;
#pragma GCC unroll 16
    for (int j = 0; j < BELOW; ++j) {
      double *const below = r + k + 1 + j * W;
      store(below, load(below, (vec *)0) - mine * *(const vec *)(q.L + (k * BELOW + j) * W));
    }
  }
  for (int k = S - 1; k >= 0; --k) {
    const double *const row = q.M + k * ROW;
    vec sum = 0.0;
#pragma GCC unroll 16
    for (int j = 0; j < WINDOW; ++j)
      sum += load(row + k + 1 + j * W, (vec *)0) * load(r + k + 1 + j * W, (vec *)0);
    r[k] = (r[k] - sum_of(sum)) * q.inverse[k];
  }
}

// Residual, tangent and elimination in one pass. False if the nodes between the pieces cannot be
// solved for.
template <class Cell> bool linearise(Chain &X) {
  const long m = X.m;
  Ends e;
  vec A[NN], B[NN], C[NN], E[NN], D[NN], F[NN], before[NN], ra[N], rb[N], r[N];
  vec square = 0.0, smallest = 1e300;
  for (int j = 0; j < NN; ++j) A[j] = B[j] = C[j] = E[j] = 0.0;
  typename Cell::Carry carry;
  Cell::begin(X, carry);
  Cell::tangent(X, 0, carry, A, B, C, E, ra, rb);
  if (X.whole < 1) {
    keep_cells(X, 0, A, NN); keep_cells(X, 0, B, NN); keep_cells(X, 0, C, NN); keep_cells(X, 0, E, NN);
    keep_cells(X, 0, ra, N); keep_cells(X, 0, rb, N);
  }
  for (int j = 0; j < NN; ++j) { e.left[j] = A[j]; e.to_right[j] = B[j]; F[j] = C[j]; before[j] = E[j]; }
  vec first_left[N], first_right[N];
  for (int i = 0; i < N; ++i) { first_left[i] = e.r_left[i] = ra[i]; r[i] = first_right[i] = rb[i]; }
  for (long k = 1; k < m; ++k) {
    vec *const x = X.X + k * N * R3;
    Cell::tangent(X, k, carry, A, B, C, E, ra, rb);
    if (k >= X.whole) {
      keep_cells(X, k, A, NN); keep_cells(X, k, B, NN); keep_cells(X, k, C, NN); keep_cells(X, k, E, NN);
      keep_cells(X, k, ra, N); keep_cells(X, k, rb, N);
    }
    for (int i = 0; i < N; ++i) {
      vec norm = first_right[i] + ra[i];
      if (X.special[k]) norm = choose(less(vec(0.5), X.free_[k * N + i]), norm, vec(0.0));
      square += norm * norm;
      for (int j = 0; j < N; ++j) {
        D[i * N + j] = before[i * N + j] + A[i * N + j];
        x[i * R3 + j] = B[i * N + j];
        x[i * R3 + N + j] = F[i * N + j];
      }
      x[i * R3 + 2 * N] = r[i] + ra[i];
      first_right[i] = rb[i];
    }
    if (X.special[k]) hold_rows(X.free_ + k * N, D, x);
    factorise(D, smallest);
    substitute_all(D, x);
    if (X.factors) {
      vec *const f = X.factors + k * 3 * NN;
      for (int j = 0; j < NN; ++j) { f[j] = D[j]; f[NN + j] = e.to_right[j]; f[2 * NN + j] = C[j]; }
    }
    const vec *const xr = x + 2 * N;
    product_vector(e.to_right, xr, R3, e.r_left, e.r_left);
    product(e.to_right, x + N, e.left, e.left);
    vec G[NN];
    product(e.to_right, x, nullptr, G);
    for (int j = 0; j < NN; ++j) e.to_right[j] = G[j];
    product(C, x, E, before);
    product(C, x + N, nullptr, F);
    product_vector(C, xr, R3, rb, r);
  }
  for (int j = 0; j < NN; ++j) { e.to_left[j] = F[j]; e.right[j] = before[j]; }
  for (int i = 0; i < N; ++i) e.r_right[i] = r[i];
  double between[S];
  X.residual = std::sqrt(sum_of(square) + gather(X, first_left, first_right, between));
  X.smallest = 1e300;
  for (int l = 0; l < W; ++l) if (!(get(smallest, l) > X.smallest)) X.smallest = get(smallest, l);
  gather(X, e.r_left, e.r_right, X.reduced->r);
  return std::isfinite(X.residual) && X.smallest > 0.0 && factorise_between(X, e);
}

// The norm of the residual alone; `out`, if given, gets the residual at the nodes.
template <class Cell> void evaluate(Chain &X, vec *out) {
  vec ra[N], rb[N], r[N], left[N], square = 0.0;
  for (long k = 0; k < X.m; ++k) {
    Cell::residual(X, k, ra, rb);
    if (k >= X.whole) { keep_cells(X, k, ra, N); keep_cells(X, k, rb, N); }
    for (int i = 0; i < N; ++i) {
      if (k == 0) left[i] = ra[i];
      else {
        vec norm = r[i] + ra[i];
        if (X.special[k]) norm = choose(less(vec(0.5), X.free_[k * N + i]), norm, vec(0.0));
        square += norm * norm;
        if (out) out[k * N + i] = norm;
      }
      r[i] = rb[i];
    }
  }
  double between[S];
  X.residual = std::sqrt(sum_of(square) + gather(X, left, r, between));
  if (out)
    for (int i = 0; i < N; ++i)
      for (int l = 0; l < W; ++l) {
        put(out[i], l, between[l * N + i]);
        put(out[X.m * N + i], l, between[(l + 1) * N + i]);
      }
}

// The values of the nodes between the pieces at the two ends of each lane.
inline void spread(const Chain &X, vec *left, vec *right) {
  const double *r = X.reduced->r;
  for (int i = 0; i < N; ++i)
    for (int l = 0; l < W; ++l) { put(left[i], l, r[l * N + i]); put(right[i], l, r[(l + 1) * N + i]); }
}

// u := u - x for the x of the last `linearise`; norms of x and of the new u.
template <class Cell> __attribute__((noinline)) void update(Chain &X) {
  solve_between(X);
  vec left[N], right[N], x[N], u[N], step = 0.0, size = 0.0;
  spread(X, left, right);
  double squares[2] = {0.0, 0.0};
  Cell::add(X, X.m, right, u);
  for (int i = 0; i < N; ++i) {
    const double a = get(right[i], W - 1), b = get(u[i], W - 1);
    if (!held(X, W, i)) squares[0] += a * a;
    squares[1] += b * b;
    x[i] = right[i];
  }
  for (long k = X.m - 1; k >= 0; --k) {
    const vec *const c = X.X + k * N * R3;
    vec now[N];
    for (int i = 0; i < N; ++i) {
      if (k == 0) { now[i] = left[i]; continue; }
      vec sum = c[i * R3 + 2 * N];
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sum -= c[i * R3 + j] * x[j];
#pragma GCC unroll 8
      for (int j = 0; j < N; ++j) sum -= c[i * R3 + N + j] * left[j];
      now[i] = sum;
    }
    for (int i = 0; i < N; ++i) { x[i] = now[i]; step += now[i] * now[i]; }
    Cell::add(X, k, x, u);
    for (int i = 0; i < N; ++i) size += u[i] * u[i];
  }
  X.update = std::sqrt(sum_of(step) + squares[0]);
  X.size = std::sqrt(sum_of(size) + squares[1]);
}

// rhs := (tangent)⁻¹ rhs, with the factors that the last `linearise` has kept.
void apply(Chain &X) {
  const long m = X.m;
  vec left[N], right[N], r[N], a[N];
  for (int i = 0; i < N; ++i) left[i] = X.rhs[i];
  // Of a node that is kept twice the right-hand side counts once.
  for (int i = 0; i < N; ++i) r[i] = m > 1 ? X.rhs[N + i] : vec(0.0);
  for (long k = 1; k < m; ++k) {
    const vec *const f = X.factors + k * 3 * NN;
    if (X.special[k]) {
      for (int i = 0; i < N; ++i)
        r[i] = choose(less(vec(0.5), X.free_[k * N + i]), r[i], X.rhs[k * N + i]);
    }
    substitute<1>(f, r, 1);
    for (int i = 0; i < N; ++i) X.rhs[k * N + i] = a[i] = r[i];
    product_vector(f + NN, a, 1, left, left);
    vec base[N];
    for (int i = 0; i < N; ++i) base[i] = k + 1 < m ? X.rhs[(k + 1) * N + i] : vec(0.0);
    product_vector(f + 2 * NN, a, 1, base, r);
  }
  for (int i = 0; i < N; ++i) right[i] = m > 1 ? r[i] : vec(0.0);
  double *q = X.reduced->r;
  for (int s = 0; s <= W; ++s)
    for (int i = 0; i < N; ++i) {
      const double own = s < W ? get(X.rhs[i], s) : get(X.rhs[m * N + i], W - 1);
      double value = (s < W ? get(left[i], s) : own) + (s > 0 ? get(right[i], s - 1) : 0.0);
      q[s * N + i] = held(X, s, i) ? own : value;
    }
  solve_between(X);
  spread(X, left, right);
  for (int i = 0; i < N; ++i) { X.rhs[i] = left[i]; X.rhs[m * N + i] = right[i]; }
  for (long k = m - 1; k >= 1; --k) {
    const vec *const c = X.X + k * N * R3;
    for (int i = 0; i < N; ++i) {
      vec sum = X.rhs[k * N + i];
      for (int j = 0; j < N; ++j) sum -= c[i * R3 + j] * X.rhs[(k + 1) * N + j];
      for (int j = 0; j < N; ++j) sum -= c[i * R3 + N + j] * left[j];
      X.rhs[k * N + i] = sum;
    }
  }
}

}  // namespace
