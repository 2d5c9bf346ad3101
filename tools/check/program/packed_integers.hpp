// SPDX-License-Identifier: MIT
// Two or four integers in one register (__vadd4 and the like), and CUDA's minima and maxima of
// three values or of a sum. As PTX's video instructions: what does not fit wraps, unless it
// saturates.
#pragma once

#include <cstdint>
#include <type_traits>

namespace cookbook::simt {

/// Of each T in the words: what `operation` returns, as an int that is cut to the size of a T.
template <class T, class F, class... Words>
constexpr unsigned per_part(F operation, Words... words) {
  constexpr int kBits = 8 * sizeof(T);
  unsigned result = 0;
  for (int at = 0; at < 32; at += kBits) {
    const int64_t value = operation(static_cast<int64_t>(static_cast<T>(words >> at))...);
    result |= (static_cast<unsigned>(value) & (~0u >> (32 - kBits))) << at;
  }
  return result;
}
/// The nearest T.
template <class T>
constexpr int64_t clamped(int64_t value) {
  constexpr int64_t kLeast = std::is_signed_v<T> ? -(int64_t{1} << (8 * sizeof(T) - 1)) : 0;
  constexpr int64_t kMost = kLeast + (int64_t{1} << 8 * sizeof(T)) - 1;
  return value < kLeast ? kLeast : value > kMost ? kMost : value;
}

}  // namespace cookbook::simt

#define COOKBOOK_PACKED_1(NAME, T, EXPRESSION)                                      \
  inline unsigned NAME(unsigned word) {                                             \
    return cookbook::simt::per_part<T>([](int64_t a) { return EXPRESSION; }, word); \
  }
#define COOKBOOK_PACKED_2(NAME, T, EXPRESSION)                                                     \
  inline unsigned NAME(unsigned one, unsigned other) {                                             \
    return cookbook::simt::per_part<T>([](int64_t a, int64_t b) -> int64_t { return EXPRESSION; }, \
                                       one, other);                                                \
  }
#define COOKBOOK_PACKED_SUM(NAME, T)                           \
  inline unsigned NAME(unsigned one, unsigned other) {         \
    unsigned sum = 0;                                          \
    (void)cookbook::simt::per_part<T>(                         \
        [&](int64_t a, int64_t b) {                            \
          sum += static_cast<unsigned>(a < b ? b - a : a - b); \
          return int64_t{0};                                   \
        },                                                     \
        one, other);                                           \
    return sum;                                                \
  }
