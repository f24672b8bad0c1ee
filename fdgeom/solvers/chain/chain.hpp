// Linear algebra of Newton's method on chains of blocks, cut into pieces side by side, one in each SIMD lane.
//
// A group has W pieces; piece l has count[l] <= m cells and one node more. Values are stored [node or
// cell of the piece][component][lane], so the values of a cell's two nodes are neighbours. Memory beyond
// the end of a piece repeats its last node. Each piece has its own copy of a node that it shares.
//
// The nodes inside the pieces are eliminated from left to right, as soon as their two cells are known,
// with a Schur complement towards the left end of the piece (Polizzi & Sameh, SPIKE, Parallel
// Computing 32, 2006): without pivoting, in the order of the chain. The unknowns at the ends of the
// pieces, and in the links that join them, form the reduced system of between.hpp.
// Included after blocks.hpp, between.hpp and alone.hpp; the generated code follows with the classes Cell,
// of a cell of the pieces, and Link, of a link between two nodes.

namespace {

// See structs.py for these two.
struct Chain {
  vec *const *F;            // functions
  double *const *C;         // constants
  long m;                   // cells of the longest piece
  const long *count;        // cells of each lane
  long whole;               // cells that all lanes have
  vec *free_;               // [m + 1][unknowns]: 1 where an unknown is free, 0 where it is given
  const unsigned char *special;  // [m + 1]: whether some are not free there
  const vec *once;          // [m + 1][unknowns]: 1 for the first copy of an unknown, 0 for others
  const vec *nodes;         // [m + 1]: the same for the nodes
  const unsigned char *there;    // [W]: whether the lane has its own piece; else it repeats another
  const int *left, *right;  // [unknowns][W]: their numbers between the pieces; -1 where there is none
  const int *source, *target;  // [entries]: of the blocks at the ends, and their places in the fronts
  long entries;
  vec *X;                   // [m + 1][N][2 N + 1]
  vec *factors;             // [m + 1][3 N N] for other right-hand sides; null if there are none
  vec *rhs;                 // [m + 1][unknowns]: a right-hand side, and a solution
  vec *given;               // [m + 1][unknowns]: where an unknown is given its value, or what it moves by
  vec *saved;               // [m + 1][unknowns]: the unknown before a step
  vec *normal, *step;       // [m + 1][unknowns]: of a border; null if there is none
  Alone *alone;             // for isolated pieces; null for others
};

struct Net {
  Chain *rods;
  long n_rods;
  Chain *links;
  long n_links;
  Reduced between;
  const Ranks *ranks;       // null on one
  double residual, update, size;  // norms of the last evaluation and of the last update
  double smallest;          // least pivot of the last elimination beside its diagonal entry
};

inline lane_mask has_cell(const Chain &X, long k) {
  lane_mask there;
  for (int l = 0; l < W; ++l) there[l] = k < X.count[l] ? -1 : 0;
  return there;
}

// The residual of a given unknown: zero if its value is set, else minus its prescribed increment.
inline vec left_over(const vec &given) { return RELATIVE ? -given : vec(0.0); }

// Replaces the rows of given unknowns by those of the identity.
inline void hold_rows(const vec *free_, const vec *given, vec *D, vec *X) {
  for (int i = 0; i < N; ++i) {
    const lane_mask keep = less(vec(0.5), free_[i]);
    for (int j = 0; j < N; ++j) D[i * N + j] = choose(keep, D[i * N + j], vec(i == j ? 1.0 : 0.0));
    for (int j = 0; j < 2 * N; ++j) X[i * R3 + j] = choose(keep, X[i * R3 + j], vec(0.0));
    X[i * R3 + 2 * N] = choose(keep, X[i * R3 + 2 * N], left_over(given[i]));
  }
}

// Result of the elimination at the two ends of each piece, with the four blocks one after another.
struct Ends {
  vec left[NN], to_right[NN], to_left[NN], right[NN], r_left[N], r_right[N];
  vec first_left[N], first_right[N];  // the residuals there
};

// Adds entries of the two ends of each lane to those of the reduced system.
template <int n> void add_entries(const Chain &X, const vec *left, const vec *right, double *r) {
  for (int l = 0; l < W; ++l) {
    if (!X.there[l]) continue;
    for (int i = 0; i < n; ++i) {
      const int a = X.left[i * W + l], b = X.right[i * W + l];
      if (a >= 0) r[a] += get(left[i], l);
      if (b >= 0) r[b] += get(right[i], l);
    }
  }
}
template <int n> __attribute__((noinline)) void add_blocks(const Chain &X, const Reduced &q, const vec *left,
                                                         const vec *to_right, const vec *to_left, const vec *right) {
  for (int l = 0; l < W; ++l) {
    if (!X.there[l]) continue;
    for (int i = 0; i < n; ++i) {
      const int a = X.left[i * W + l], b = X.right[i * W + l];
      double *const first = a >= 0 ? q.row(a) : nullptr, *const last = b >= 0 ? q.row(b) : nullptr;
      for (int j = 0; j < n; ++j) {
        const int c = X.left[j * W + l], d = X.right[j * W + l];
        if (first && c >= 0) first[c] += get(left[i * n + j], l);
        if (first && d >= 0) first[d] += get(to_right[i * n + j], l);
        if (last && c >= 0) last[c] += get(to_left[i * n + j], l);
        if (last && d >= 0) last[d] += get(right[i * n + j], l);
      }
    }
  }
}

// Adds the four blocks to the matrix of the reduced system.
template <int n> void add_ends(const Chain &X, const Reduced &q, const vec *blocks) {
  if (!q.in_fronts) {
    add_blocks<n>(X, q, blocks, blocks + n * n, blocks + 2 * n * n, blocks + 3 * n * n);
    return;
  }
  const double *const from = (const double *)blocks;
  for (long e = 0; e < X.entries; ++e) q.fronts->memory[X.target[e]] += from[X.source[e]];
}

// Sets the right-hand side of given unknowns between the pieces to minus their increments.
template <class Link> void put_given(const Net &X) {
  const Reduced &q = X.between;
  const auto put = [&](const Chain &Y, auto size) {
    constexpr int n = decltype(size)::value;
    for (int i = 0; i < n; ++i)
      for (int l = 0; l < W; ++l) {
        if (!Y.there[l]) continue;
        const int a = Y.left[i * W + l], b = Y.right[i * W + l];
        if (a >= 0 && q.held[a]) q.r[a] = q.square[a] = -get(Y.given[i], l);
        if (b >= 0 && q.held[b]) q.r[b] = q.square[b] = -get(Y.given[Y.m * n + i], l);
      }
  };
  for (long g = 0; g < X.n_rods; ++g) put(X.rods[g], std::integral_constant<int, N>());
  if constexpr (Link::there)
    for (long g = 0; g < X.n_links; ++g) put(X.links[g], std::integral_constant<int, Link::n>());
}

// The place of an unknown of the two ends (left, then right) among those of all nodes; which are free.
inline long at_end(const Chain &X, int i) { return i < N ? i : X.m * N + i - N; }
inline void free_ends(const Chain &X, vec *free_) {
  for (int i = 0; i < TWO; ++i) free_[i] = X.free_[at_end(X, i)];
}
// The square of the residual at the ends of isolated pieces.
inline vec square_of_ends(const Chain &X, const vec *left, const vec *right) {
  vec free_[TWO], sum = 0.0;
  free_ends(X, free_);
  for (int i = 0; i < TWO; ++i) {
    const vec own = i < N ? left[i] : right[i - N];
    const vec r = choose(less(vec(0.5), free_[i]), own, left_over(X.given[at_end(X, i)]));
    sum += r * r;
  }
  lane_mask there;
  for (int l = 0; l < W; ++l) there[l] = X.there[l] ? -1 : 0;
  return choose(there, sum, vec(0.0));
}

// Values where `there`, others elsewhere.
inline void blend(lane_mask there, vec *values, const vec *others, int number) {
  for (int i = 0; i < number; ++i) values[i] = choose(there, values[i], others[i]);
}

// Residual, tangent and elimination of a group in one pass.
template <class Cell> __attribute__((noinline)) void eliminate(const Chain &X, Ends &e, vec &square, vec &smallest) {
  const long m = X.m;
  vec A[NN], B[NN], C[NN], E[NN], D[NN], F[NN], before[NN], ra[N], rb[N], r[N];
  for (int j = 0; j < NN; ++j) A[j] = B[j] = C[j] = E[j] = 0.0;
  typename Cell::Carry carry;
  Cell::begin(X, carry);
  Cell::tangent(X, 0, carry, A, B, C, E, ra, rb);
  for (int j = 0; j < NN; ++j) { e.left[j] = A[j]; e.to_right[j] = B[j]; F[j] = C[j]; before[j] = E[j]; }
  for (int i = 0; i < N; ++i) { e.first_left[i] = e.r_left[i] = ra[i]; r[i] = e.first_right[i] = rb[i]; }
  Ends kept;
  vec kept_before[NN], kept_F[NN], kept_r[N];
  for (long k = 1; k < m; ++k) {
    vec *const x = X.X + k * N * R3;
    const bool ragged = k >= X.whole;
    const lane_mask there = ragged ? has_cell(X, k) : lane_mask{};
    Cell::tangent(X, k, carry, A, B, C, E, ra, rb);
    if (ragged) {
      kept = e;
      for (int j = 0; j < NN; ++j) { kept_before[j] = before[j]; kept_F[j] = F[j]; }
      for (int i = 0; i < N; ++i) kept_r[i] = r[i];
    }
    for (int i = 0; i < N; ++i) {
      vec norm = e.first_right[i] + ra[i];
      if (X.special[k]) norm = choose(less(vec(0.5), X.free_[k * N + i]), norm, left_over(X.given[k * N + i]));
      if (ragged) norm = choose(there, norm, vec(0.0));
      square += choose(less(vec(0.5), X.nodes[k]), norm * norm, vec(0.0));
      for (int j = 0; j < N; ++j) {
        D[i * N + j] = before[i * N + j] + A[i * N + j];
        x[i * R3 + j] = B[i * N + j];
        x[i * R3 + N + j] = F[i * N + j];
      }
      x[i * R3 + 2 * N] = r[i] + ra[i];
      e.first_right[i] = rb[i];
    }
    if (X.special[k]) hold_rows(X.free_ + k * N, X.given + k * N, D, x);
    if (ragged)
      for (int i = 0; i < N; ++i) {
        for (int j = 0; j < N; ++j) D[i * N + j] = choose(there, D[i * N + j], vec(i == j ? 1.0 : 0.0));
        // Beyond the end of a piece the node equals that at its end.
        for (int j = 0; j < R3; ++j) x[i * R3 + j] = choose(there, x[i * R3 + j], vec(i == j ? -1.0 : 0.0));
      }
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
    if (ragged) {
      blend(there, (vec *)&e, (const vec *)&kept, sizeof(Ends) / sizeof(vec));
      blend(there, before, kept_before, NN);
      blend(there, F, kept_F, NN);
      blend(there, r, kept_r, N);
    }
  }
  for (int j = 0; j < NN; ++j) { e.to_left[j] = F[j]; e.right[j] = before[j]; }
  for (int i = 0; i < N; ++i) e.r_right[i] = r[i];
}

// The factors and the update at the ends of isolated pieces.
__attribute__((noinline)) void close_alone(const Chain &X, const Ends &e, vec &smallest) {
  Alone &q = *X.alone;
  vec free_[TWO];
  free_ends(X, free_);
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      q.A[i * TWO + j] = e.left[i * N + j];
      q.A[i * TWO + N + j] = e.to_right[i * N + j];
      q.A[(N + i) * TWO + j] = e.to_left[i * N + j];
      q.A[(N + i) * TWO + N + j] = e.right[i * N + j];
    }
    q.x[i] = e.r_left[i];
    q.x[N + i] = e.r_right[i];
  }
  for (int i = 0; i < TWO; ++i) {
    const lane_mask keep = less(vec(0.5), free_[i]);
    for (int j = 0; j < TWO; ++j) q.A[i * TWO + j] = choose(keep, q.A[i * TWO + j], vec(i == j ? 1.0 : 0.0));
    q.x[i] = choose(keep, q.x[i], left_over(X.given[at_end(X, i)]));
  }
  factorise_alone(q, free_, smallest);
  solve_alone(q, q.x);
}

