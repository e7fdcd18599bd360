// The participants beside the cell, and the loop that hands them the messages of a step and the
// timers that have come (parsync/runtime/live/cell.py says in which order, and why).
//
//   timers, messages of a step -> inbox -> handle -> carry out -> inbox, timers, other processes

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bound_participant.hpp"
#include "event_heap.hpp"
#include "events.hpp"
#include "log_frames.hpp"

namespace nb = nanobind;

namespace agora {

namespace {

class CellLoop {
 public:
  // What the loop calls. Nothing is kept: a runtime and its loop would hold each other.
  struct Calls {
    nb::handle rest;        // as in carry_out()
    nb::handle outgoing;    // (to, event) of each message to another process
    nb::handle unknown;     // (to, event) of a step's message to nobody; raises
    EffectsDigest* digest;  // of messages within the process and of timers; or null
    nb::handle on_placed;   // (event) of TasksStarted and TasksEnded from the master, or None
    nb::handle on_handled;  // (address, event, effects) before effects are carried out, or
                            // None
  };

  // participants: by address, the master among them, native or Python's. addresses: of the run's
  // participants in other processes.
  CellLoop(const nb::dict& participants, std::unordered_set<int64_t> addresses);

  // Puts participants in place of those at their addresses.
  void replace(const nb::dict& participants);

  int64_t now_us() const { return now_us_; }
  void set_now_us(int64_t now_us) { now_us_ = now_us; }

  // Every participant handles the event, in the order of their addresses. Earlier timers are
  // forgotten. Throws as run().
  void start(const EventPtr& event, int64_t at_us, const Calls& calls);
  // Handles the timers that are due at at_us, then the (address, event) pairs `messages`, each to
  // its end. Throws what participants and calls throw.
  void run(int64_t at_us, nb::handle messages, const Calls& calls);

  bool has(int64_t address) const {
    return participants_.contains(address) || addresses_.contains(address);
  }
  // Of a participant, while it is handling an event.
  void send(int64_t to, EventPtr event, int64_t sender);
  void set_timer(int64_t at_us, EventPtr event, int64_t address);

  // For checkpoints.
  EventHeap& timers() { return timers_; }

  // What is being handled, or was when an exception ended it; null if nothing is.
  int64_t address() const { return address_; }
  const EventPtr& event() const { return event_; }

 private:
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

// Shows the calls of a step to what is called meanwhile.
class Shown {
 public:
  Shown(const CellLoop::Calls*& shown, const CellLoop::Calls& calls) : shown_(shown) {
    shown_ = &calls;
  }
  ~Shown() { shown_ = nullptr; }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

