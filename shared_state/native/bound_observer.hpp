// Observers of the cell as Python holds them: native ones, and those whose class is Python's
// (shared_state/observed_cell.py).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "bound_fields.hpp"
#include "observed_cell.hpp"

namespace agora {

// Hands every call on, but for those that the observer's class does not override.
class PythonObserver final : public CellObserver {
 public:
  // cell: what the observer is given as the cell.
  PythonObserver(nanobind::object observer, nanobind::object cell)
      : cell_(std::move(cell)),
        before_change_(overridden(observer, "before_change")),
        before_commit_(overridden(observer, "before_commit")),
        on_commit_(overridden(observer, "on_commit")),
        on_release_(overridden(observer, "on_release")),
        on_load_(overridden(observer, "on_load")),
        on_machines_(overridden(observer, "on_machines")),
        on_delta_(overridden(observer, "on_delta")) {}

  void before_change(int64_t now_us) override {
    if (before_change_.is_valid()) before_change_(cell_, now_us);
  }
  void before_commit(const TransactionPtr& transaction, int64_t now_us) override {
    if (before_commit_.is_valid()) before_commit_(cell_, face(transaction), now_us);
  }
  void on_commit(const TransactionPtr& transaction, const CommitResultPtr& result,
                 int64_t now_us) override {
    if (on_commit_.is_valid()) on_commit_(cell_, face(transaction), face(result), now_us);
  }
  void on_release(const Released& released, int64_t now_us) override {
    if (on_release_.is_valid()) on_release_(cell_, released, now_us);
  }
  void on_load(const Load& load) override {
    if (on_load_.is_valid())
      on_load_(cell_, array_of(load.task), array_of(load.machine), array_of(load.request),
               array_of(load.owner), array_of(load.allocation));
  }
  void on_machines(const SharedColumn<int32_t>& machine, const SharedColumn<bool>& up,
                   const Released& lost, int64_t now_us) override {
    if (on_machines_.is_valid()) on_machines_(cell_, array_of(machine), array_of(up), lost, now_us);
  }
  void on_delta(const PartitionDeltaPtr& delta, int64_t now_us) override {
    if (on_delta_.is_valid()) on_delta_(cell_, face(delta), now_us);
  }

 private:
  template <class T>
  static nanobind::object face(const std::shared_ptr<const T>& part) {
    return BoundValue<std::shared_ptr<const T>>::to(part);
  }

  // The bound method; nothing if it is that of the base class, which does nothing.
  static nanobind::object overridden(nanobind::handle observer, const char* name) {
    const nanobind::object base =
        nanobind::module_::import_("shared_state.observed_cell").attr("CellObserver");
    const nanobind::object mine = nanobind::handle(observer.type()).attr(name);
    if (mine.is(nanobind::object(base.attr(name)))) return {};
    return observer.attr(name);
  }

  nanobind::object cell_, before_change_, before_commit_, on_commit_, on_release_, on_load_,
      on_machines_, on_delta_;
};

// The observer that Python holds. cell: what it is given as the cell if its class is Python's.
inline std::shared_ptr<CellObserver> observer_from(nanobind::handle observer,
                                                   nanobind::handle cell) {
  if (nanobind::isinstance<CellObserver>(observer))
    return nanobind::cast<std::shared_ptr<CellObserver>>(observer);
  return std::make_shared<PythonObserver>(nanobind::borrow(observer), nanobind::borrow(cell));
}

}  // namespace agora
