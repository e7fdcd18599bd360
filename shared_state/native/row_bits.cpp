// Compiled twice where the compiler can: for machines that count the bits of a word in one
// instruction, and for all others. The answers are the same. (Not under
// sanitizers, which do not work with a choice made while the program is loaded.)
#include "row_bits.hpp"

#include <bit>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define AGORA_FOR_EACH_MACHINE __attribute__((target_clones("popcnt", "default")))
#else
#define AGORA_FOR_EACH_MACHINE
#endif

namespace agora {

namespace {

[[gnu::always_inline]] inline size_t count(uint64_t word) {
  return static_cast<size_t>(std::popcount(word));
}

// By halves, without a branch: ranks come in no order.
[[gnu::always_inline]] inline size_t select_in_word(uint64_t word, size_t rank) {
  size_t place = 0;
  for (size_t width = 32; width > 0; width /= 2) {
    const size_t low = count(word & ((uint64_t{1} << width) - 1));
    const bool above = rank >= low;
    rank -= above ? low : 0;
    word >>= above ? width : 0;
    place += above ? width : 0;
  }
  return place;
}

}  // namespace

AGORA_FOR_EACH_MACHINE size_t count_bits(const uint64_t* word, size_t words) {
  size_t bits = 0;
  for (size_t w = 0; w < words; ++w) bits += count(word[w]);
  return bits;
}

AGORA_FOR_EACH_MACHINE size_t count_bits(const uint64_t* word, const uint64_t* mask, size_t words) {
  size_t bits = 0;
  for (size_t w = 0; w < words; ++w) bits += count(word[w] & mask[w]);
  return bits;
}

AGORA_FOR_EACH_MACHINE size_t select_bit(const uint64_t* word, size_t rank) {
  for (size_t w = 0;; ++w) {
    const size_t bits = count(word[w]);
    if (rank < bits) return w * 64 + select_in_word(word[w], rank);
    rank -= bits;
  }
}

AGORA_FOR_EACH_MACHINE size_t select_bit(const uint64_t* word, const uint64_t* mask, size_t rank) {
  for (size_t w = 0;; ++w) {
    const uint64_t both = word[w] & mask[w];
    const size_t bits = count(both);
    if (rank < bits) return w * 64 + select_in_word(both, rank);
    rank -= bits;
  }
}

}  // namespace agora
