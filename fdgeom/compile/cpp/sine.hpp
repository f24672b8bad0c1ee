// Sine and cosine of W numbers, with errors below one unit in the last place. Included after
// lanes.hpp.
//
// x = k π/2 + r, |r| ≤ π/4, with π/2 in three parts (W. Cody and W. Waite, Software Manual for the
// Elementary Functions, 1980); then the polynomials of Sun's fdlibm (1993) in r, and the rest that r
// leaves. libm takes one number at a time, and four times as long.

namespace {

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
