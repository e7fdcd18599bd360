// Calls of Python from loops that make many.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <variant>

#include "bound_participant.hpp"
#include "participant.hpp"

namespace agora {

// Calls `callable` with these arguments.
template <class... Arguments>
nanobind::object call(nanobind::handle callable, const Arguments&... arguments) {
  PyObject* const columns[] = {nullptr, arguments.ptr()...};
  PyObject* result = PyObject_Vectorcall(
      callable.ptr(), columns + 1, sizeof...(Arguments) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (!result) throw nanobind::python_error();
  return nanobind::steal(result);
}

inline nanobind::object number(int64_t value) {
  PyObject* result = PyLong_FromLongLong(value);
  if (!result) throw nanobind::python_error();
  return nanobind::steal(result);
}

// What native participants ask for, carried out under every runtime. A runtime's clock and
// transport are its own. What is Python's business, such as records and refusals, is done by
// parsync/runtime/effect_interpreter.py, which also carries out the effects of Python participants.

// Carries out, in order, what the participant at `sender` asked for at now_us.
//
// Runtime:
//   bool has(int64_t address)                        whether a participant has that address
//   void send(now_us, to, EventPtr, sender)          delivers a message; the receiver exists
//   void set_timer(now_us, at_us, EventPtr, sender)  delivers an event at at_us
//   bool carries_out(now_us, sender, effect, participant)
//                                                    carries out another effect itself, or returns
//                                                    false
// rest: called with (now_us, sender, effects) for what the runtime does not carry out.
template <class Runtime>
void carry_out(Runtime& runtime, int64_t now_us, int64_t sender, BoundParticipant& participant,
               Effects& effects, nanobind::handle rest) {
  Effects others;
  for (Effect& effect : effects.list()) {
    if (auto* message = std::get_if<Send>(&effect); message && runtime.has(message->to)) {
      runtime.send(now_us, message->to, std::move(message->event), sender);
    } else if (auto* timer = std::get_if<SetTimer>(&effect)) {
      runtime.set_timer(now_us, timer->at_us, std::move(timer->event), sender);
    } else if (!runtime.carries_out(now_us, sender, effect, participant)) {
      others.clear();
      others.add(std::move(effect));
      call(rest, number(now_us), number(sender), participant.listed(others));
    }
  }
}

}  // namespace agora
