// The participants of one actor of a live run, and the loop that hands them what is due: messages,
// timers and decisions (parsync/runtime/live/loop.py says when, and why).
//
//   deliver() -> inbox --+
//                timers -+-> handle -> log -> carry out -> timers, outgoing, Python
//             decisions -+
//
// Every message leaves the loop, also one to a participant of the same actor. deliver() may be
// called from another thread than the rest: both hold the interpreter's lock, and nothing of the
// loop is half changed while Python runs.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bound_participant.hpp"
#include "event.hpp"
#include "event_heap.hpp"
#include "log_frames.hpp"
#include "step_waits.hpp"

namespace agora {

// Takes note of the waits of an event that a Python participant handled. effects: as it returned
// them.
inline void note_waits(StepWaits& waits, int64_t at_us, const Event& event,
                       nanobind::handle effects) {
  waits.submitted(at_us, event);
  for (const nanobind::handle effect : nanobind::iter(effects))
    if (effect.type().is(EffectClasses::get().send))
      waits.sent(at_us, *event_from(effect.attr("event")));
}

class ActorLoop {
 public:
  // What the loop calls and where it notes what was handled, in the order of the members, before
  // effects are carried out. Nothing is kept: an actor and its loop would hold each other.
  struct Calls {
    nanobind::handle now_us;       // () -> the actor's time
    nanobind::handle rest;         // as in effect_interpreter.hpp
    nanobind::handle on_decision;  // (late_us, took_us) before each decision is delivered
    HandledFrames* log;            // or null
    nanobind::handle write_log;    // () once `log` holds kBufferBytes
    StepWaits* waits;              // or null
    nanobind::handle on_handled;   // (address, now_us, event, effects), or None
  };

  // participants: by address, native or Python's. They send in turn in the order of the dict.
  // addresses: of all participants of the run. lateness_us: how much of a decision's lateness the
  // next one may make up for.
  ActorLoop(const nanobind::dict& participants, std::unordered_set<int64_t> addresses,
            int64_t lateness_us);

  // Takes a message for a participant; advance() handles it.
  void deliver(int64_t address, EventPtr event);
  void send(int64_t to, EventPtr event, int64_t sender);
  void set_timer(int64_t at_us, EventPtr event, int64_t address);
  // Delivers DecisionDone at due_us. over_us: when the decision was over, for on_decision.
  void add_decision(int64_t due_us, int64_t address, EventPtr event, int64_t took_us,
                    int64_t over_us);

  // Handles all messages, and timers and decisions that are due in the order of their times, until
  // none is left. Throws what participants and calls throw.
  void advance(const Calls& calls);
  // Handles all messages and no timer.
  void handle_messages(const Calls& calls);

  // When the earliest timer or decision is due.
  std::optional<int64_t> next_due_us() const;
  size_t unhandled() const { return inbox_.size(); }
  bool has_outgoing() const;
  // (to, event) of everything that was sent and not taken: each sender's in the order of sending,
  // senders in turn from place `rotation` on.
  std::vector<std::pair<int64_t, EventPtr>> take_outgoing(int64_t rotation);
  // (address, event) of what waits to be handled, and of what waits to be taken.
  std::vector<std::pair<int64_t, EventPtr>> messages() const;

  // The time from which the decision counts that follows what is being handled at once.
  const std::optional<int64_t>& decision_start_us() const { return decision_start_us_; }
  // What is being handled, or was when an exception ended it; null if nothing is.
  int64_t address() const { return address_; }
  const EventPtr& event() const { return event_; }

 private:
  using Message = std::pair<int64_t, EventPtr>;
  struct Handler {
    BoundParticipant* native;  // null if its handle() is Python's
    nanobind::object participant;
  };
  struct Decision {
    int64_t due_us;
    uint64_t number;
    int64_t address;
    EventPtr event;
    int64_t took_us, over_us;
  };
  struct IsLater {
    bool operator()(const Decision& a, const Decision& b) const {
      return std::pair(a.due_us, a.number) > std::pair(b.due_us, b.number);
    }
  };
  struct Runtime;

  void handle(int64_t address, EventPtr event, const Calls& calls);

  std::unordered_map<int64_t, Handler> participants_;
  std::unordered_set<int64_t> addresses_;
  int64_t lateness_us_;
  std::deque<Message> inbox_;
  EventHeap timers_;
  std::priority_queue<Decision, std::vector<Decision>, IsLater> decisions_;
  uint64_t decisions_made_ = 0;
  std::vector<std::pair<int64_t, std::vector<Message>>> outgoing_;  // by sender
  std::unordered_map<int64_t, size_t> place_of_;                    // of a sender in it
  std::optional<int64_t> decision_start_us_;
  int64_t address_ = 0;
  EventPtr event_;
  Effects effects_;
};

}  // namespace agora
