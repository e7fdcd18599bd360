// Participants in Python. Native ones are classes with `handle(now_us, event) -> list of effects`;
// native code holds those that are Python's as PythonParticipant.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <string>
#include <utility>

#include "bound_event.hpp"
#include "participant.hpp"

namespace agora {

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

}  // namespace agora
