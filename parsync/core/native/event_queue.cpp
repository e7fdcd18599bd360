#include "event_queue.hpp"

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

// A class states its priority: looked up there, it is found without a search of the instance.
int64_t priority_of(nb::handle event) {
  static PyObject* const name = PyUnicode_InternFromString("priority");
  const nb::object priority = nb::steal(PyObject_GetAttr(event.ptr(), name));
  if (!priority.is_valid()) throw nb::python_error();
  const long long value = PyLong_AsLongLong(priority.ptr());
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

}  // namespace

void EventQueue::push(int64_t at_us, int64_t address, nb::object event) {
  const int64_t priority = priority_of(event);
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
                           nb::handle carry_out, nb::handle hash_log) {
  std::unordered_map<int64_t, nb::object> handler;
  for (const auto& [address, handle] : handlers)
    handler.emplace(nb::cast<int64_t>(address), nb::borrow(handle));
  while (!heap_.empty() && heap_.front().at_us <= until_us) {
    Entry entry = pop();
    now_us_ = entry.at_us;
    address_ = entry.address;
    event_ = std::move(entry.event);
    ++handled_;
    const nb::object address = number(address_), now_us = number(now_us_);
    const nb::object event = event_;
    if (log.append(address, now_us, event) >= kHashedBytes) call(hash_log);
    const nb::object effects = call(handler.at(address_), now_us, event);
    if (PyList_CheckExact(effects.ptr()) && PyList_GET_SIZE(effects.ptr()) == 0) continue;
    call(carry_out, now_us, address, effects);
  }
  now_us_ = until_us;
}

nb::list EventQueue::waiting() const {
  std::vector<const Entry*> entries;
  for (const Entry& entry : heap_) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const Entry* a, const Entry* b) { return IsLater{}(*b, *a); });
  nb::list waiting;
  for (const Entry* entry : entries)
    waiting.append(nb::make_tuple(entry->at_us, entry->address, entry->event));
  return waiting;
}

}  // namespace agora