// Residual and tangent, condensed to the reduced system, stored in fronts or in the band. False if a
// pivot inside the pieces is zero.
template <class Cell, class Link> __attribute__((noinline)) bool condense(Net &X, bool in_fronts) {
  X.between.in_fronts = in_fronts;
  const Reduced &q = X.between;
  clear_between(q);
  vec square = 0.0, smallest = 1e300;
  for (long g = 0; g < X.n_rods; ++g) {
    Ends e;
    eliminate<Cell>(X.rods[g], e, square, smallest);
    if (X.rods[g].alone) {
      square += square_of_ends(X.rods[g], e.first_left, e.first_right);
      close_alone(X.rods[g], e, smallest);
      continue;
    }
    add_ends<N>(X.rods[g], q, e.left);
    add_entries<N>(X.rods[g], e.r_left, e.r_right, q.r);
    add_entries<N>(X.rods[g], e.first_left, e.first_right, q.square);
  }
  if constexpr (Link::there) {
    constexpr int n = Link::n;
    vec blocks[4 * n * n], ra[n], rb[n];
    for (int j = 0; j < 4 * n * n; ++j) blocks[j] = 0.0;
    for (long g = 0; g < X.n_links; ++g) {
      typename Link::Carry carry;
      Link::begin(X.links[g], carry);
      Link::tangent(X.links[g], 0, carry, blocks, blocks + n * n, blocks + 2 * n * n, blocks + 3 * n * n, ra, rb);
      add_ends<n>(X.links[g], q, blocks);
      add_entries<n>(X.links[g], ra, rb, q.r);
      add_entries<n>(X.links[g], ra, rb, q.square);
    }
  }
  X.smallest = 1e300;
  for (int l = 0; l < W; ++l) if (!(get(smallest, l) > X.smallest)) X.smallest = get(smallest, l);
  double sums[2] = {sum_of(square), X.smallest > 0.0 ? 0.0 : 1.0};
  sum_between(X.ranks, q, true, sums, 2);
  clear_rows(q);
  if (RELATIVE) put_given<Link>(X);
  X.residual = std::sqrt(sums[0] + sum_of_squares(q));
  return std::isfinite(X.residual) && sums[1] == 0.0;
}