// A comparison gives all ones, or 1.
#define COOKBOOK_PACKED_COMPARISON(NAME, SUFFIX, T, OPERATOR)       \
  COOKBOOK_PACKED_2(__vcmp##NAME##SUFFIX, T, a OPERATOR b ? -1 : 0) \
  COOKBOOK_PACKED_2(__vset##NAME##SUFFIX, T, a OPERATOR b ? 1 : 0)
#define COOKBOOK_PACKED_ORDER(SIGN, N, T)                          \
  COOKBOOK_PACKED_COMPARISON(lt##SIGN, N, T, <)                    \
  COOKBOOK_PACKED_COMPARISON(le##SIGN, N, T, <=)                   \
  COOKBOOK_PACKED_COMPARISON(gt##SIGN, N, T, >)                    \
  COOKBOOK_PACKED_COMPARISON(ge##SIGN, N, T, >=)                   \
  COOKBOOK_PACKED_2(__vmax##SIGN##N, T, a < b ? b : a)             \
  COOKBOOK_PACKED_2(__vmin##SIGN##N, T, b < a ? b : a)             \
  COOKBOOK_PACKED_2(__vabsdiff##SIGN##N, T, a < b ? b - a : a - b) \
  COOKBOOK_PACKED_SUM(__vsad##SIGN##N, T)
#define COOKBOOK_PACKED(N, T, U)                                                \
  COOKBOOK_PACKED_ORDER(s, N, T)                                                \
  COOKBOOK_PACKED_ORDER(u, N, U)                                                \
  COOKBOOK_PACKED_COMPARISON(eq, N, U, ==)                                      \
  COOKBOOK_PACKED_COMPARISON(ne, N, U, !=)                                      \
  COOKBOOK_PACKED_2(__vadd##N, U, a + b)                                        \
  COOKBOOK_PACKED_2(__vsub##N, U, a - b)                                        \
  COOKBOOK_PACKED_2(__vaddss##N, T, cookbook::simt::clamped<T>(a + b))          \
  COOKBOOK_PACKED_2(__vaddus##N, U, cookbook::simt::clamped<U>(a + b))          \
  COOKBOOK_PACKED_2(__vsubss##N, T, cookbook::simt::clamped<T>(a - b))          \
  COOKBOOK_PACKED_2(__vsubus##N, U, cookbook::simt::clamped<U>(a - b))          \
  COOKBOOK_PACKED_2(__vavgs##N, T, (a + b + (a + b >= 0 ? 1 : 0)) >> 1)         \
  COOKBOOK_PACKED_2(__vavgu##N, U, (a + b + 1) >> 1)                            \
  COOKBOOK_PACKED_2(__vhaddu##N, U, (a + b) >> 1)                               \
  COOKBOOK_PACKED_1(__vabs##N, T, a < 0 ? -a : a)                               \
  COOKBOOK_PACKED_1(__vabsss##N, T, cookbook::simt::clamped<T>(a < 0 ? -a : a)) \
  COOKBOOK_PACKED_1(__vneg##N, T, -a)                                           \
  COOKBOOK_PACKED_1(__vnegss##N, T, cookbook::simt::clamped<T>(-a))
COOKBOOK_PACKED(2, int16_t, uint16_t)
COOKBOOK_PACKED(4, int8_t, uint8_t)
#undef COOKBOOK_PACKED
#undef COOKBOOK_PACKED_ORDER
#undef COOKBOOK_PACKED_COMPARISON
#undef COOKBOOK_PACKED_SUM
#undef COOKBOOK_PACKED_2
#undef COOKBOOK_PACKED_1

namespace cookbook::simt {
template <bool kMax>
constexpr int64_t extreme(int64_t a, int64_t b) {
  return (a < b) == kMax ? b : a;
}
/// The sum as a T, which wraps.
template <class T>
constexpr int64_t wrapped_sum(int64_t a, int64_t b) {
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
}  // namespace cookbook::simt

// Of three values, or of a sum and a value; with `relu` not below 0. WORD holds the parts T.
#define COOKBOOK_EXTREME_3(NAME, MAX, WORD, T, LEAST, FIRST)                                    \
  inline WORD NAME(WORD one, WORD two, WORD three) {                                            \
    return static_cast<WORD>(cookbook::simt::per_part<T>(                                       \
        [](int64_t a, int64_t b, int64_t c) {                                                   \
          return cookbook::simt::extreme<true>(cookbook::simt::extreme<MAX>(FIRST, c), LEAST);  \
        },                                                                                      \
        static_cast<unsigned>(one), static_cast<unsigned>(two), static_cast<unsigned>(three))); \
  }
#define COOKBOOK_EXTREMES(OF, MAX, SUFFIX, WORD, T, LEAST)        \
  COOKBOOK_EXTREME_3(__vi##OF##3_##SUFFIX, MAX, WORD, T, LEAST,   \
                     cookbook::simt::extreme<MAX>(a, b))          \
  COOKBOOK_EXTREME_3(__viadd##OF##_##SUFFIX, MAX, WORD, T, LEAST, \
                     cookbook::simt::wrapped_sum<T>(a, b))
#define COOKBOOK_EXTREMES_RELU(OF, MAX, SUFFIX, WORD, T)                               \
  COOKBOOK_EXTREMES(OF, MAX, SUFFIX##_relu, WORD, T, 0)                                \
  inline WORD __vi##OF##_##SUFFIX##_relu(WORD one, WORD other) {                       \
    return static_cast<WORD>(cookbook::simt::per_part<T>(                              \
        [](int64_t a, int64_t b) {                                                     \
          return cookbook::simt::extreme<true>(cookbook::simt::extreme<MAX>(a, b), 0); \
        },                                                                             \
        static_cast<unsigned>(one), static_cast<unsigned>(other)));                    \
  }
// And says whether the first one is it, of the upper part first.
#define COOKBOOK_EXTREMES_OF(OF, MAX, OPERATOR)                                         \
  COOKBOOK_EXTREME_3(__viadd##OF##_s32, MAX, int, int32_t, INT64_MIN,                   \
                     cookbook::simt::wrapped_sum<int32_t>(a, b))                        \
  COOKBOOK_EXTREMES_RELU(OF, MAX, s32, int, int32_t)                                    \
  COOKBOOK_EXTREMES(OF, MAX, s16x2, unsigned, int16_t, INT64_MIN)                       \
  COOKBOOK_EXTREMES_RELU(OF, MAX, s16x2, unsigned, int16_t)                             \
  COOKBOOK_EXTREMES(OF, MAX, u32, unsigned, uint32_t, INT64_MIN)                        \
  COOKBOOK_EXTREMES(OF, MAX, u16x2, unsigned, uint16_t, INT64_MIN)                      \
  inline int __vib##OF##_s32(int a, int b, bool* first) {                               \
    return (*first = a OPERATOR b) ? a : b;                                             \
  }                                                                                     \
  inline unsigned __vib##OF##_u32(unsigned a, unsigned b, bool* first) {                \
    return (*first = a OPERATOR b) ? a : b;                                             \
  }                                                                                     \
  inline unsigned __vib##OF##_s16x2(unsigned a, unsigned b, bool* upper, bool* lower) { \
    *upper = static_cast<int16_t>(a >> 16) OPERATOR static_cast<int16_t>(b >> 16);      \
    *lower = static_cast<int16_t>(a) OPERATOR static_cast<int16_t>(b);                  \
    return __v##OF##s2(a, b);                                                           \
  }                                                                                     \
  inline unsigned __vib##OF##_u16x2(unsigned a, unsigned b, bool* upper, bool* lower) { \
    *upper = a >> 16 OPERATOR b >> 16;                                                  \
    *lower = (a & 0xffffu) OPERATOR(b & 0xffffu);                                       \
    return __v##OF##u2(a, b);                                                           \
  }
COOKBOOK_EXTREMES_OF(max, true, >=)
COOKBOOK_EXTREMES_OF(min, false, <=)
#undef COOKBOOK_EXTREMES_OF
#undef COOKBOOK_EXTREMES_RELU
#undef COOKBOOK_EXTREMES
#undef COOKBOOK_EXTREME_3
