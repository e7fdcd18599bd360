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

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bound_participant.hpp"
#include "event_heap.hpp"
#include "log_frames.hpp"
#include "step_waits.hpp"

namespace nb = nanobind;

namespace agora {

namespace {

// Takes note of the waits of an event that a Python participant handled. effects: as it returned
// them.
void note_waits(StepWaits& waits, int64_t at_us, const Event& event, nb::handle effects) {
  waits.submitted(at_us, event);
  for (const nb::handle effect : nb::iter(effects))
    if (effect.type().is(EffectClasses::get().send))
      waits.sent(at_us, *event_from(effect.attr("event")));
}

class ActorLoop {
 public:
  using Message = std::pair<int64_t, EventPtr>;  // of an address
  // What the loop calls and where it notes what was handled, in the order of the members, before
  // effects are carried out. Nothing is kept: an actor and its loop would hold each other.
  struct Calls {
    nb::handle now_us;       // () -> the actor's time
    nb::handle rest;         // as in carry_out()
    nb::handle on_decision;  // (late_us, took_us) before each decision is delivered
    HandledFrames* log;      // or null
    nb::handle write_log;    // () once `log` holds kBufferBytes
    StepWaits* waits;        // or null
    nb::handle on_handled;   // (address, now_us, event, effects), or None
  };

  // participants: by address, native or Python's. They send in turn in the order of the dict.
  // addresses: of all participants of the run. lateness_us: how much of a decision's lateness the
  // next one may make up for.
  ActorLoop(const nb::dict& participants, std::unordered_set<int64_t> addresses,
            int64_t lateness_us)
      : addresses_(std::move(addresses)), lateness_us_(lateness_us) {
    for (const auto& [key, participant] : participants) {
      const auto address = nb::cast<int64_t>(key);
      participants_.emplace(address, Handler{native_of(participant), nb::borrow(participant)});
      place_of_.emplace(address, outgoing_.size());
      outgoing_.emplace_back(address, std::vector<Message>{});
    }
  }

  // Takes a message for a participant; advance() handles it.
  void deliver(int64_t address, EventPtr event) { inbox_.emplace_back(address, std::move(event)); }
  bool has(int64_t address) const { return addresses_.contains(address); }
  void send(int64_t to, EventPtr event, int64_t sender) {
    outgoing_[place_of_.at(sender)].second.emplace_back(to, std::move(event));
  }
  void set_timer(int64_t at_us, EventPtr event, int64_t address) {
    if (event->priority() == Priority::Start && decision_start_us_) at_us = *decision_start_us_;
    timers_.push(at_us, address, std::move(event));
  }
  // Delivers DecisionDone at due_us. over_us: when the decision was over, for on_decision.
  void add_decision(int64_t due_us, int64_t address, EventPtr event, int64_t took_us,
                    int64_t over_us) {
    decisions_.push({due_us, ++decisions_made_, address, std::move(event), took_us, over_us});
  }

  // Handles all messages, and timers and decisions that are due in the order of their times, until
  // none is left. Throws what participants and calls throw.
  void advance(const Calls& calls) {
    while (true) {
      handle_messages(calls);
      const int64_t now_us = nb::cast<int64_t>(call(calls.now_us));
      const int64_t decided_us = decisions_.empty() ? now_us : decisions_.top().due_us;
      if (!timers_.empty() && timers_.next_us() <= std::min(decided_us, now_us)) {
        EventHeap::Entry timer = timers_.pop();
        if (timer.event->priority() == Priority::Start)  // of a round that follows a decision
          decision_start_us_ = std::max(timer.at_us, now_us - lateness_us_);
        handle(timer.address, std::move(timer.event), calls);
        decision_start_us_.reset();
      } else if (!decisions_.empty() && decided_us <= now_us) {
        const Decision decision = decisions_.top();
        decisions_.pop();
        decision_start_us_ = std::max(decision.due_us, now_us - lateness_us_);
        call(calls.on_decision, number(now_us - decision.over_us), number(decision.took_us));
        handle(decision.address, decision.event, calls);
        decision_start_us_.reset();
      } else {
        return;
      }
    }
  }
  // Handles all messages and no timer.
  void handle_messages(const Calls& calls) {
    while (!inbox_.empty()) {
      Message message = std::move(inbox_.front());
      inbox_.pop_front();
      handle(message.first, std::move(message.second), calls);
    }
  }