// Condenses and factorises the reduced system, by fronts first; false if it is singular.
template <class Cell, class Link> __attribute__((noinline)) bool linearise(Net &X) {
  const bool in_fronts = X.between.fronts;
  if (!condense<Cell, Link>(X, in_fronts)) return false;
  if (factorise_between(X.between)) return true;
  return in_fronts && condense<Cell, Link>(X, false) && factorise_between(X.between);
}

// The norm of the residual alone. If factors are kept, rhs becomes the residual; at the ends of pieces it
// has the contributions of each piece.
template <class Cell, class Link> __attribute__((noinline)) void evaluate(Net &X) {
  const Reduced &q = X.between;
  for (long i = 0; i < q.n; ++i) q.square[i] = 0.0;
  vec square = 0.0;
  for (long g = 0; g < X.n_rods; ++g) {
    const Chain &Y = X.rods[g];
    vec ra[N], rb[N], r[N], left[N];
    for (long k = 0; k < Y.m; ++k) {
      Cell::residual(Y, k, ra, rb);
      const lane_mask there = k >= Y.whole ? has_cell(Y, k) : lane_mask{};
      for (int i = 0; i < N; ++i) {
        if (k == 0) { left[i] = ra[i]; r[i] = rb[i]; continue; }
        vec norm = r[i] + ra[i];
        if (Y.special[k]) norm = choose(less(vec(0.5), Y.free_[k * N + i]), norm, left_over(Y.given[k * N + i]));
        if (k >= Y.whole) norm = choose(there, norm, vec(0.0));
        if (Y.factors) Y.rhs[k * N + i] = norm;
        square += choose(less(vec(0.5), Y.nodes[k]), norm * norm, vec(0.0));
        r[i] = k >= Y.whole ? choose(there, rb[i], r[i]) : rb[i];
      }
    }
    for (int i = 0; Y.factors && i < N; ++i) { Y.rhs[i] = left[i]; Y.rhs[Y.m * N + i] = r[i]; }
    if (Y.alone) square += square_of_ends(Y, left, r);
    else add_entries<N>(Y, left, r, q.square);
  }
  if constexpr (Link::there)
    for (long g = 0; g < X.n_links; ++g) {
      vec *const ra = X.links[g].rhs, *const rb = ra + Link::n;
      Link::residual(X.links[g], 0, ra, rb);
      add_entries<Link::n>(X.links[g], ra, rb, q.square);
    }
  double inside = sum_of(square);
  sum_between(X.ranks, q, false, &inside, 1);
  for (long i = 0; i < q.n; ++i) if (q.held[i]) q.square[i] = 0.0;
  if (RELATIVE) put_given<Link>(X);
  X.residual = std::sqrt(inside + sum_of_squares(q));
}

