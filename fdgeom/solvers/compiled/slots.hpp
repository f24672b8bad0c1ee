// Values that steps save for the reverse sweep. Every step has a slot of memory with a place for each
// saved function, in the same rows as the function.
#include <cstring>

namespace {

struct Kept {
  int field;           // which function
  long offset;         // where in the slot
  long rows, length;   // number of rows, and their distance
  long lead;           // from the beginning of a row to the first node
  long first, last;    // nodes that the spans of the move count from, and where they end
};

// Copies values that are not read soon, past the caches if the processor supports that.
inline void put_away(double *to, const double *from, long many) {
#ifdef FDGEOM_WIDE
  if (reinterpret_cast<std::uintptr_t>(to) % 64 == 0) {
    const long whole = many / 8 * 8;
    for (long i = 0; i < whole; i += 8) wide_stream(to + i, *(const raw_unaligned *)(from + i));
    to += whole; from += whole; many -= whole;
  }
#endif
  std::memcpy(to, from, many * sizeof(double));
}

inline void keep_values(Field f, const Kept &k, double *slot, Span span, bool past) {
  double *to = slot + k.offset;
  const double *from = f.p - k.lead;
  const long begin = span.begin <= 0 ? 0 : k.lead + k.first + span.begin;
  const long end = span.end >= k.last - k.first ? k.length : k.lead + k.first + span.end;
  if (begin >= end) return;
  if (begin == 0 && end == k.length) {
    if (past) put_away(to, from, k.rows * k.length);
    else std::memcpy(to, from, k.rows * k.length * sizeof(double));
    return;
  }
  for (long r = 0; r < k.rows; ++r)
    put_away(to + r * k.length + begin, from + r * k.length + begin, end - begin);
}

}  // namespace
