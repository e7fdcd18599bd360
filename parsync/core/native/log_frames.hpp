// Frames of a log as shared_state/journal.py writes them.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "effects_digest.hpp"
#include "python_codec.hpp"

namespace agora {

namespace detail {

// kCrcTables[k][b]: the checksum of byte b with k zero bytes after it.
constexpr std::array<std::array<uint32_t, 256>, 8> crc_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}

inline constexpr auto kCrcTables = crc_tables();

inline uint32_t little_endian(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

}  // namespace detail

// zlib's crc32. Eight bytes at a time: frames are most of what an actor writes.
inline uint32_t crc32_of(std::string_view bytes) {
  const auto& table = detail::kCrcTables;
  uint32_t crc = ~uint32_t{0};
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const uint32_t low = crc ^ detail::little_endian(at), high = detail::little_endian(at + 4);
    crc = 0;
    for (int i = 0; i < 4; ++i)
      crc ^= table[7 - i][low >> (8 * i) & 0xff] ^ table[3 - i][high >> (8 * i) & 0xff];
  }
  for (; left > 0; --left, ++at)
    crc = crc >> 8 ^ table[0][(crc ^ static_cast<unsigned char>(*at)) & 0xff];
  return ~crc;
}

constexpr size_t kFrameHeadBytes = 12;
constexpr size_t kMaxFrameBytes = size_t{1} << 30;  // MAX_FRAME_BYTES of journal.py
constexpr size_t kBufferBytes = size_t{1} << 16;    // BUFFER_BYTES of journal.py

// Puts a frame's head before its payload, which is out[start + kFrameHeadBytes ..].
inline void finish_frame(std::string& out, size_t start) {
  const size_t size = out.size() - start - kFrameHeadBytes;
  if (size > kMaxFrameBytes)
    throw std::invalid_argument("a frame of " + std::to_string(size) + " bytes; at most " +
                                std::to_string(kMaxFrameBytes) + " are allowed");
  const auto put = [&](size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) out[start + at + i] = static_cast<char>(value >> (8 * i));
  };
  put(0, static_cast<uint32_t>(size));
  put(4, crc32_of(std::string_view(out).substr(start + kFrameHeadBytes)));
  put(8, crc32_of(std::string_view(out).substr(start, 8)));
}

// The frames of an actor's log (parsync/runtime/live/logs.py), gathered until they are taken.
class HandledFrames {
 public:
  HandledFrames(Encoder& encoder, nanobind::object measured)
      : encoder_(encoder), digest_(encoder, std::move(measured)) {}

  // Appends an event that was handled, and the digest of its effects: (entry, digest), the entry as
  // Encoder::log_entry(). Returns the bytes that wait. If it throws, nothing was appended.
  //
  // effects: a native participant's, with Records in place of HandOut; or as Participant.handle of
  // Python returns them.
  template <class EffectList>
  size_t append(int64_t address, int64_t at_us, const Event& event, const EffectList& effects) {
    const std::string digest = digest_.of(effects);
    entry_.clear();
    encoder_.append_log_entry(address, at_us, event, entry_);
    const size_t start = bytes_.size();
    try {
      bytes_.append(kFrameHeadBytes, '\0');
      msgpack::put_array_head(bytes_, 2);
      msgpack::put_bytes(bytes_, entry_);
      msgpack::put_bytes(bytes_, digest);
      finish_frame(bytes_, start);
    } catch (...) {
      bytes_.resize(start);
      throw;
    }
    return bytes_.size();
  }

  nanobind::bytes take() {
    nanobind::bytes taken(bytes_.data(), bytes_.size());
    bytes_.clear();
    return taken;
  }

 private:
  Encoder& encoder_;
  EventEffectsDigest digest_;
  std::string entry_, bytes_;
};

// The entries of an event log as frames (shared_state/journal.py), gathered until they are taken,
// e.g. to be hashed together.
class LogFrames {
 public:
  explicit LogFrames(Encoder& encoder) : encoder_(encoder) {}

  // Appends the entry Encoder::log_entry() of a handled event. Returns the bytes that wait.
  size_t append(int64_t address, int64_t at_us, const Event& event) {
    encoder_.append_log_frame(address, at_us, event, bytes_);
    return bytes_.size();
  }

  nanobind::bytes take() {
    nanobind::bytes taken(bytes_.data(), bytes_.size());
    bytes_.clear();
    return taken;
  }

 private:
  Encoder& encoder_;
  std::string bytes_;
};

}  // namespace agora
