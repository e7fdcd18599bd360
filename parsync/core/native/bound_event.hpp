// Events in Python. A native event has a Python class that is used like a frozen dataclass
// (shared_state/native/bound_fields.hpp) and counts as a subclass of parsync.core.event.Event.
// Events of other packages are instances of Python classes; native code holds one as a PythonEvent.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <string>
#include <utility>

#include "event.hpp"
#include "event_codec.hpp"
#include "shared_state/native/bound_fields.hpp"

namespace agora {

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

}  // namespace agora
