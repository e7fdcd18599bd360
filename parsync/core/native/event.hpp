// An event is a message or a timer that a participant handles. It is immutable, and is about a
// batch of tasks, never a single one. It is identified by its protocol ("core" for events that
// every protocol shares) and its number there; both are part of the log's format.
//
// A native event is a struct that lists its fields, from which its encoding (event_codec.hpp) and
// its Python class (bound_event.hpp) are made:
//
//   struct LockRequest final : EventOf<LockRequest> {
//     static constexpr EventType kType{"locking", 1, Priority::Decide};
//     static constexpr const char* kName = "LockRequest";
//     int64_t agent; SharedColumn<int32_t> partition;
//     static constexpr auto fields() { return std::tuple{Field{"agent", &LockRequest::agent}, ...};
//     }
//   };
//
// Native code holds an event of a Python class as a native event with the Python object in it
// (bound_event.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace agora {

// Order of delivery at one instant of virtual time; ties go by the order of sending. ParSync's
// simulation (section 4.3) frees slots first, then synchronises, commits and decides. A decision
// that starts at an instant comes last, so that it sees all that.
enum class Priority : int8_t { Free = 0, Sync = 1, Commit = 2, Decide = 3, Start = 4 };

struct EventType {
  std::string_view kind;  // the protocol
  int number;
  Priority priority;

  // A number for `switch`: equal for equal types, also if two libraries define them.
  constexpr uint64_t key() const { return key_of(kind, number); }
  static constexpr uint64_t key_of(std::string_view kind, int number) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char letter : kind)
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    return hash << 16 ^ static_cast<uint64_t>(number);
  }
};

class EventEncoder;

class Event {
 public:
  virtual ~Event() = default;

  Priority priority() const { return priority_; }
  // The protocol that it belongs to.
  virtual std::string_view kind() const = 0;
  // EventType::key() of a native event; 0 of one whose class is Python's.
  uint64_t key() const { return key_; }

  // Appends the whole event, as messages between processes carry it. If it throws, bytes may have
  // been appended to `out`.
  virtual void encode(EventEncoder& encoder, std::string& out) const = 0;
  // Appends what an event log holds of it.
  virtual void encode_for_log(EventEncoder& encoder, std::string& out) const {
    encode(encoder, out);
  }

 protected:
  constexpr Event(uint64_t key, Priority priority) : key_(key), priority_(priority) {}
  Event(const Event&) = default;
  Event& operator=(const Event&) = default;

 private:
  uint64_t key_;
  Priority priority_;
};

using EventPtr = std::shared_ptr<const Event>;

// The addresses of participants (parsync/core/addresses.py): agents have 0, 1, ..., and all other
// participants have negative addresses.

constexpr int64_t kMaster = -1;
constexpr int64_t kWorkers = -2;
constexpr int64_t kArrivals = -4;

}  // namespace agora
