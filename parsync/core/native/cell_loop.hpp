// The participants beside the cell, and the loop that hands them the messages of a step and the
// timers that have come (parsync/runtime/live/cell.py says in which order, and why).
//
//   timers, messages of a step -> inbox -> handle -> carry out -> inbox, timers, other processes
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "bound_participant.hpp"
#include "effects_digest.hpp"
#include "event.hpp"
#include "event_heap.hpp"

namespace agora {

class CellLoop {
 public:
  // What the loop calls. Nothing is kept: a runtime and its loop would hold each other.
  struct Calls {
    nanobind::handle rest;        // as in effect_interpreter.hpp
    nanobind::handle outgoing;    // (to, event) of each message to another process
    nanobind::handle unknown;     // (to, event) of a step's message to nobody; raises
    EffectsDigest* digest;        // of messages within the process and of timers; or null
    nanobind::handle on_placed;   // (event) of TasksStarted and TasksEnded from the master, or None
    nanobind::handle on_handled;  // (address, event, effects) before effects are carried out, or
                                  // None
  };

  // participants: by address, the master among them, native or Python's. addresses: of the run's
  // participants in other processes.
  CellLoop(const nanobind::dict& participants, std::unordered_set<int64_t> addresses);

  // Puts participants in place of those at their addresses.
  void replace(const nanobind::dict& participants);

  int64_t now_us() const { return now_us_; }
  void set_now_us(int64_t now_us) { now_us_ = now_us; }

  // Every participant handles the event, in the order of their addresses. Earlier timers are
  // forgotten. Throws as run().
  void start(const EventPtr& event, int64_t at_us, const Calls& calls);
  // Handles the timers that are due at at_us, then the (address, event) pairs `messages`, each to
  // its end. Throws what participants and calls throw.
  void run(int64_t at_us, nanobind::handle messages, const Calls& calls);

  // Of a participant, while it is handling an event.
  void send(int64_t to, EventPtr event, int64_t sender);
  void set_timer(int64_t at_us, EventPtr event, int64_t address);

  // For checkpoints.
  EventHeap& timers() { return timers_; }

  // What is being handled, or was when an exception ended it; null if nothing is.
  int64_t address() const { return address_; }
  const EventPtr& event() const { return event_; }

 private:
  struct Handler {
    BoundParticipant* native;  // null if its handle() is Python's
    nanobind::object participant;
  };
  struct Runtime;

  void handle_inbox(const Calls& calls);
  void handle(int64_t address, const EventPtr& event, const Calls& calls);

  std::unordered_map<int64_t, Handler> participants_;
  std::unordered_set<int64_t> addresses_;
  int64_t now_us_ = 0;
  std::deque<std::pair<int64_t, EventPtr>> inbox_;
  EventHeap timers_;
  const Calls* calls_ = nullptr;  // of the step under way
  int64_t address_ = 0;
  EventPtr event_;
  Effects effects_;
};

}  // namespace agora
