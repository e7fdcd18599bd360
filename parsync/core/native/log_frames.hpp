// The digests of effects (BLAKE2b), and the frames of a log as shared_state/journal.py writes them.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "bound_participant.hpp"
#include "python_codec.hpp"

namespace agora {

// BLAKE2b without a key (RFC 7693), as hashlib.blake2b(digest_size=...) computes it.
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

// The digests of effects in the logs of live runs: of an actor's events and of the cell's
// steps (parsync/runtime/live/logs.py).

// blake2b over encoded values, in order.
class EffectsDigest {
 public:
  EffectsDigest(Encoder& encoder, size_t digest_bytes)
      : encoder_(encoder), digest_bytes_(digest_bytes), hash_(digest_bytes) {}

  // Throws as Encoder::encode(); the digest is then of no use.
  void add(nanobind::handle value) {
    bytes_.clear();
    encoder_.pack(value, bytes_);
    hash_.update(bytes_);
  }
  void add(int64_t number) {
    bytes_.clear();
    msgpack::put_integer(bytes_, number);
    hash_.update(bytes_);
  }
  // A pair of a number and an event.
  void add(int64_t number, const Event& event) {
    begin_pair(number);
    event.encode(encoder_, bytes_);
    hash_.update(bytes_);
  }
  void add(int64_t number, nanobind::handle event) {
    begin_pair(number);
    encoder_.pack(event, bytes_);
    hash_.update(bytes_);
  }
  // Two numbers and an event.
  void add(int64_t first, int64_t second, const Event& event) {
    bytes_.clear();
    msgpack::put_array_head(bytes_, 3);
    msgpack::put_integer(bytes_, first);
    msgpack::put_integer(bytes_, second);
    event.encode(encoder_, bytes_);
    hash_.update(bytes_);
  }
  // A message to another process: the address and the length of its bytes, then these. Returns
  // them.
  nanobind::bytes add_outgoing(int64_t to, nanobind::handle event) {
    bytes_.clear();
    encoder_.pack(event, bytes_);
    head_.clear();
    msgpack::put_array_head(head_, 2);
    msgpack::put_integer(head_, to);
    msgpack::put_unsigned(head_, bytes_.size());
    hash_.update(head_);
    hash_.update(bytes_);
    return nanobind::bytes(bytes_.data(), bytes_.size());
  }

  // The digest since the last call.
  std::string take() {
    const std::string digest = hash_.digest();
    hash_ = Blake2b(digest_bytes_);
    return digest;
  }

 private:
  void begin_pair(int64_t number) {
    bytes_.clear();
    msgpack::put_array_head(bytes_, 2);
    msgpack::put_integer(bytes_, number);
  }

  Encoder& encoder_;
  size_t digest_bytes_;
  Blake2b hash_;
  std::string bytes_, head_;
};

// Digests of the effects of one event each.
class EventEffectsDigest {
 public:
  static constexpr size_t kBytes = 8;

  // measured: the tables whose rows are left out.
  EventEffectsDigest(Encoder& encoder, nanobind::object measured)
      : digest_(encoder, kBytes), measured_(std::move(measured)) {}

  // Those of a native participant, with Records in place of HandOut. Throws as Encoder::encode().
  std::string of(const Effects& effects) {
    digest_.take();
    for (const Effect& effect : effects.list()) {
      if (const auto* send = std::get_if<Send>(&effect)) {
        digest_.add(send->to, *send->event);
      } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
        digest_.add(timer->at_us, *timer->event);
      } else if (const auto* start = std::get_if<StartDecision>(&effect)) {
        digest_.add(start->decision);
      } else {
        add_record(static_cast<PyObject*>(std::get<PythonEffect>(effect).object.get()));
      }
    }
    return digest_.take();
  }

  // effects: as Participant.handle of Python returns them. Throws as Encoder::encode().
  std::string of(nanobind::handle effects) {
    digest_.take();
    const EffectClasses& classes = EffectClasses::get();
    for (const nanobind::handle effect : nanobind::iter(effects)) {
      if (is(effect, classes.send)) {
        add_pair(effect.attr("to"), effect.attr("event"));
      } else if (is(effect, classes.set_timer)) {
        add_pair(effect.attr("at_us"), effect.attr("event"));
      } else if (is(effect, record_class())) {
        add_record(effect);
      } else {
        digest_.add(effect.attr("decision"));
      }
    }
    return digest_.take();
  }

 private:
  static bool is(nanobind::handle effect, nanobind::handle type) {
    if (effect.type().is(type)) return true;
    const int instance = PyObject_IsInstance(effect.ptr(), type.ptr());
    if (instance < 0) throw nanobind::python_error();
    return instance != 0;
  }
  static nanobind::handle record_class() {
    static const nanobind::handle cls =
        nanobind::object(nanobind::module_::import_("parsync.metrics.record").attr("Record"))
            .release();
    return cls;
  }
  void add_record(nanobind::handle record) {
    const nanobind::object table = record.attr("table");
    const int is_measured = PySequence_Contains(measured_.ptr(), table.ptr());
    if (is_measured < 0) throw nanobind::python_error();
    if (!is_measured)
      digest_.add(
          nanobind::make_tuple(table, nanobind::tuple(record.attr("columns").attr("values")())));
  }
  void add_pair(const nanobind::object& number, const nanobind::object& event) {
    if (PyLong_CheckExact(number.ptr()))
      digest_.add(BoundValue<int64_t>::from(number, "a number"), event);
    else
      digest_.add(nanobind::make_tuple(number, event));
  }

  EffectsDigest digest_;
  nanobind::object measured_;
};

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