// The solution at the two ends of each lane: of the reduced system, or of isolated pieces.
template <int n> void spread(const Chain &X, const Reduced &q, vec *left, vec *right) {
  if (X.alone) {
    for (int i = 0; i < n; ++i) { left[i] = X.alone->x[i]; right[i] = X.alone->x[n + i]; }
    return;
  }
  for (int i = 0; i < n; ++i)
    for (int l = 0; l < W; ++l) {
      const int a = X.left[i * W + l], b = X.right[i * W + l];
      put(left[i], l, a >= 0 ? q.r[a] : 0.0);
      put(right[i], l, b >= 0 ? q.r[b] : 0.0);
    }
}

// Adds squares of values, without repeated copies.
template <int n> void count(const Chain &X, long k, const vec *values, vec &sum) {
  for (int i = 0; i < n; ++i) sum += choose(less(vec(0.5), X.once[k * n + i]), values[i] * values[i], vec(0.0));
}

// u := u - x for the x of the last `linearise`; norms of x and of the new u.
template <class Cell, class Link> __attribute__((noinline)) void update(Net &X) {
  const Reduced &q = X.between;
  solve_between(q);
  vec step = 0.0, size = 0.0;
  for (long g = 0; g < X.n_rods; ++g) {
    const Chain &Y = X.rods[g];
    vec left[N], x[N], u[N];
    spread<N>(Y, q, left, x);
    Cell::add(Y, Y.m, x, u);
    count<N>(Y, Y.m, x, step);
    count<N>(Y, Y.m, u, size);
    for (long k = Y.m - 1; k >= 0; --k) {
      const vec *const c = Y.X + k * N * R3;
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
      for (int i = 0; i < N; ++i) x[i] = now[i];
      Cell::add(Y, k, x, u);
      count<N>(Y, k, x, step);
      count<N>(Y, k, u, size);
    }
  }
  if constexpr (Link::there)
    for (long g = 0; g < X.n_links; ++g) {
      constexpr int n = Link::n;
      vec left[n], right[n], u[n];
      spread<n>(X.links[g], q, left, right);
      Link::add(X.links[g], 0, left, u);
      count<n>(X.links[g], 0, left, step);
      count<n>(X.links[g], 0, u, size);
      Link::add(X.links[g], 1, right, u);
      count<n>(X.links[g], 1, right, step);
      count<n>(X.links[g], 1, u, size);
    }
  double sums[2] = {sum_of(step), sum_of(size)};
  sum_over(X.ranks, sums, 2);
  X.update = std::sqrt(sums[0]);
  X.size = std::sqrt(sums[1]);
}

