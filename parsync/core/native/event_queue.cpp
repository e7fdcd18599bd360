#include "event_queue.hpp"

#include <chrono>

#include "bound_event.hpp"
#include "events.hpp"

namespace nb = nanobind;

namespace agora {

namespace {

// Calls `callable` with these arguments.
template <class... Arguments>
nb::object call(nb::handle callable, const Arguments&... arguments) {
  PyObject* const columns[] = {nullptr, arguments.ptr()...};
  PyObject* result = PyObject_Vectorcall(
      callable.ptr(), columns + 1, sizeof...(Arguments) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (!result) throw nb::python_error();
  return nb::steal(result);
}

nb::object number(int64_t value) {
  PyObject* result = PyLong_FromLongLong(value);
  if (!result) throw nb::python_error();
  return nb::steal(result);
}

}  // namespace

void EventQueue::push(int64_t at_us, int64_t address, EventPtr event) {
  const Priority priority = event->priority();
  heap_.push_back({at_us, priority, ++sent_, address, std::move(event)});
  std::push_heap(heap_.begin(), heap_.end(), IsLater{});
}

EventQueue::Entry EventQueue::pop() {
  std::pop_heap(heap_.begin(), heap_.end(), IsLater{});
  Entry entry = std::move(heap_.back());
  heap_.pop_back();
  return entry;
}

void EventQueue::run_until(int64_t until_us, LogFrames& log, const nb::dict& handlers,
                           nb::handle carry_out, nb::handle hash_log, Measurements* gathered) {
  Handlers known;
  for (const auto& [address, handler] : handlers) {
    BoundParticipant* native = nullptr;
    nb::try_cast(handler, native, false);
    known.emplace(nb::cast<int64_t>(address), Handler{native, nb::borrow(handler)});
  }
  while (!heap_.empty() && heap_.front().at_us <= until_us) {
    // Ctrl-C ends a loop of native participants, too
    if (handled_ % kSignalEvents == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
    Entry entry = pop();
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
  const int64_t now_us = now_us_, sender = address_;
  Effects others;
  for (Effect& effect : effects_.list()) {
    if (auto* message = std::get_if<Send>(&effect); message && handlers.contains(message->to)) {
      send(now_us, message->to, std::move(message->event), sender);
    } else if (auto* timer = std::get_if<SetTimer>(&effect)) {
      set_timer(now_us, timer->at_us, std::move(timer->event), sender);
    } else if (auto* start = std::get_if<StartDecision>(&effect); start && participant.decider()) {
      decide(*participant.decider(), start->decision);
    } else if (!std::holds_alternative<HandOut>(effect) || !gathered ||
               !gathered->take_over(nb::cast<Measurements&>(participant.records()))) {
      others.clear();
      others.add(std::move(effect));
      call(carry_out, number(now_us), number(sender), participant.listed(others));
    }
  }
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
  std::vector<const Entry*> entries;
  for (const Entry& entry : heap_) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const Entry* a, const Entry* b) { return IsLater{}(*b, *a); });
  nb::list waiting;
  for (const Entry* entry : entries)
    waiting.append(nb::make_tuple(entry->at_us, entry->address, face_of(entry->event)));
  return waiting;
}

}  // namespace agora
