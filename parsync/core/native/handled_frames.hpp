// The frames of an actor's log (parsync/runtime/live/logs.py), gathered until they are taken.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "effects_digest.hpp"
#include "encoder.hpp"
#include "journal_frames.hpp"

namespace agora {

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

}  // namespace agora
