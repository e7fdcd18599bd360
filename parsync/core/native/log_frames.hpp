// The entries of an event log as frames (shared_state/journal.py), gathered until they are taken,
// e.g. to be hashed together.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

#include "encoder.hpp"

namespace agora {

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