// The norm of the unknown.
template <class Cell, class Link> double norm_of_unknown(const Net &X) {
  vec size = 0.0;
  const auto add = [&](const Chain &Y, auto cell) {
    using Which = decltype(cell);
    vec u[Which::n];
    for (long k = 0; k <= Y.m; ++k) { Which::values(Y, k, u); count<Which::n>(Y, k, u, size); }
  };
  for (long g = 0; g < X.n_rods; ++g) add(X.rods[g], Cell());
  if constexpr (Link::there) for (long g = 0; g < X.n_links; ++g) add(X.links[g], Link());
  double sum = sum_of(size);
  sum_over(X.ranks, &sum, 1);
  return std::sqrt(sum);
}

// `apply` at the ends of isolated pieces: from rhs and the contributions of the nodes inside.
template <bool parts> void apply_alone(const Chain &X, const vec *left, const vec *right, bool moving) {
  vec free_[TWO], *const x = X.alone->x;
  free_ends(X, free_);
  for (int i = 0; i < TWO; ++i) {
    const vec own = X.rhs[at_end(X, i)];
    const vec given = parts ? (moving ? left_over(X.given[at_end(X, i)]) : vec(0.0)) : own;
    x[i] = choose(less(vec(0.5), free_[i]), own + (i < N ? left[i] : right[i - N]), given);
  }
  solve_alone(*X.alone, x);
}

