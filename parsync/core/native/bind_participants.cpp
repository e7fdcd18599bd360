// Python's access to the participants of the cell's side. Their Python classes (master.py,
// workers.py, arrivals.py) say what they are, and choose the columns that they are made of.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "arrivals.hpp"
#include "bound_participant.hpp"
#include "master.hpp"
#include "schedulers/native/bound_types.hpp"
#include "shared_state/native/observed_cell.hpp"
#include "worker_pool.hpp"

namespace nb = nanobind;
using namespace agora;

namespace {

template <class T>
SharedColumn<T> column(nb::handle array, const char* field) {
  return BoundValue<SharedColumn<T>>::from(array, field);
}
SharedTable<int64_t> table(nb::handle array, const char* field) {
  return BoundValue<SharedTable<int64_t>>::from(array, field);
}

// Observers of the cell as Python holds them: native ones, and those whose class is Python's
// (shared_state/observed_cell.py).

// Hands every call on, but for those that the observer's class does not override.
class PythonObserver final : public CellObserver {
 public:
  // cell: what the observer is given as the cell.
  PythonObserver(nb::object observer, nb::object cell)
      : cell_(std::move(cell)),
        before_change_(overridden(observer, "before_change")),
        before_commit_(overridden(observer, "before_commit")),
        on_commit_(overridden(observer, "on_commit")),
        on_release_(overridden(observer, "on_release")),
        on_load_(overridden(observer, "on_load")),
        on_hold_(overridden(observer, "on_hold")),
        on_holds_ended_(overridden(observer, "on_holds_ended")),
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
  void on_hold(const Holds& holds, int64_t now_us) override {
    if (on_hold_.is_valid()) on_hold_(cell_, holds, now_us);
  }
  void on_holds_ended(const Holds& ended, int64_t now_us) override {
    if (on_holds_ended_.is_valid()) on_holds_ended_(cell_, ended, now_us);
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
  static nb::object face(const std::shared_ptr<const T>& part) {
    return BoundValue<std::shared_ptr<const T>>::to(part);
  }

  // The bound method; nothing if it is that of the base class, which does nothing.
  static nb::object overridden(nb::handle observer, const char* name) {
    const nb::object base = nb::module_::import_("shared_state.observed_cell").attr("CellObserver");
    const nb::object mine = nb::handle(observer.type()).attr(name);
    if (mine.is(nb::object(base.attr(name)))) return {};
    return observer.attr(name);
  }

  nb::object cell_, before_change_, before_commit_, on_commit_, on_release_, on_load_, on_hold_,
      on_holds_ended_, on_machines_, on_delta_;
};

// The observer that Python holds. cell: what it is given as the cell if its class is Python's.
std::shared_ptr<CellObserver> observer_from(nb::handle observer, nb::handle cell) {
  if (nb::isinstance<CellObserver>(observer))
    return nb::cast<std::shared_ptr<CellObserver>>(observer);
  return std::make_shared<PythonObserver>(nb::borrow(observer), nb::borrow(cell));
}

Measurements& measurements_of(nb::handle records) { return nb::cast<Measurements&>(records); }

class BoundMaster final : public BoundParticipant {
 public:
  BoundMaster(nb::handle native_cell, nb::handle request, nb::handle priority,
              nb::handle initial_task, nb::handle initial_machine, nb::handle initial_owner,
              const std::vector<int>& ends_notice, int64_t sample_us,
              const std::vector<int64_t>& watchers, int64_t capacity, nb::handle quota_of_task,
              int64_t quotas, nb::handle partition_offsets, nb::object records)
      : BoundParticipant(records),
        cell_(nb::borrow(native_cell)),
        master_(ObservedCell(nb::cast<Cell&>(native_cell)),
                {table(request, "request"),
                 column<int32_t>(priority, "priority"),
                 {column<int64_t>(initial_task, "initial_task"),
                  column<int32_t>(initial_machine, "initial_machine"),
                  column<int32_t>(initial_owner, "initial_owner")},
                 notices(ends_notice),
                 sample_us,
                 watchers,
                 capacity,
                 BoundValue<std::optional<SharedColumn<int32_t>>>::from(quota_of_task, "quotas"),
                 quotas,
                 column<int64_t>(partition_offsets, "partition_offsets")},
                measurements_of(records)) {}

  Participant& core() override { return master_; }
  Master& master() { return master_; }