 private:
  const CellLoop::Calls*& shown_;
};

CellLoop::CellLoop(const nb::dict& participants, std::unordered_set<int64_t> addresses)
    : addresses_(std::move(addresses)) {
  replace(participants);
}

void CellLoop::replace(const nb::dict& participants) {
  for (const auto& [address, participant] : participants)
    participants_.insert_or_assign(nb::cast<int64_t>(address),
                                   Handler{native_of(participant), nb::borrow(participant)});
}

void CellLoop::start(const EventPtr& event, int64_t at_us, const Calls& calls) {
  const Shown shown(calls_, calls);
  now_us_ = std::max(now_us_, at_us);
  timers_.clear();
  std::vector<int64_t> addresses;
  for (const auto& [address, handler] : participants_) addresses.push_back(address);
  std::sort(addresses.begin(), addresses.end());
  for (const int64_t address : addresses) inbox_.emplace_back(address, event);
  handle_inbox(calls);
}

void CellLoop::run(int64_t at_us, nb::handle messages, const Calls& calls) {
  const Shown shown(calls_, calls);
  now_us_ = std::max(now_us_, at_us);
  while (!timers_.empty() && timers_.next_us() <= now_us_) {
    EventHeap::Entry timer = timers_.pop();
    inbox_.emplace_back(timer.address, std::move(timer.event));
    handle_inbox(calls);
  }
  for (const nb::handle message : nb::iter(messages)) {
    const nb::object address = message[0], event = message[1];
    const auto to = nb::cast<int64_t>(address);
    if (participants_.contains(to)) {
      inbox_.emplace_back(to, event_from(event));
      handle_inbox(calls);
    } else {
      call(addresses_.contains(to) ? calls.outgoing : calls.unknown, address, event);
    }
  }
}

void CellLoop::send(int64_t to, EventPtr event, int64_t sender) {
  if (!calls_) throw std::logic_error("send: no participant is handling an event");
  const Calls& calls = *calls_;
  const EventPtr sent = event;
  if (participants_.contains(to)) {
    if (calls.digest) calls.digest->add(to, *event);
    inbox_.emplace_back(to, std::move(event));
  } else {
    call(calls.outgoing, number(to), face_of(event));
  }
  const uint64_t key = sent->key();
  if (sender == kMaster && !calls.on_placed.is_none() &&
      (key == TasksStarted::kType.key() || key == TasksEnded::kType.key()))
    call(calls.on_placed, face_of(sent));
}

void CellLoop::set_timer(int64_t at_us, EventPtr event, int64_t address) {
  if (!calls_) throw std::logic_error("set_timer: no participant is handling an event");
  if (calls_->digest) calls_->digest->add(address, at_us, *event);
  timers_.push(at_us, address, std::move(event));
}

void CellLoop::handle_inbox(const Calls& calls) {
  while (!inbox_.empty()) {
    const auto [address, event] = std::move(inbox_.front());
    inbox_.pop_front();
    handle(address, event, calls);
  }
}

void CellLoop::handle(int64_t address, const EventPtr& event, const Calls& calls) {
  address_ = address;
  event_ = event;
  const Handler& handler = participants_.at(address);
  effects_.clear();
  if (handler.native) {
    handler.native->handle(now_us_, event, effects_);
    if (!calls.on_handled.is_none()) {
      handler.native->hand_out(effects_);
      call(calls.on_handled, number(address), face_of(event), handler.native->listed(effects_));
    }
    carry_out(*this, now_us_, address, *handler.native, effects_, calls.rest);
  } else {
    const nb::object time = number(now_us_), face = face_of(event);
    const nb::object effects = call(nb::getattr(handler.participant, "handle"), time, face);
    if (!effects.is_none() && !calls.on_handled.is_none())  // None is refused below
      call(calls.on_handled, number(address), face, effects);
    call(calls.rest, time, number(address), effects);
  }
  event_.reset();
}

nb::tuple timers(CellLoop& self) {
  nb::list waiting;
  for (const EventHeap::Entry* entry : self.timers().in_order())
    waiting.append(nb::make_tuple(entry->at_us, static_cast<int>(entry->priority), entry->sequence,
                                  entry->address, face_of(entry->event)));
  return nb::make_tuple(self.timers().added(), nb::tuple(waiting));
}

void restore_timers(CellLoop& self, const nb::tuple& state) {
  std::vector<EventHeap::Entry> entries;
  for (const nb::handle timer : nb::iter(state[1]))
    entries.push_back({nb::cast<int64_t>(timer[0]), static_cast<Priority>(nb::cast<int>(timer[1])),
                       nb::cast<uint64_t>(timer[2]), nb::cast<int64_t>(timer[3]),
                       event_from(nb::object(timer[4]))});
  self.timers().restore(std::move(entries), nb::cast<uint64_t>(state[0]));
}

}  // namespace

}  // namespace agora

using namespace agora;

void bind_cell_loop(nb::module_& module) {
  nb::class_<CellLoop> loop(module, "CellLoop",
                            "The participants beside the cell; see cell_loop.cpp.");
  bind_live_loop(loop);
  loop.def(
          "__init__",
          [](CellLoop* self, const nb::dict& participants, nb::handle addresses) {
            new (self) CellLoop(participants, addresses_from(addresses));
          },
          nb::arg("participants"), nb::arg("addresses"))
      .def("replace", &CellLoop::replace, nb::arg("participants"))
      .def(
          "start",
          [](CellLoop& self, nb::handle event, int64_t at_us, nb::handle rest, nb::handle outgoing,
             nb::handle unknown, EffectsDigest* digest, nb::handle on_placed,
             nb::handle on_handled) {
            self.start(event_from(event), at_us,
                       {rest, outgoing, unknown, digest, on_placed, on_handled});
          },
          nb::arg("event"), nb::arg("at_us"), nb::arg("rest"), nb::arg("outgoing"),
          nb::arg("unknown"), nb::arg("digest").none(), nb::arg("on_placed").none(),
          nb::arg("on_handled").none())
      .def(
          "run",
          [](CellLoop& self, nb::handle messages, int64_t at_us, nb::handle rest,
             nb::handle outgoing, nb::handle unknown, EffectsDigest* digest, nb::handle on_placed,
             nb::handle on_handled) {
            self.run(at_us, messages, {rest, outgoing, unknown, digest, on_placed, on_handled});
          },
          nb::arg("messages"), nb::arg("at_us"), nb::arg("rest"), nb::arg("outgoing"),
          nb::arg("unknown"), nb::arg("digest").none(), nb::arg("on_placed").none(),
          nb::arg("on_handled").none())
      .def("timers", &timers)
      .def("restore_timers", &restore_timers, nb::arg("state"))
      .def_prop_rw("now_us", &CellLoop::now_us, &CellLoop::set_now_us);
}
