// The digests of effects in the logs of live runs: of an actor's events and of the cell's
// steps (parsync/runtime/live/logs.py).
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <utility>

#include "blake2b.hpp"
#include "bound_participant.hpp"
#include "python_codec.hpp"

namespace agora {

// blake2b over encoded values, in order.
class EffectsDigest {
 public:
  EffectsDigest(Encoder& encoder, size_t digest_bytes)
      : encoder_(encoder), digest_bytes_(digest_bytes), hash_(digest_bytes) {}

  // Throws as Encoder::encode(); the digest is then of no use.
  void add(nanobind::handle value) {
    bytes_.clear();
    encoder_.pack(value, bytes_);
    hash_.update(bytes_);
  }
  void add(int64_t number) {
    bytes_.clear();
    msgpack::put_integer(bytes_, number);
    hash_.update(bytes_);
  }
  // A pair of a number and an event.
  void add(int64_t number, const Event& event) {
    begin_pair(number);
    event.encode(encoder_, bytes_);
    hash_.update(bytes_);
  }
  void add(int64_t number, nanobind::handle event) {
    begin_pair(number);
    encoder_.pack(event, bytes_);
    hash_.update(bytes_);
  }
  // Two numbers and an event.
  void add(int64_t first, int64_t second, const Event& event) {
    bytes_.clear();
    msgpack::put_array_head(bytes_, 3);
    msgpack::put_integer(bytes_, first);
    msgpack::put_integer(bytes_, second);
    event.encode(encoder_, bytes_);
    hash_.update(bytes_);
  }
  // A message to another process: the address and the length of its bytes, then these. Returns
  // them.
  nanobind::bytes add_outgoing(int64_t to, nanobind::handle event) {
    bytes_.clear();
    encoder_.pack(event, bytes_);
    head_.clear();
    msgpack::put_array_head(head_, 2);
    msgpack::put_integer(head_, to);
    msgpack::put_unsigned(head_, bytes_.size());
    hash_.update(head_);
    hash_.update(bytes_);
    return nanobind::bytes(bytes_.data(), bytes_.size());
  }

  // The digest since the last call.
  std::string take() {
    const std::string digest = hash_.digest();
    hash_ = Blake2b(digest_bytes_);
    return digest;
  }

 private:
  void begin_pair(int64_t number) {
    bytes_.clear();
    msgpack::put_array_head(bytes_, 2);
    msgpack::put_integer(bytes_, number);
  }

  Encoder& encoder_;
  size_t digest_bytes_;
  Blake2b hash_;
  std::string bytes_, head_;
};

// Digests of the effects of one event each.
class EventEffectsDigest {
 public:
  static constexpr size_t kBytes = 8;

  // measured: the tables whose rows are left out.
  EventEffectsDigest(Encoder& encoder, nanobind::object measured)
      : digest_(encoder, kBytes), measured_(std::move(measured)) {}

  // Those of a native participant, with Records in place of HandOut. Throws as Encoder::encode().
  std::string of(const Effects& effects) {
    digest_.take();
    for (const Effect& effect : effects.list()) {
      if (const auto* send = std::get_if<Send>(&effect)) {
        digest_.add(send->to, *send->event);
      } else if (const auto* timer = std::get_if<SetTimer>(&effect)) {
        digest_.add(timer->at_us, *timer->event);
      } else if (const auto* start = std::get_if<StartDecision>(&effect)) {
        digest_.add(start->decision);
      } else {
        add_record(static_cast<PyObject*>(std::get<PythonEffect>(effect).object.get()));
      }
    }
    return digest_.take();
  }

  // effects: as Participant.handle of Python returns them. Throws as Encoder::encode().
  std::string of(nanobind::handle effects) {
    digest_.take();
    const EffectClasses& classes = EffectClasses::get();
    for (const nanobind::handle effect : nanobind::iter(effects)) {
      if (is(effect, classes.send)) {
        add_pair(effect.attr("to"), effect.attr("event"));
      } else if (is(effect, classes.set_timer)) {
        add_pair(effect.attr("at_us"), effect.attr("event"));
      } else if (is(effect, record_class())) {
        add_record(effect);
      } else {
        digest_.add(effect.attr("decision"));
      }
    }
    return digest_.take();
  }

 private:
  static bool is(nanobind::handle effect, nanobind::handle type) {
    if (effect.type().is(type)) return true;
    const int instance = PyObject_IsInstance(effect.ptr(), type.ptr());
    if (instance < 0) throw nanobind::python_error();
    return instance != 0;
  }
  static nanobind::handle record_class() {
    static const nanobind::handle cls =
        nanobind::object(nanobind::module_::import_("parsync.metrics.record").attr("Record"))
            .release();
    return cls;
  }
  void add_record(nanobind::handle record) {
    const nanobind::object table = record.attr("table");
    const int is_measured = PySequence_Contains(measured_.ptr(), table.ptr());
    if (is_measured < 0) throw nanobind::python_error();
    if (!is_measured)
      digest_.add(
          nanobind::make_tuple(table, nanobind::tuple(record.attr("columns").attr("values")())));
  }
  void add_pair(const nanobind::object& number, const nanobind::object& event) {
    if (PyLong_CheckExact(number.ptr()))
      digest_.add(BoundValue<int64_t>::from(number, "a number"), event);
    else
      digest_.add(nanobind::make_tuple(number, event));
  }

  EffectsDigest digest_;
  nanobind::object measured_;
};

}  // namespace agora
