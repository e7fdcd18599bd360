// Participants in Python. Native ones are classes with `handle(now_us, event) -> list of effects`;
// native code holds those that are Python's as PythonParticipant.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>

#include "event.hpp"
#include "participant.hpp"
#include "shared_state/native/bound_fields.hpp"

namespace agora {

// Events in Python. A native event has a Python class that is used like a frozen dataclass
// (shared_state/native/bound_fields.hpp) and counts as a subclass of parsync.core.event.Event.
// Events of other packages are instances of Python classes; native code holds one as a PythonEvent.

// An event whose class is a Python class, or any object that a Python participant sends as an
// event. Created and destroyed only while the interpreter's lock is held.
class PythonEvent final : public Event {
 public:
  // Throws what looking up its priority throws.
  explicit PythonEvent(nanobind::object event)
      : Event(0, priority_of(event)), event_(std::move(event)) {}

  const nanobind::object& event() const { return event_; }
  std::string_view kind() const override {
    Py_ssize_t size = 0;
    kind_ = nanobind::getattr(event_, "kind");
    const char* const text = PyUnicode_AsUTF8AndSize(kind_.ptr(), &size);
    if (!text) throw nanobind::python_error();
    return {text, static_cast<size_t>(size)};
  }
  void encode(EventEncoder& encoder, std::string& out) const override {
    encoder.put_foreign(event_.ptr(), out);
  }

 private:
  // The priority is an attribute of the event's class.
  static Priority priority_of(nanobind::handle event) {
    const nanobind::object priority = nanobind::getattr(event, "priority");
    const long long value = PyLong_AsLongLong(priority.ptr());
    if (value == -1 && PyErr_Occurred()) throw nanobind::python_error();
    return static_cast<Priority>(value);
  }

  nanobind::object event_;
  mutable nanobind::object kind_;  // whose text kind() shows
};

// What Python gave, as native code holds it.
inline EventPtr event_from(nanobind::handle event) {
  std::shared_ptr<Event> native;
  if (nanobind::try_cast(event, native, false) && native) return native;
  return std::make_shared<PythonEvent>(nanobind::borrow(event));
}

// What Python sees of an event.
inline nanobind::object face_of(const EventPtr& event) {
  if (event->key() == 0) return static_cast<const PythonEvent&>(*event).event();
  return nanobind::cast(std::const_pointer_cast<Event>(event));
}

// The attribute of a class that tells how its events are decoded: a capsule of a DecodeEvent.
constexpr const char* kDecoderName = "_decoder";

// Makes the Python class of a native event, in the module of its protocol. `base`: the Python class
// of the protocol's events, a subclass of parsync.core.event.Event.
template <class T>
void bind_event(nanobind::module_& module, nanobind::handle base) {
  nanobind::class_<T, Event> bound(module, T::kName, T::kDoc,
                                   nanobind::type_slots(field_slots<T>()), nanobind::is_final());
  bind_fields<T>(bound);
  const nanobind::object priority =
      nanobind::module_::import_("parsync.core.event").attr("Priority");
  bound.attr("kind") = nanobind::str(T::kType.kind.data(), T::kType.kind.size());
  bound.attr("number") = T::kType.number;
  bound.attr("priority") = priority(static_cast<int>(T::kType.priority));
  static constexpr DecodeEvent decode = &decode_event<T>;
  bound.attr(kDecoderName) = nanobind::capsule(&decode);
  base.attr("register")(bound);
}

// The classes of effects in Python.
struct EffectClasses {
  nanobind::handle send, set_timer, start_decision;

  static const EffectClasses& get() {
    static const EffectClasses classes = [] {
      const nanobind::module_ effects = nanobind::module_::import_("parsync.core.effects");
      const auto named = [&](const char* name) {
        return nanobind::object(effects.attr(name)).release();
      };
      return EffectClasses{named("Send"), named("SetTimer"), named("StartDecision")};
    }();
    return classes;
  }
};

// Appends what a Python participant returned.
inline void add_effects(nanobind::handle returned, Effects& effects) {
  const EffectClasses& classes = EffectClasses::get();
  for (const nanobind::handle effect : nanobind::iter(returned)) {
    const nanobind::handle type = effect.type();
    if (type.is(classes.send)) {
      effects.send(BoundValue<int64_t>::from(effect.attr("to"), "Send.to"),
                   event_from(effect.attr("event")));
    } else if (type.is(classes.set_timer)) {
      effects.add(SetTimer{BoundValue<int64_t>::from(effect.attr("at_us"), "SetTimer.at_us"),
                           event_from(effect.attr("event"))});
    } else if (type.is(classes.start_decision)) {
      effects.start_decision(
          BoundValue<int64_t>::from(effect.attr("decision"), "StartDecision.decision"));
    } else {
      effects.add(PythonEffect{share(effect)});
    }
  }
}

// A participant whose class is Python's.
class PythonParticipant : public Participant {
 public:
  explicit PythonParticipant(nanobind::object participant)
      : participant_(std::move(participant)), handle_(participant_.attr("handle")) {}

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override {
    add_effects(handle_(now_us, face_of(event)), effects);
  }

 private:
  nanobind::object participant_, handle_;
};

// A native participant with what it borrows from Python. The base of the classes that Python sees.
class BoundParticipant {
 public:
  explicit BoundParticipant(nanobind::object records) : records_(std::move(records)) {}
  virtual ~BoundParticipant() = default;

