#include "event_queue.hpp"

#include <chrono>

#include "bound_event.hpp"
#include "effect_interpreter.hpp"
#include "events.hpp"

namespace nb = nanobind;

namespace agora {

// As effect_interpreter.hpp wants it.
struct EventQueue::Runtime {
  EventQueue& queue;
  const Handlers& handlers;
  Measurements* gathered;

  bool has(int64_t address) const { return handlers.contains(address); }
  void send(int64_t now_us, int64_t to, EventPtr event, int64_t sender) {
    queue.send(now_us, to, std::move(event), sender);
  }
  void set_timer(int64_t now_us, int64_t at_us, EventPtr event, int64_t sender) {
    queue.set_timer(now_us, at_us, std::move(event), sender);
  }
  bool carries_out(int64_t, int64_t, const Effect& effect, BoundParticipant& participant) {
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
      run_native(*handler.native, known, carry_out, gathered);
      continue;
    }
    const nb::object now_us = number(now_us_);
    const nb::object effects = call(handler.callable, now_us, face_of(event_));
    if (PyList_CheckExact(effects.ptr()) && PyList_GET_SIZE(effects.ptr()) == 0) continue;
    call(carry_out, now_us, number(address_), effects);
  }
  now_us_ = until_us;
}

void EventQueue::run_native(BoundParticipant& participant, const Handlers& handlers,
                            nb::handle carry_out, Measurements* gathered) {
  effects_.clear();
  participant.handle(now_us_, event_, effects_);
  Runtime runtime{*this, handlers, gathered};
  agora::carry_out(runtime, now_us_, address_, participant, effects_, carry_out);
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

}  // namespace agora
