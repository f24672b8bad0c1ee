// The reduced system of the unknowns between the pieces of chains: a banded LU with row exchanges, or
// fronts. Included after fronts.hpp, before chain.hpp.

namespace {

// The bandwidth of the reduced system of one chain, and its width in whole vectors to the right of a
// pivot and below it.
constexpr int CHAIN = 2 * N - 1;

inline constexpr long window_of(long band) { return (2 * band + W - 1) / W; }
inline constexpr long below_of(long band) { return (band + W - 1) / W; }

// The reduced system. See structs.py.
struct Reduced {
  long n, band;                 // unknowns, bandwidth
  long length;                  // of a row, which begins at first(i)
  double *M, *L, *r, *inverse;  // L: the factors below each pivot; r: a right-hand side, padded
  double *square;               // [n]: the residual
  int *pivot;
  const unsigned char *held;    // [n]: whether it is given
  const int *reach;             // [n]: the last entry of each row of the matrix
  int *last;                    // [n]: the same while rows are eliminated
  const Fronts *fronts;         // null: there are none
  int in_fronts;                // whether the matrix is stored there
  long first(long i) const { return i > band ? (i - band) / W * W : 0; }
  double *row(long i) const { return M + i * length - first(i); }
};

inline void clear_between(const Reduced &q) {
  if (q.in_fronts) clear_fronts(*q.fronts);
  else for (long i = 0; i < q.n * q.length; ++i) q.M[i] = 0.0;
  for (long i = 0; i < q.n; ++i) q.r[i] = q.square[i] = 0.0;
}
inline void clear_rows(const Reduced &q) {
  for (long i = 0; i < q.n; ++i) {
    if (!q.held[i]) continue;
    q.r[i] = q.square[i] = 0.0;
    if (q.in_fronts) continue;
    double *const row = q.row(i);
    for (long j = q.first(i); j < q.first(i) + q.length; ++j) row[j] = 0.0;
    row[i] = 1.0;
  }
}
inline double sum_of_squares(const Reduced &q) {
  double sum = 0.0;
  for (long i = 0; i < q.n; ++i) sum += q.square[i] * q.square[i];
  return sum;
}

// Sums over the ranks. Each rank has pieces of its own, and solves the whole reduced system.
struct Ranks {
  int (*allreduce)(const void *, void *, int, void *, void *, void *);  // MPI's
  void *real, *add, *comm;
  double *own, *all;  // as many values as a sum may have
};

inline void sum_over(const Ranks *ranks, double *values, int number) {
  if (!ranks) return;
  ranks->allreduce(values, ranks->all, number, ranks->real, ranks->add, ranks->comm);
  for (int i = 0; i < number; ++i) values[i] = ranks->all[i];
}

// Sums over the ranks, in one call: the residual of the reduced system, with `matrix` also its matrix and
// right-hand side, and other values.
inline void sum_between(const Ranks *ranks, const Reduced &q, bool matrix, double *values, int number) {
  if (!ranks) return;
  double *to = ranks->own;
  const auto pass = [&](auto each) {
    for (long i = 0; i < q.n; ++i) {
      each(q.square[i]);
      if (!matrix) continue;
      each(q.r[i]);
      double *const row = q.row(i);
      for (long j = i > q.band ? i - q.band : 0; j <= i + q.band && j < q.n; ++j) each(row[j]);
    }
    for (int i = 0; i < number; ++i) each(values[i]);
  };
  pass([&](double &x) { *to++ = x; });
  ranks->allreduce(ranks->own, ranks->all, int(to - ranks->own), ranks->real, ranks->add, ranks->comm);
  const double *from = ranks->all;
  pass([&](double &x) { x = *from++; });
}

// LU of the reduced system; false if it is singular or not finite. BAND: the bandwidth if it is known at
// compile time, else 0.
template <long BAND> bool factorise_band(const Reduced &q) {
  const long band = BAND ? BAND : q.band, window = window_of(band), below = below_of(band);
  vec pivot[BAND ? window_of(BAND) + 1 : 1];
  for (long i = 0; !BAND && i < q.n; ++i) q.last[i] = q.reach[i];
  long reached = 0;  // the last row that has anything in this column: rows end as columns do
  for (long k = 0; k < q.n; ++k) {
    long last = k + band < q.n - 1 ? k + band : q.n - 1;
    if (!BAND) {
      if (q.reach[k] > reached) reached = q.reach[k];
      if (reached < last) last = reached;
    }
    double *const mine = q.row(k), *const factors = q.L + k * below * W;
    long p = k;
    double largest = std::fabs(mine[k]);
    // The row of a given unknown remains its own pivot, so that its value is exact.
    for (long i = k + 1; i <= last && !q.held[k]; ++i) {
      const double size = std::fabs(q.row(i)[k]);
      const bool larger = size > largest;
      largest = larger ? size : largest;
      p = larger ? i : p;
    }
    if (!(largest > 0.0 && largest < 1e300)) return false;
    q.pivot[k] = p;
    // Whole cache lines: entries to the left of the pivot are not used any more.
    const long line = (k + 1) / W * W;
    double *const other = q.row(p);
    // Rows end before the band does where chains are joined to nets.
    if (!BAND && p != k) std::swap(q.last[k], q.last[p]);
    const long width = BAND ? window : (q.last[k] - line) / W;
    const double inverse = q.inverse[k] = 1.0 / other[k];
    if (p != k) {
      other[k] = mine[k];
      const long longer = BAND ? window : ((q.last[p] > q.last[k] ? q.last[p] : q.last[k]) - line) / W;
#pragma GCC unroll 16
      for (long j = 0; j <= longer; ++j) {
        vec *const a = (vec *)(mine + line + j * W), *const b = (vec *)(other + line + j * W);
        const vec x = *a;
        *a = *b;
        *b = x;
      }
    }
    if (BAND)
#pragma GCC unroll 16
      for (long j = 0; j <= window; ++j) pivot[BAND ? j : 0] = *(const vec *)(mine + line + j * W);
    for (long i = k + 1; i <= last; ++i) {
      double *const row = q.row(i);
      const double factor = factors[i - k - 1] = row[k] * inverse;
      if (!BAND && factor == 0.0) continue;
      if (!BAND && q.last[i] < q.last[k]) q.last[i] = q.last[k];
#pragma GCC unroll 16
      for (long j = 0; j <= width; ++j)
        *(vec *)(row + line + j * W) =
            *(const vec *)(row + line + j * W) - factor * (BAND ? pivot[BAND ? j : 0] : *(const vec *)(mine + line + j * W));
    }
    for (long i = last - k; i < below * W; ++i) factors[i] = 0.0;
  }
  return true;
}

template <long BAND> void solve_band(const Reduced &q) {
  const long band = BAND ? BAND : q.band, window = window_of(band), below = below_of(band);
  double *const r = q.r;
  for (long j = q.n; j < q.n + (window + 2) * W; ++j) r[j] = 0.0;
  for (long k = 0; k < q.n; ++k) {
    const long p = q.pivot[k];
    const double mine = r[p];
    r[p] = r[k];
    r[k] = mine;
#pragma GCC unroll 16
    for (long j = 0; j < below; ++j) {
      double *const under = r + k + 1 + j * W;
      store(under, load(under, (vec *)0) - mine * *(const vec *)(q.L + (k * below + j) * W));
    }
  }
  for (long k = q.n - 1; k >= 0; --k) {
    const double *const row = q.row(k);
    const long width = BAND ? window : (q.last[k] - k + W - 1) / W;
    vec sum = 0.0;
#pragma GCC unroll 16
    for (long j = 0; j < width; ++j)
      sum += load(row + k + 1 + j * W, (vec *)0) * load(r + k + 1 + j * W, (vec *)0);
    r[k] = (r[k] - sum_of(sum)) * q.inverse[k];
  }
}

__attribute__((noinline)) bool factorise_between(const Reduced &q) {
  if (LINKED && q.in_fronts) return factorise_fronts(*q.fronts);
  return q.band == CHAIN ? factorise_band<CHAIN>(q) : factorise_band<0>(q);
}
__attribute__((noinline)) void solve_between(const Reduced &q) {
  if (LINKED && q.in_fronts) solve_fronts(*q.fronts, q.r);
  else if (q.band == CHAIN) solve_band<CHAIN>(q);
  else solve_band<0>(q);
}

}  // namespace