  // Throws TypeError for an event that the participant does not handle.
  void handle(int64_t now_us, const EventPtr& event, Effects& effects) {
    try {
      core().handle(now_us, event, effects);
    } catch (const WrongEvent& wrong) {
      const std::string name = nanobind::cast<std::string>(
          nanobind::handle(face_of(wrong.event).type()).attr("__name__"));
      throw nanobind::type_error((wrong.participant + " cannot handle " + name).c_str());
    }
  }

  virtual Participant& core() = 0;
  // The same, if it takes decisions; null if not.
  virtual Decider* decider() { return nullptr; }
  // The Python Measurements that HandOut empties; None if it makes none.
  const nanobind::object& records() const { return records_; }

  // Puts Records in place of HandOut.
  void hand_out(Effects& effects) const {
    const auto hands_out = [](const Effect& effect) {
      return std::holds_alternative<HandOut>(effect);
    };
    if (std::none_of(effects.list().begin(), effects.list().end(), hands_out)) return;
    Effects with_records;
    for (Effect& effect : effects.list()) {
      if (!hands_out(effect)) {
        with_records.add(std::move(effect));
        continue;
      }
      for (const nanobind::handle record : nanobind::iter(records_.attr("flush")()))
        with_records.add(PythonEffect{share(record)});
    }
    effects = std::move(with_records);
  }

  // What carrying out `effects` means in Python: a list of its effects.
  nanobind::list listed(Effects& effects) const {
    const EffectClasses& classes = EffectClasses::get();
    nanobind::list made;
    for (Effect& effect : effects.list()) {
      if (const auto* send = std::get_if<Send>(&effect)) {
        made.append(classes.send(send->to, face_of(send->event)));
      } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
        made.append(classes.set_timer(timer->at_us, face_of(timer->event)));
      } else if (const auto* start = std::get_if<StartDecision>(&effect)) {
        made.append(classes.start_decision(start->decision));
      } else if (std::holds_alternative<HandOut>(effect)) {
        made.extend(records_.attr("flush")());
      } else {
        const auto& object = std::get<PythonEffect>(effect).object;
        made.append(nanobind::handle(static_cast<PyObject*>(object.get())));
      }
    }
    return made;
  }

 private:
  nanobind::object records_;
};

// A participant that handles events in native code; null of any other. A subclass in Python may
// have a handle() of its own.
inline BoundParticipant* native_of(nanobind::handle participant) {
  BoundParticipant* native = nullptr;
  if (!nanobind::try_cast(participant, native, false) || !native) return nullptr;
  const nanobind::object handles = participant.type().attr("handle");
  return handles.is(nanobind::type<BoundParticipant>().attr("handle")) ? native : nullptr;
}

// What the loops that drive participants share (event_queue.cpp, actor_loop.cpp, cell_loop.cpp).

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

// A participant as a loop holds it.
struct Handler {
  BoundParticipant* native;  // null if its handle() is Python's
  nanobind::object participant;
};

// What native participants ask for, carried out under every runtime. A loop's clock and transport
// are its own. What is Python's business, such as records and refusals, is done by
// parsync/runtime/effect_interpreter.py, which also carries out the effects of Python participants.

// Carries out, in order, what the participant at `sender` asked for at now_us.
//
// Loop:
//   bool has(int64_t address)                whether a participant has that address
//   void send(to, EventPtr, sender)          delivers a message; the receiver exists
//   void set_timer(at_us, EventPtr, sender)  delivers an event at at_us
//   bool carries_out(effect, participant)    carries out another effect itself, or returns false;
//                                            without it, none
// rest: called with (now_us, sender, effects) for what the loop does not carry out.
template <class Loop>
void carry_out(Loop& loop, int64_t now_us, int64_t sender, BoundParticipant& participant,
               Effects& effects, nanobind::handle rest) {
  const auto carries_out = [&](const Effect& effect) {
    if constexpr (requires { loop.carries_out(effect, participant); })
      return loop.carries_out(effect, participant);
    return false;
  };
  Effects others;
  for (Effect& effect : effects.list()) {
    if (auto* message = std::get_if<Send>(&effect); message && loop.has(message->to)) {
      loop.send(message->to, std::move(message->event), sender);
    } else if (auto* timer = std::get_if<SetTimer>(&effect)) {
      loop.set_timer(timer->at_us, std::move(timer->event), sender);
    } else if (!carries_out(effect)) {
      others.clear();
      others.add(std::move(effect));
      call(rest, number(now_us), number(sender), participant.listed(others));
    }
  }
}

// The addresses of an iterable of ints.
inline std::unordered_set<int64_t> addresses_from(nanobind::handle addresses) {
  std::unordered_set<int64_t> known;
  for (const nanobind::handle address : nanobind::iter(addresses))
    known.insert(nanobind::cast<int64_t>(address));
  return known;
}

// What is being handled, or was when an exception ended it; None if nothing is.
template <class Loop>
void bind_handled(nanobind::class_<Loop>& loop) {
  loop.def_prop_ro("address", &Loop::address).def_prop_ro("event", [](const Loop& self) {
    return self.event() ? face_of(self.event()) : nanobind::none();
  });
}

// send() and set_timer(), for what Python carries out.
template <class Loop>
void bind_live_loop(nanobind::class_<Loop>& loop) {
  bind_handled(loop);
  loop.def(
          "send",
          [](Loop& self, int64_t to, nanobind::handle event, int64_t sender) {
            self.send(to, event_from(event), sender);
          },
          nanobind::arg("to"), nanobind::arg("event"), nanobind::arg("sender"))
      .def(
          "set_timer",
          [](Loop& self, int64_t at_us, nanobind::handle event, int64_t address) {
            self.set_timer(at_us, event_from(event), address);
          },
          nanobind::arg("at_us"), nanobind::arg("event"), nanobind::arg("address"));
}

}  // namespace agora
