// The relative rotation of the two ends of a cell. Included after simd.hpp.

namespace {

// The cosine of half of 90 degrees, and the code of steps that rotate a cell farther.
constexpr double least_cosine = 0.70710678118654757;
constexpr int too_far = -5;

// p̄ q of unit quaternions.
template <class T> inline void relative(const T *p, const T *q, T *r) {
  r[0] = p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3];
  r[1] = p[0] * q[1] - q[0] * p[1] - p[2] * q[3] + p[3] * q[2];
  r[2] = p[0] * q[2] - q[0] * p[2] - p[3] * q[1] + p[1] * q[3];
  r[3] = p[0] * q[3] - q[0] * p[3] - p[1] * q[2] + p[2] * q[1];
}

// Cosines of half the angles between the ends p and q of a cell: of the change from the old to the new
// relative rotation, and of the new one. They have a sign, as the quaternions of a node are continuous in
// a step.
template <class T> inline void half_cosines(const T *old_p, const T *old_q, const T *p, const T *q, T &change, T &state) {
  T before[4], after[4];
  relative(old_p, old_q, before);
  relative(p, q, after);
  change = before[0] * after[0] + before[1] * after[1] + before[2] * after[2] + before[3] * after[3];
  state = after[0];
}

}  // namespace