  // When the earliest timer or decision is due.
  std::optional<int64_t> next_due_us() const {
    std::optional<int64_t> due_us;
    if (!timers_.empty()) due_us = timers_.next_us();
    if (!decisions_.empty())
      due_us = std::min(due_us.value_or(decisions_.top().due_us), decisions_.top().due_us);
    return due_us;
  }
  size_t unhandled() const { return inbox_.size(); }
  bool has_outgoing() const {
    return std::any_of(outgoing_.begin(), outgoing_.end(),
                       [](const auto& of) { return !of.second.empty(); });
  }
  // (to, event) of everything that was sent and not taken: each sender's in the order of sending,
  // senders in turn from place `rotation` on.
  std::vector<Message> take_outgoing(int64_t rotation) {
    std::vector<Message> taken;
    if (outgoing_.empty()) return taken;
    const size_t first = static_cast<size_t>(rotation) % outgoing_.size();
    for (size_t i = 0; i < outgoing_.size(); ++i) {
      std::vector<Message>& sent = outgoing_[(first + i) % outgoing_.size()].second;
      std::move(sent.begin(), sent.end(), std::back_inserter(taken));
      sent.clear();
    }
    return taken;
  }
  // (address, event) of what waits to be handled, and of what waits to be taken.
  std::vector<Message> messages() const {
    std::vector<Message> all(inbox_.begin(), inbox_.end());
    for (const auto& [sender, sent] : outgoing_) all.insert(all.end(), sent.begin(), sent.end());
    return all;
  }

  // The time from which the decision counts that follows what is being handled at once.
  const std::optional<int64_t>& decision_start_us() const { return decision_start_us_; }
  // What is being handled, or was when an exception ended it; null if nothing is.
  int64_t address() const { return address_; }
  const EventPtr& event() const { return event_; }

 private:
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