  void observe(nb::object native_cell, nb::handle cell, nb::handle observers) {
    ObservedCell observed(nb::cast<Cell&>(native_cell));
    for (const nb::handle observer : nb::iter(observers))
      observed.add(observer_from(observer, cell));
    cell_ = std::move(native_cell);
    master_.set_cell(std::move(observed));
  }

  nb::tuple waiting_ends() const {
    nb::list waiting;
    for (const auto& [agent, events] : master_.waiting_ends())
      for (const auto& event : events) waiting.append(nb::make_tuple(agent, face_of(event)));
    return nb::tuple(waiting);
  }

  void add_waiting_ends(int64_t agent, nb::handle event) {
    const EventPtr ended = event_from(event);
    if (ended->key() != TasksEnded::kType.key()) throw nb::type_error("expected TasksEnded");
    master_.add_waiting_ends(agent, std::static_pointer_cast<const TasksEnded>(ended));
  }

 private:
  static std::vector<EndsNotice> notices(const std::vector<int>& numbers) {
    std::vector<EndsNotice> made;
    for (const int number : numbers) {
      if (number < 0 || number > static_cast<int>(EndsNotice::BeforeSync))
        throw nb::value_error("ends_notice: expected EndsNotice");
      made.push_back(static_cast<EndsNotice>(number));
    }
    return made;
  }

  nb::object cell_;  // keeps it alive
  Master master_;
};

// Queues at the machines that are native, which Python holds.
class NativeNodeSide final : public Participant {
 public:
  NativeNodeSide(nb::object side, BoundParticipant& native)
      : side_(std::move(side)), native_(native) {}

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override {
    native_.core().handle(now_us, event, effects);
  }

 private:
  const nb::object side_;
  BoundParticipant& native_;
};

class BoundWorkerPool final : public BoundParticipant {
 public:
  BoundWorkerPool(int64_t heartbeat_us, nb::handle duration_us, nb::handle preference,
                  nb::object catalog, int64_t preferred_permille,
                  const std::vector<std::pair<std::string, nb::object>>& node_sides,
                  std::vector<std::string> protocol_of)
      : BoundParticipant(nb::none()),
        duration_us_(column<int64_t>(duration_us, "duration_us")),
        preference_(column<int32_t>(preference, "preference")),
        catalog_(std::move(catalog)),
        pool_(heartbeat_us, duration_us_.span(), preference_.span(),
              nb::cast<const CatalogColumns&>(catalog_).spans(), preferred_permille,
              queues_of(node_sides), std::move(protocol_of)) {}

  Participant& core() override { return pool_; }
  WorkerPool& pool() { return pool_; }

 private:
  static std::vector<WorkerPool::NodeSide> queues_of(
      const std::vector<std::pair<std::string, nb::object>>& node_sides) {
    std::vector<WorkerPool::NodeSide> made;
    for (const auto& [protocol, side] : node_sides) {
      BoundParticipant* const native = native_of(side);
      if (native)
        made.push_back({protocol, std::make_unique<NativeNodeSide>(side, *native)});
      else
        made.push_back({protocol, std::make_unique<PythonParticipant>(side)});
    }
    return made;
  }

  SharedColumn<int64_t> duration_us_;
  SharedColumn<int32_t> preference_;
  nb::object catalog_;
  WorkerPool pool_;
};

class BoundArrivals final : public BoundParticipant {
 public:
  BoundArrivals(nb::handle at_us, nb::handle offsets, nb::handle rows, nb::handle agent,
                nb::handle job, nb::handle prefers, nb::handle machine_at_us, nb::handle machine,
                nb::handle up, nb::object records)
      : BoundParticipant(records),
        source_({column<int64_t>(at_us, "arrival_us"), column<int64_t>(offsets, "arrival_offsets"),
                 column<int64_t>(rows, "arrival_rows"), column<int32_t>(agent, "agent_of_batch"),
                 column<int64_t>(job, "job"), column<int64_t>(prefers, "prefers")},
                {column<int64_t>(machine_at_us, "machine_at_us"),
                 column<int32_t>(machine, "machine"), column<bool>(up, "machine_up")},
                measurements_of(records)) {}

  Participant& core() override { return source_; }
  const ArrivalSource& source() const { return source_; }

