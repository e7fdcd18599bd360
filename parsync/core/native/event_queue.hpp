// The events of a run in virtual time that are still to come, and the loop that hands them to their
// receivers: the time an event takes besides what its receiver does with it.
//
// Order: time, then priority (parsync/core/event.py), then the order of sending.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "bound_participant.hpp"
#include "event.hpp"
#include "event_heap.hpp"
#include "log_frames.hpp"

namespace agora {

class EventQueue {
 public:
  // message_us: how long a message takes, but for those between two of the addresses in
  // `beside_cell`, which take no time.
  EventQueue(int64_t message_us, std::unordered_set<int64_t> beside_cell)
      : message_us_(message_us), beside_cell_(std::move(beside_cell)) {}

  int64_t now_us() const { return now_us_; }
  int64_t handled() const { return handled_; }
  // Of the event handled last, or being handled.
  int64_t address() const { return address_; }
  const EventPtr& event() const { return event_; }

  void send(int64_t now_us, int64_t to, EventPtr event, int64_t sender) {
    const bool beside =
        message_us_ > 0 && beside_cell_.contains(sender) && beside_cell_.contains(to);
    to_come_.push(now_us + (beside ? 0 : message_us_), to, std::move(event));
  }

  // At once if at_us is past.
  void set_timer(int64_t now_us, int64_t at_us, EventPtr event, int64_t address) {
    if (rest_ && event->key() == rest_->event_key && at_us <= rest_->until_us)
      at_us = rest_->moved_us(at_us);
    to_come_.push(std::max(now_us, at_us), address, std::move(event));
  }

  // A time in which timers of one type of event come once per interval: those set for up to
  // until_us are moved to before_us before the end of their interval, and at most to until_us.
  // Intervals begin at multiples of interval_us.
  struct Rest {
    uint64_t event_key;
    int64_t until_us;
    int64_t interval_us;
    int64_t before_us;

    int64_t moved_us(int64_t at_us) const {
      const int64_t intervals = (at_us + before_us + interval_us - 1) / interval_us;
      return std::min(intervals * interval_us - before_us, until_us);
    }
  };
  void begin_rest(const Rest& rest) { rest_ = rest; }
  void end_rest() { rest_.reset(); }

  // Handles every event up to and including until_us. Each is appended to `log` first.
  //
  // handlers: by address, native participants, or callables of (now_us, event) -> effects.
  // carry_out: called with (now_us, address, effects) for the effects of callables, unless their
  // list is empty. Of native participants' effects, timers, messages to one of `handlers`,
  // decisions of native deciders and rows that `gathered` takes are carried out here; carry_out
  // gets the rest.
  // hash_log: called once `log` holds kHashedBytes.
  //
  // gathered: takes over the rows that native participants hand out, if it has their tables; else,
  // or if it is null, carry_out gets them as Records.
  //
  // Throws what those throw; the events that are still to come stay.
  void run_until(int64_t until_us, LogFrames& log, const nanobind::dict& handlers,
                 nanobind::handle carry_out, nanobind::handle hash_log, Measurements* gathered);

  // (at_us, address, event) of all that are still to come, in order.
  nanobind::list waiting() const;

 private:
  static constexpr size_t kHashedBytes = size_t{1} << 16;
  static constexpr int64_t kSignalEvents = 256;  // between two checks for a signal

  struct Runtime;
  struct Handler {
    BoundParticipant* native = nullptr;  // or else
    nanobind::object callable;
  };
  using Handlers = std::unordered_map<int64_t, Handler>;

  void run_native(BoundParticipant& participant, const Handlers& handlers,
                  nanobind::handle carry_out, Measurements* gathered);

  void decide(Decider& decider, int64_t decision);

  int64_t message_us_;
  std::optional<Rest> rest_;
  std::unordered_set<int64_t> beside_cell_;
  EventHeap to_come_;
  int64_t now_us_ = 0;
  int64_t handled_ = 0;
  int64_t address_ = 0;
  EventPtr event_;
  Effects effects_;
};

}  // namespace agora
