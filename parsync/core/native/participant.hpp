// What a runtime drives: participants, and what they ask for.
//
// A participant is a core of the system without I/O: no clock, no network, no global state. The
// same events at the same times lead to the same effects, which is what a replay relies on. Whether
// it is native or Python's (bound_participant.hpp), the contract is that of
// parsync/core/participant.py and effects.py.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "event.hpp"
#include "parsync/metrics/native/measurements.hpp"

namespace agora {

// Deliver the event to the participant at address `to`, whichever process it lives in.
struct Send {
  int64_t to;
  EventPtr event;
};

// Deliver the event to the sender at at_us, or at once if that is past.
struct SetTimer {
  int64_t at_us;
  EventPtr event;
};

// Compute the sender's decision of that number on its state as of now, and deliver DecisionDone
// when the decision has taken its time.
struct StartDecision {
  int64_t decision;
};

// Hand out all rows that wait in the measurements of the sender, a Record per table.
struct HandOut {};

// An effect of a Python participant that has no native form: a Record.
struct PythonEffect {
  std::shared_ptr<void> object;
};

using Effect = std::variant<Send, SetTimer, StartDecision, HandOut, PythonEffect>;

// In the order in which they are to be carried out.
class Effects {
 public:
  template <class T>
  void send(int64_t to, T event) {
    send(to, EventPtr(std::make_shared<const T>(std::move(event))));
  }
  void send(int64_t to, EventPtr event) { list_.emplace_back(Send{to, std::move(event)}); }
  template <class T>
  void set_timer(int64_t at_us, T event) {
    list_.emplace_back(SetTimer{at_us, std::make_shared<const T>(std::move(event))});
  }
  void start_decision(int64_t decision) { list_.emplace_back(StartDecision{decision}); }
  void hand_out() { list_.emplace_back(HandOut{}); }
  void add(Effect effect) { list_.push_back(std::move(effect)); }

  std::vector<Effect>& list() { return list_; }
  const std::vector<Effect>& list() const { return list_; }
  void clear() { list_.clear(); }

 private:
  std::vector<Effect> list_;
};

class Participant {
 public:
  Participant() = default;
  virtual ~Participant() = default;
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  // Handles one event: appends what the runtime is to carry out.
  //
  // now_us: the runtime's time, never earlier than at the last event. Throws WrongEvent for events
  // that this participant does not handle.
  virtual void handle(int64_t now_us, const EventPtr& event, Effects& effects) = 0;
};

// A participant that takes decisions: an agent with a scheduler.
class Decider : public Participant {
 public:
  // Computes the decision of a StartDecision on the state as it stands now.
  virtual void decide(int64_t decision, int64_t now_us) = 0;
  // The time that the decision just computed takes. elapsed_ns: the wall time that decide() took;
  // only measured clocks use it.
  virtual int64_t decision_us(int64_t elapsed_ns) = 0;
};

// A participant was sent an event that it does not handle.
struct WrongEvent {
  std::string participant;
  EventPtr event;
};

// Throws std::invalid_argument, naming the event, unless each of its columns has `rows` rows:
// anybody may send any event.
template <class... Columns>
void check_rows(const char* event, size_t rows, const Columns&... columns) {
  if (((columns.rows() != rows) || ...))
    throw std::invalid_argument(std::string(event) + ": its columns differ in length");
}

// The event as a T. Its key() must be that of T.
template <class T>
const T& as(const EventPtr& event) {
  return static_cast<const T&>(*event);
}

}  // namespace agora
