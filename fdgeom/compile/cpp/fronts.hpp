// Multifrontal elimination of the equations of nodes where chains meet, in an order that is fixed
// beforehand.
//
// A front is a dense matrix: rows and columns of the unknowns that it eliminates, then of the
// unknowns coupled with them. The Schur complement is added to the front that eliminates those next
// (Duff & Reid, The multifrontal solution of indefinite sparse symmetric linear equations, ACM
// Trans. Math. Softw. 9, 1983). A node is eliminated together with its multipliers. Pivots are
// chosen among the columns that a front eliminates. Included after blocks.hpp.
#include <algorithm>
#include <vector>

namespace {

struct Front {
  long own, size;   // unknowns that are eliminated here; these and those they are coupled with
  long width;       // of a row, in vectors
  long parent;      // the front of the others; -1: there are none
  double* A;        // [size][width W]
  double* L;        // [own][width W]: the factors of each pivot
  double* U;        // [own][own in whole vectors]: the entries above each pivot
  double* inverse;  // [own]: of the pivots
  int* column;      // [own]: where the pivot of each row is
  const int* ids;   // [size]: numbers of the unknowns
  const int* to;    // [size - own]: their places in the parent
  const int* runs;  // [n_runs][3]: runs of these: from, to, length
  long n_runs;
};

struct Fronts {
  const Front* fronts;
  long n;
  double* memory;  // all matrices
  long size;
  const int* ones;  // diagonal entries of given unknowns
  long n_ones;
  double* work;  // two rows of the largest front
};

inline void clear_fronts(const Fronts& q) {
  for (long i = 0; i < q.size; i += W) *(raw*)(q.memory + i) = raw{};
  for (long i = 0; i < q.n_ones; ++i) q.memory[q.ones[i]] = 1.0;
}

// The place of the largest of n values, which lie in whole vectors; -1 if there is none.
inline long largest_of(const double* values, long n, double& largest) {
  raw most = {};
  for (long j = 0; j < n; j += W) {
    const raw sizes = choose(first_lanes(n - j), fabs(*(const raw*)(values + j)), raw{});
    most = sizes > most ? sizes : most;
  }
  largest = 0.0;
  for (int l = 0; l < W; ++l) largest = most[l] > largest ? most[l] : largest;
  for (long j = 0; j < n; ++j)
    if (std::fabs(values[j]) == largest) return j;
  return -1;
}

// A pivot that is smaller relative to its row counts as zero.
constexpr double TINY = 1e-11;

// Eliminates the own unknowns of a front with V vectors per row (0: any number); false if a pivot
// is tiny.
template <long V>
bool eliminate_front(const Front& q, double tiny) {
  const long width = V ? V : q.width, stride = width * W, own = q.own;
  double* const inverses = q.inverse;
  for (long k = 0; k < own; ++k) {
    raw most = {};
    for (long j = 0; j < width; ++j) {
      const raw size = fabs(*(const raw*)(q.A + k * stride + j * W));
      most = choose(most < size, size, most);
    }
    inverses[k] = 0.0;
    for (int l = 0; l < W; ++l) inverses[k] = std::max(inverses[k], most[l]);
  }
  for (long k = 0; k < own; ++k) {
    double *const mine = q.A + k * stride, *const factors = q.L + k * stride;
    double largest;
    long c = largest_of(mine, own, largest);
    // Columns that are eliminated already contain only round-off.
    const auto is_left = [&](long j) { return std::find(q.column, q.column + k, j) == q.column + k; };
    if (tiny == 0.0 && !is_left(c)) {
      largest = 0.0;
      for (long j = 0; j < own; ++j)
        if (is_left(j) && std::fabs(mine[j]) > largest) largest = std::fabs(mine[c = j]);
    }
    if (!(c >= 0 && largest > tiny * inverses[k] && largest < 1e300)) return false;
    if (!is_left(c)) return false;
    q.column[k] = c;
    const double inverse = inverses[k] = 1.0 / mine[c];
    raw pivot[V ? V : 1];
    if (V)
#pragma GCC unroll 8
      for (long j = 0; j < width; ++j) pivot[V ? j : 0] = *(const raw*)(mine + j * W);
    for (long i = k + 1; i < q.size; ++i) {
      double* const row = q.A + i * stride;
      const double factor = factors[i] = row[c] * inverse;
      if (factor == 0.0) continue;
#pragma GCC unroll 8
      for (long j = 0; j < width; ++j)
        *(raw*)(row + j * W) = *(const raw*)(row + j * W) -
                               factor * (V ? pivot[V ? j : 0] : *(const raw*)(mine + j * W));
    }
  }
  const long above = (own + W - 1) / W * W;
  for (long j = 1; j < own; ++j)
    for (long k = 0; k < j; ++k) q.U[j * above + k] = q.A[k * stride + q.column[j]];
  return true;
}

inline void add_to_parent(const Front& q, const Front& parent) {
  const long stride = q.width * W;
  for (long i = q.own; i < q.size; ++i) {
    const double* const row = q.A + i * stride + q.own;
    double* const target = parent.A + q.to[i - q.own] * parent.width * W;
    for (long r = 0; r < q.n_runs; ++r) {
      const int* const run = q.runs + 3 * r;
      for (int j = 0; j < run[2]; ++j) target[run[1] + j] += row[run[0] + j];
    }
  }
}

// The number of negative eigenvalues of the symmetric block that a front eliminates.
inline int negative_in(const Front& q) {
  std::vector<double> A(q.own * q.own);
  for (long i = 0; i < q.own; ++i) std::copy_n(q.A + i * q.width * W, q.own, A.data() + i * q.own);
  return negative_eigenvalues(A.data(), int(q.own));
}

// `negative`: gets the number of negative eigenvalues of a symmetric matrix; null: they are not
// counted. `least`: as TINY, for the last front, which is near singular only if the whole matrix is.
inline bool factorise_fronts(const Fronts& q, int* negative, double least) {
  static constexpr bool (*by_width[])(const Front&, double) = {
      eliminate_front<0>, eliminate_front<1>, eliminate_front<2>,
      eliminate_front<3>, eliminate_front<4>, eliminate_front<5>};
  if (negative) *negative = 0;
  for (long f = 0; f < q.n; ++f) {
    const Front& front = q.fronts[f];
    if (negative) *negative += negative_in(front);
    const double tiny = front.parent < 0 ? least : TINY;
    if (!by_width[front.width < 6 ? front.width : 0](front, tiny)) return false;
    if (front.parent >= 0) add_to_parent(front, q.fronts[front.parent]);
  }
  return true;
}

// r := the solution for the right-hand side r.
inline void solve_fronts(const Fronts& q, double* r) {
  double* const y = q.work;
  for (long f = 0; f < q.n; ++f) {
    const Front& front = q.fronts[f];
    const long width = front.width, stride = width * W, own = front.own;
    for (long i = 0; i < own; ++i) y[i] = r[front.ids[i]];
    for (long i = own; i < stride; ++i) y[i] = 0.0;
    for (long k = 0; k < own; ++k) {
      const double mine = y[k], *const factors = front.L + k * stride;
      for (long j = k / W; j < width; ++j)
        *(raw*)(y + j * W) = *(const raw*)(y + j * W) - mine * *(const raw*)(factors + j * W);
    }
    for (long i = 0; i < own; ++i) r[front.ids[i]] = y[i];
    for (long i = own; i < front.size; ++i) r[front.ids[i]] += y[i];
  }
  for (long f = q.n - 1; f >= 0; --f) {
    const Front& front = q.fronts[f];
    const long width = front.width, stride = width * W, own = front.own, above = (own + W - 1) / W;
    double* const x = y + stride;
    for (long i = 0; i < own; ++i) x[i] = 0.0;
    for (long i = own; i < front.size; ++i) x[i] = r[front.ids[i]];
    for (long i = front.size; i < stride; ++i) x[i] = 0.0;
    for (long k = 0; k < own; ++k) {
      const double* const row = front.A + k * stride;
      raw sum = {};
      for (long j = own / W; j < width; ++j)
        sum += *(const raw*)(row + j * W) * *(const raw*)(x + j * W);
      y[k] = r[front.ids[k]] - total(sum);
    }
    for (long i = own; i < above * W; ++i) y[i] = 0.0;
    for (long k = own - 1; k >= 0; --k) {
      const double found = y[k] * front.inverse[k], *const column = front.U + k * above * W;
      for (long j = 0; j <= k / W; ++j)
        *(raw*)(y + j * W) = *(const raw*)(y + j * W) - found * *(const raw*)(column + j * W);
      r[front.ids[front.column[k]]] = found;
    }
  }
}

}  // namespace
