// Rows as bits, 64 to a word: the lowest is the first row. Which of 64 rows pass a test; how many
// bits are set, and where the n-th is.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace agora {

// The 64 rows from `number` on whose number is above `bound`: without vector instructions, and so
// on any machine.
template <class T>
uint64_t plain_rows_above(const T* number, T bound) {
  uint64_t bits = 0;
  for (size_t i = 0; i < 64; ++i) bits |= static_cast<uint64_t>(number[i] > bound) << i;
  return bits;
}

// The same.
inline uint64_t rows_above(const int8_t* number, int8_t bound) {
#ifdef __SSE2__
  const __m128i bounds = _mm_set1_epi8(bound);
  uint64_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    const __m128i numbers = _mm_loadu_si128(reinterpret_cast<const __m128i*>(number + 16 * i));
    const int above = _mm_movemask_epi8(_mm_cmpgt_epi8(numbers, bounds));
    bits |= static_cast<uint64_t>(static_cast<uint32_t>(above)) << (16 * i);
  }
  return bits;
#else
  return plain_rows_above(number, bound);
#endif
}

inline uint64_t rows_above(const int32_t* number, int32_t bound) {
#ifdef __SSE2__
  const __m128i bounds = _mm_set1_epi32(bound);
  const auto above = [&](int i) {
    return _mm_cmpgt_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(number + 4 * i)),
                           bounds);
  };
  uint64_t bits = 0;
  for (int i = 0; i < 16; i += 4) {
    const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(above(i), above(i + 1)),
                                          _mm_packs_epi32(above(i + 2), above(i + 3)));
    bits |= static_cast<uint64_t>(static_cast<uint32_t>(_mm_movemask_epi8(bytes))) << (4 * i);
  }
  return bits;
#else
  return plain_rows_above(number, bound);
#endif
}

// How many bits of `words` words are set; with a mask, of word & mask.
size_t count_bits(const uint64_t* word, size_t words);
size_t count_bits(const uint64_t* word, const uint64_t* mask, size_t words);

// The place of the set bit that has `rank` set bits before it. Requires: there is one.
size_t select_bit(const uint64_t* word, size_t rank);
size_t select_bit(const uint64_t* word, const uint64_t* mask, size_t rank);

}  // namespace agora
