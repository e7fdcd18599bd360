// The events of a run in virtual time that are still to come, and the loop that hands them to their
// receivers: the time an event takes besides what its receiver does with it.
//
// Order: time, then priority (parsync/core/event.py), then the order of sending.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "bound_participant.hpp"
#include "event_heap.hpp"
#include "events.hpp"
#include "log_frames.hpp"

namespace nb = nanobind;

namespace agora {

namespace {

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
  void run_until(int64_t until_us, LogFrames& log, const nb::dict& handlers, nb::handle carry_out,
                 nb::handle hash_log, Measurements* gathered);

  // (at_us, address, event) of all that are still to come, in order.
  nb::list waiting() const;

 private:
  static constexpr size_t kHashedBytes = size_t{1} << 16;
  static constexpr int64_t kSignalEvents = 256;  // between two checks for a signal

  struct Runtime;
  using Handlers = std::unordered_map<int64_t, Handler>;

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

// As carry_out() wants it.
struct EventQueue::Runtime {
  EventQueue& queue;
  const Handlers& handlers;
  Measurements* gathered;

  bool has(int64_t address) const { return handlers.contains(address); }
  void send(int64_t to, EventPtr event, int64_t sender) {
    queue.send(queue.now_us_, to, std::move(event), sender);
  }
  void set_timer(int64_t at_us, EventPtr event, int64_t sender) {
    queue.set_timer(queue.now_us_, at_us, std::move(event), sender);
  }
  bool carries_out(const Effect& effect, BoundParticipant& participant) {
    if (const auto* start = std::get_if<StartDecision>(&effect); start && participant.decider()) {
      queue.decide(*participant.decider(), start->decision);
      return true;
    }
    return std::holds_alternative<HandOut>(effect) && gathered &&
           gathered->take_over(nb::cast<Measurements&>(participant.records()));
  }
};

void EventQueue::run_until(int64_t until_us, LogFrames& log, const nb::dict& handlers,
                           nb::handle carry_out, nb::handle hash_log, Measurements* gathered) {
  Handlers known;
  for (const auto& [address, handler] : handlers) {
    BoundParticipant* native = nullptr;
    nb::try_cast(handler, native, false);
    known.emplace(nb::cast<int64_t>(address), Handler{native, nb::borrow(handler)});
  }
  Runtime runtime{*this, known, gathered};
  while (!to_come_.empty() && to_come_.next_us() <= until_us) {
    // Ctrl-C ends a loop of native participants, too
    if (handled_ % kSignalEvents == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
    EventHeap::Entry entry = to_come_.pop();
    now_us_ = entry.at_us;
    address_ = entry.address;
    event_ = std::move(entry.event);
    ++handled_;
    if (log.append(address_, now_us_, *event_) >= kHashedBytes) call(hash_log);
    const Handler& handler = known.at(address_);
    if (handler.native) {
      effects_.clear();
      handler.native->handle(now_us_, event_, effects_);
      agora::carry_out(runtime, now_us_, address_, *handler.native, effects_, carry_out);
      continue;
    }
    const nb::object now_us = number(now_us_);
    const nb::object effects = call(handler.participant, now_us, face_of(event_));
    if (PyList_CheckExact(effects.ptr()) && PyList_GET_SIZE(effects.ptr()) == 0) continue;
    call(carry_out, now_us, number(address_), effects);
  }
  now_us_ = until_us;
}

// Computes the decision at once, on the state as it stands. The measured time stays out of the
// event: a run in virtual time repeats, log and all.
void EventQueue::decide(Decider& decider, int64_t decision) {
  using Clock = std::chrono::steady_clock;
  const int64_t now_us = now_us_, address = address_;
  const Clock::time_point begun = Clock::now();
  decider.decide(decision, now_us);
  const auto elapsed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun);
  const int64_t decision_us = decider.decision_us(elapsed.count());
  const auto done = std::make_shared<DecisionDone>();
  done->decision = decision;
  set_timer(now_us, now_us + decision_us, done, address);
}

nb::list EventQueue::waiting() const {
  nb::list waiting;
  for (const EventHeap::Entry* entry : to_come_.in_order())
    waiting.append(nb::make_tuple(entry->at_us, entry->address, face_of(entry->event)));
  return waiting;
}

}  // namespace

}  // namespace agora

using namespace agora;

void bind_event_queue(nb::module_& module) {
  nb::class_<EventQueue> queue(module, "EventQueue",
                               "The events of a run in virtual time; see event_queue.cpp.");
  bind_handled(queue);
  queue
      .def(
          "__init__",
          [](EventQueue* self, int64_t message_us, const nb::frozenset& beside_cell) {
            new (self) EventQueue(message_us, addresses_from(beside_cell));
          },
          nb::arg("message_us"), nb::arg("beside_cell"))
      .def(
          "send",
          [](EventQueue& self, int64_t now_us, int64_t to, nb::handle event, int64_t sender) {
            self.send(now_us, to, event_from(event), sender);
          },
          nb::arg("now_us"), nb::arg("to"), nb::arg("event"), nb::arg("sender"))
      .def(
          "set_timer",
          [](EventQueue& self, int64_t now_us, int64_t at_us, nb::handle event, int64_t address) {
            self.set_timer(now_us, at_us, event_from(event), address);
          },
          nb::arg("now_us"), nb::arg("at_us"), nb::arg("event"), nb::arg("address"))
      .def(
          "begin_rest",
          [](EventQueue& self, nb::handle event, int64_t until_us, int64_t interval_us,
             int64_t before_us) {
            const auto kind = nb::cast<std::string>(event.attr("kind"));
            const uint64_t key = EventType::key_of(kind, nb::cast<int>(event.attr("number")));
            self.begin_rest({key, until_us, interval_us, before_us});
          },
          nb::arg("event"), nb::arg("until_us"), nb::arg("interval_us"), nb::arg("before_us"))
      .def("end_rest", &EventQueue::end_rest)
      .def("run_until", &EventQueue::run_until, nb::arg("until_us"), nb::arg("log"),
           nb::arg("handlers"), nb::arg("carry_out"), nb::arg("hash_log"),
           nb::arg("gathered").none())
      .def("waiting", &EventQueue::waiting)
      .def_prop_ro("now_us", &EventQueue::now_us)
      .def_prop_ro("handled", &EventQueue::handled);
}
