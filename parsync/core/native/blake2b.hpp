// BLAKE2b without a key (RFC 7693), as hashlib.blake2b(digest_size=...) computes it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace agora {

class Blake2b {
 public:
  // digest_bytes: 1 to 64.
  explicit Blake2b(size_t digest_bytes) : digest_bytes_(digest_bytes), state_(kStart) {
    state_[0] ^= 0x01010000 ^ digest_bytes;
  }

  void update(std::string_view bytes) {
    while (!bytes.empty()) {
      if (filled_ == kBlock) compress(false);  // (the last block is the digest's)
      const size_t taken = std::min(kBlock - filled_, bytes.size());
      std::memcpy(block_.data() + filled_, bytes.data(), taken);
      filled_ += taken;
      bytes.remove_prefix(taken);
    }
  }

  // Of everything so far; more may follow.
  std::string digest() const {
    Blake2b last = *this;
    std::fill(last.block_.begin() + static_cast<ptrdiff_t>(filled_), last.block_.end(), '\0');
    last.compress(true);
    std::string made(sizeof(last.state_), '\0');
    std::memcpy(made.data(), last.state_.data(), made.size());
    made.resize(digest_bytes_);
    return made;
  }

 private:
  static constexpr size_t kBlock = 128;
  static constexpr std::array<uint64_t, 8> kStart = {
      0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
      0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
  static constexpr uint8_t kOrder[10][16] = {
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
      {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
      {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
      {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
      {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
      {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
      {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
      {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
      {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
      {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

  void compress(bool is_last) {
    hashed_ += filled_;
    filled_ = 0;
    std::array<uint64_t, 16> words, v;
    std::memcpy(words.data(), block_.data(), kBlock);
    std::copy(state_.begin(), state_.end(), v.begin());
    std::copy(kStart.begin(), kStart.end(), v.begin() + 8);
    v[12] ^= hashed_;
    if (is_last) v[14] = ~v[14];
    const auto mix = [&v](size_t a, size_t b, size_t c, size_t d, uint64_t x, uint64_t y) {
      v[a] += v[b] + x;
      v[d] = std::rotr(v[d] ^ v[a], 32);
      v[c] += v[d];
      v[b] = std::rotr(v[b] ^ v[c], 24);
      v[a] += v[b] + y;
      v[d] = std::rotr(v[d] ^ v[a], 16);
      v[c] += v[d];
      v[b] = std::rotr(v[b] ^ v[c], 63);
    };
    for (size_t round = 0; round < 12; ++round) {
      const uint8_t* const at = kOrder[round % 10];
      mix(0, 4, 8, 12, words[at[0]], words[at[1]]);
      mix(1, 5, 9, 13, words[at[2]], words[at[3]]);
      mix(2, 6, 10, 14, words[at[4]], words[at[5]]);
      mix(3, 7, 11, 15, words[at[6]], words[at[7]]);
      mix(0, 5, 10, 15, words[at[8]], words[at[9]]);
      mix(1, 6, 11, 12, words[at[10]], words[at[11]]);
      mix(2, 7, 8, 13, words[at[12]], words[at[13]]);
      mix(3, 4, 9, 14, words[at[14]], words[at[15]]);
    }
    for (size_t i = 0; i < 8; ++i) state_[i] ^= v[i] ^ v[i + 8];
  }

  size_t digest_bytes_;
  std::array<uint64_t, 8> state_;
  std::array<char, kBlock> block_{};
  size_t filled_ = 0;
  uint64_t hashed_ = 0;
};

}  // namespace agora