// rhs := (tangent)⁻¹ rhs, with the factors that the last `linearise` has kept. `parts`: rhs at the ends of
// pieces consists of contributions of each piece, and given unknowns move by their increments if
// `moving`; else rhs is complete there.
template <class Link, bool parts = false> __attribute__((noinline)) void apply(Net &X, bool moving = false) {
  const Reduced &q = X.between;
  for (long i = 0; i < q.n; ++i) q.r[i] = 0.0;
  for (long g = 0; g < X.n_rods; ++g) {
    const Chain &Y = X.rods[g];
    const long m = Y.m;
    vec left[N], r[N], a[N];
    // The right-hand sides at the ends are added below, once each.
    for (int i = 0; i < N; ++i) { left[i] = 0.0; r[i] = choose(has_cell(Y, 1), m > 1 ? Y.rhs[N + i] : vec(0.0), vec(0.0)); }
    for (long k = 1; k < m; ++k) {
      const vec *const f = Y.factors + k * 3 * NN;
      const lane_mask there = has_cell(Y, k), next = has_cell(Y, k + 1);
      if (Y.special[k])
        for (int i = 0; i < N; ++i) r[i] = choose(less(vec(0.5), Y.free_[k * N + i]), r[i], Y.rhs[k * N + i]);
      for (int i = 0; i < N; ++i) a[i] = r[i];
      substitute<1>(f, a, 1);
      for (int i = 0; i < N; ++i) Y.rhs[k * N + i] = a[i] = choose(there, a[i], vec(0.0));
      product_vector(f + NN, a, 1, left, left);
      vec base[N], after[N];
      for (int i = 0; i < N; ++i) base[i] = k + 1 < m ? choose(next, Y.rhs[(k + 1) * N + i], vec(0.0)) : vec(0.0);
      product_vector(f + 2 * NN, a, 1, base, after);
      for (int i = 0; i < N; ++i) r[i] = choose(there, after[i], r[i]);
    }
    if (m == 1) for (int i = 0; i < N; ++i) r[i] = 0.0;
    if (Y.alone) apply_alone<parts>(Y, left, r, moving);
    else add_entries<N>(Y, left, r, q.r);
  }
  const auto own = [&](const Chain &Y, auto size) {
    constexpr int n = decltype(size)::value;
    for (int i = 0; i < n; ++i)
      for (int l = 0; l < W; ++l) {
        if (!Y.there[l]) continue;
        const int a = Y.left[i * W + l], b = Y.right[i * W + l];
        if (a >= 0) q.square[a] = (parts ? q.square[a] : 0.0) + get(Y.rhs[i], l);
        if (b >= 0) q.square[b] = (parts ? q.square[b] : 0.0) + get(Y.rhs[Y.m * n + i], l);
      }
  };
  for (long i = 0; i < q.n; ++i) q.square[i] = 0.0;
  for (long g = 0; g < X.n_rods; ++g) own(X.rods[g], std::integral_constant<int, N>());
  if constexpr (Link::there)
    for (long g = 0; g < X.n_links; ++g) own(X.links[g], std::integral_constant<int, Link::n>());
  if (parts) for (long i = 0; i < q.n; ++i) if (q.held[i]) q.square[i] = 0.0;
  if (moving) put_given<Link>(X);
  for (long i = 0; i < q.n; ++i) q.r[i] = q.held[i] ? q.square[i] : q.r[i] + q.square[i];
  // Each rank has the contributions of its own pieces.
  if (parts) sum_over(X.ranks, q.r, int(q.n));
  solve_between(q);
  for (long g = 0; g < X.n_rods; ++g) {
    const Chain &Y = X.rods[g];
    vec left[N], right[N];
    spread<N>(Y, q, left, right);
    for (int i = 0; i < N; ++i) { Y.rhs[i] = left[i]; Y.rhs[Y.m * N + i] = right[i]; }
    for (long k = Y.m - 1; k >= 1; --k) {
      const vec *const c = Y.X + k * N * R3;
      for (int i = 0; i < N; ++i) {
        vec sum = Y.rhs[k * N + i];
        for (int j = 0; j < N; ++j) sum -= c[i * R3 + j] * Y.rhs[(k + 1) * N + j];
        for (int j = 0; j < N; ++j) sum -= c[i * R3 + N + j] * left[j];
        Y.rhs[k * N + i] = sum;
      }
    }
  }
  if constexpr (Link::there)
    for (long g = 0; g < X.n_links; ++g)
      spread<Link::n>(X.links[g], q, X.links[g].rhs, X.links[g].rhs + Link::n);
}