  void handle(int64_t address, EventPtr event, const Calls& calls) {
    const int64_t now_us = nb::cast<int64_t>(call(calls.now_us));
    address_ = address;
    event_ = std::move(event);
    const Handler& handler = participants_.at(address);
    effects_.clear();
    if (handler.native) {
      handler.native->handle(now_us, event_, effects_);
      handler.native->hand_out(effects_);
      if (calls.log && calls.log->append(address, now_us, *event_, effects_) >= kBufferBytes)
        call(calls.write_log);
      if (calls.waits) calls.waits->handled(now_us, *event_, effects_);
      if (!calls.on_handled.is_none())
        call(calls.on_handled, number(address), number(now_us), face_of(event_),
             handler.native->listed(effects_));
      carry_out(*this, now_us, address, *handler.native, effects_, calls.rest);
    } else {
      const nb::object time = number(now_us), face = face_of(event_);
      const nb::object effects = call(nb::getattr(handler.participant, "handle"), time, face);
      if (!effects.is_none()) {  // or else it is refused below
        if (calls.log && calls.log->append(address, now_us, *event_, effects) >= kBufferBytes)
          call(calls.write_log);
        if (calls.waits) note_waits(*calls.waits, now_us, *event_, effects);
        if (!calls.on_handled.is_none())
          call(calls.on_handled, number(address), time, face, effects);
      }
      call(calls.rest, time, number(address), effects);
    }
    event_.reset();
  }

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

nb::list listed(const std::vector<ActorLoop::Message>& messages) {
  nb::list made;
  for (const auto& [address, event] : messages)
    made.append(nb::make_tuple(address, face_of(event)));
  return made;
}

template <void (ActorLoop::*run)(const ActorLoop::Calls&)>
void run_loop(ActorLoop& self, nb::handle now_us, nb::handle rest, nb::handle on_decision,
              HandledFrames* log, nb::handle write_log, StepWaits* waits, nb::handle on_handled) {
  (self.*run)({now_us, rest, on_decision, log, write_log, waits, on_handled});
}

}  // namespace

}  // namespace agora

using namespace agora;

void bind_actor_loop(nb::module_& module) {
  nb::class_<StepWaits>(module, "StepWaits", "See step_waits.hpp.")
      .def(
          "__init__",
          [](StepWaits* self, nb::handle submit_us, nb::handle group_of, int32_t groups) {
            new (self)
                StepWaits(BoundValue<SharedColumn<int64_t>>::from(submit_us, "submit_us"),
                          BoundValue<SharedColumn<int32_t>>::from(group_of, "group_of"), groups);
          },
          nb::arg("submit_us"), nb::arg("group_of"), nb::arg("groups"))
      .def(
          "handled",
          [](StepWaits& self, int64_t at_us, nb::handle event, nb::handle effects) {
            note_waits(self, at_us, *event_from(event), effects);
          },
          nb::arg("at_us"), nb::arg("event"), nb::arg("effects"))
      .def("stepped", &StepWaits::stepped, nb::arg("now_us"))
      .def_prop_ro("tasks", &StepWaits::tasks)
      .def_prop_ro("submission_us", &StepWaits::submission_us)
      .def_prop_ro("claim_us", &StepWaits::claim_us);
  nb::class_<ActorLoop> loop(module, "ActorLoop",
                             "The participants of one actor of a live run; see actor_loop.cpp.");
  bind_live_loop(loop);
  loop.def(
          "__init__",
          [](ActorLoop* self, const nb::dict& participants, nb::handle addresses,
             int64_t lateness_us) {
            new (self) ActorLoop(participants, addresses_from(addresses), lateness_us);
          },
          nb::arg("participants"), nb::arg("addresses"), nb::arg("lateness_us"))
      .def(
          "deliver",
          [](ActorLoop& self, int64_t address, nb::handle event) {
            self.deliver(address, event_from(event));
          },
          nb::arg("address"), nb::arg("event"))
      .def(
          "add_decision",
          [](ActorLoop& self, int64_t due_us, int64_t address, nb::handle event, int64_t took_us,
             int64_t over_us) {
            self.add_decision(due_us, address, event_from(event), took_us, over_us);
          },
          nb::arg("due_us"), nb::arg("address"), nb::arg("event"), nb::arg("took_us"),
          nb::arg("over_us"))
      .def("advance", &run_loop<&ActorLoop::advance>, nb::arg("now_us"), nb::arg("rest"),
           nb::arg("on_decision"), nb::arg("log").none(), nb::arg("write_log").none(),
           nb::arg("waits").none(), nb::arg("on_handled").none())
      .def("handle_messages", &run_loop<&ActorLoop::handle_messages>, nb::arg("now_us"),
           nb::arg("rest"), nb::arg("on_decision"), nb::arg("log").none(),
           nb::arg("write_log").none(), nb::arg("waits").none(), nb::arg("on_handled").none())
      .def(
          "take_outgoing",
          [](ActorLoop& self, int64_t rotation) { return listed(self.take_outgoing(rotation)); },
          nb::arg("rotation"))
      .def("messages", [](const ActorLoop& self) { return listed(self.messages()); })
      .def_prop_ro("next_due_us", &ActorLoop::next_due_us)
      .def_prop_ro("unhandled", &ActorLoop::unhandled)
      .def_prop_ro("has_outgoing", &ActorLoop::has_outgoing)
      .def_prop_ro("decision_start_us", &ActorLoop::decision_start_us);
}