 private:
  ArrivalSource source_;
};

nb::tuple due_ends(BoundWorkerPool& self) {
  const std::vector<TimerWheel::Entry> due = self.pool().due_ends();
  const NewArray<int64_t> end_us(due.size()), allocation(due.size());
  const NewArray<int32_t> owner(due.size());
  for (size_t i = 0; i < due.size(); ++i) {
    end_us.data()[i] = due[i].end_us;
    allocation.data()[i] = due[i].id;
    owner.data()[i] = due[i].owner;
  }
  return nb::make_tuple(end_us.object(), allocation.object(), owner.object());
}

void execute(BoundWorkerPool& self, nb::handle event) {
  const EventPtr native = event_from(event);
  if (native->key() == TasksCancelled::kType.key())
    return self.pool().cancel(as<TasksCancelled>(native));
  if (native->key() == TasksStarted::kType.key())
    return self.pool().start(as<TasksStarted>(native));
  throw nb::type_error("execute: expected TasksStarted or TasksCancelled");
}

}  // namespace

void bind_participants(nb::module_& module) {
  nb::class_<BoundParticipant>(module, "NativeParticipant",
                               "Base class of participants that are native; see participant.hpp.")
      .def(
          "handle",
          [](BoundParticipant& self, int64_t now_us, nb::handle event) {
            Effects effects;
            self.handle(now_us, event_from(event), effects);
            return self.listed(effects);
          },
          nb::arg("now_us"), nb::arg("event"), "As Participant.handle.");
  nb::class_<BoundMaster, BoundParticipant>(module, "Master", "See master.hpp.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle,
                    const std::vector<int>&, int64_t, const std::vector<int64_t>&, int64_t,
                    nb::handle, int64_t, nb::handle, nb::object>(),
           nb::arg("cell"), nb::arg("request"), nb::arg("priority"), nb::arg("initial_task"),
           nb::arg("initial_machine"), nb::arg("initial_owner"), nb::arg("ends_notice"),
           nb::arg("sample_us"), nb::arg("watchers"), nb::arg("capacity"),
           nb::arg("quota_of_task").none(), nb::arg("quotas"), nb::arg("partition_offsets"),
           nb::arg("records"))
      .def("observe", &BoundMaster::observe, nb::arg("native_cell"), nb::arg("cell"),
           nb::arg("observers"))
      .def("restore_counts", [](BoundMaster& self, int64_t epoch,
                                int64_t running) { self.master().restore(epoch, running); })
      .def("waiting_ends", &BoundMaster::waiting_ends)
      .def("add_waiting_ends", &BoundMaster::add_waiting_ends, nb::arg("agent"), nb::arg("ended"))
      .def(
          "forget_ends", [](BoundMaster& self, int64_t agent) { self.master().forget_ends(agent); },
          nb::arg("agent"))
      .def(
          "record_due_ends",
          [](BoundMaster& self, nb::handle allocation, nb::handle end_us) {
            self.master().record_due_ends(column<int64_t>(allocation, "allocation"),
                                          column<int64_t>(end_us, "end_us"));
          },
          nb::arg("allocation"), nb::arg("end_us"))
      .def_prop_ro("running", [](BoundMaster& self) { return self.master().running(); })
      .def_prop_ro("epoch", [](BoundMaster& self) { return self.master().epoch(); });
  nb::class_<BoundWorkerPool, BoundParticipant>(module, "WorkerPool", "See worker_pool.hpp.")
      .def(nb::init<int64_t, nb::handle, nb::handle, nb::object, int64_t,
                    const std::vector<std::pair<std::string, nb::object>>&,
                    std::vector<std::string>>(),
           nb::arg("heartbeat_us"), nb::arg("duration_us"), nb::arg("preference"),
           nb::arg("catalog"), nb::arg("preferred_permille"), nb::arg("node_sides"),
           nb::arg("protocol_of"))
      .def("execute", &execute, nb::arg("event"))
      .def("due_ends", &due_ends)
      .def_prop_ro("pending_ends",
                   [](BoundWorkerPool& self) { return self.pool().pending_ends(); });
  nb::class_<BoundArrivals, BoundParticipant>(module, "ArrivalSource", "See arrivals.hpp.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle,
                    nb::handle, nb::handle, nb::handle, nb::object>(),
           nb::arg("at_us"), nb::arg("offsets"), nb::arg("rows"), nb::arg("agent"), nb::arg("job"),
           nb::arg("prefers"), nb::arg("machine_at_us"), nb::arg("machine"), nb::arg("up"),
           nb::arg("records"))
      .def_prop_ro("exhausted", [](BoundArrivals& self) { return self.source().exhausted(); })
      .def_prop_ro("submitted", [](BoundArrivals& self) { return self.source().submitted(); });
}