// u := u - (part step + share rhs) in a group; adds up the norms.
template <class Cell> void move_by(const Chain &X, double part, double share, vec &step, vec &size) {
  constexpr int n = Cell::n;
  vec x[n], u[n];
  for (long k = 0; k <= X.m; ++k) {
    for (int i = 0; i < n; ++i) x[i] = share * X.rhs[k * n + i];
    if (part != 0.0) for (int i = 0; i < n; ++i) x[i] += part * X.step[k * n + i];
    Cell::add(X, k, x, u);
    count<n>(X, k, x, step);
    count<n>(X, k, u, size);
  }
}
template <class Cell, class Link> void move_all(Net &X, double part, double share) {
  vec step = 0.0, size = 0.0;
  for (long g = 0; g < X.n_rods; ++g) move_by<Cell>(X.rods[g], part, share, step, size);
  if constexpr (Link::there)
    for (long g = 0; g < X.n_links; ++g) move_by<Link>(X.links[g], part, share, step, size);
  X.update = sum_of(step);
  X.size = sum_of(size);
}

// An update with the residual of the last `evaluate` and the factors of the last `linearise`.
template <class Cell, class Link> __attribute__((noinline)) void update_again(Net &X) {
  apply<Link, true>(X, RELATIVE);
  move_all<Cell, Link>(X, 0.0, 1.0);
  double sums[2] = {X.update, X.size};
  sum_over(X.ranks, sums, 2);
  X.update = std::sqrt(sums[0]);
  X.size = std::sqrt(sums[1]);
}

}  // namespace
