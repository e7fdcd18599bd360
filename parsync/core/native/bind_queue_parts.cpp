// Python's access to queued tasks, head of line and quota account.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <string>
#include <vector>

#include "bound_queue_parts.hpp"

namespace nb = nanobind;
using agora::array_of;
using agora::BoundColumn;
using agora::BoundQueuedTasks;
using agora::BoundQuotaAccount;
using agora::BoundSkippedUnits;
using agora::BoundUnitSizes;
using agora::Column;
using agora::copy_of;
using agora::length_of;
using agora::NewArray;
using agora::OptionalColumn;
using agora::QueuedTasks;
using agora::QueuedTasksView;
using agora::QuotaAccount;

namespace {

using Tasks = BoundQueuedTasks&;

// A task column as an argument of one call.
class Ids {
 public:
  explicit Ids(nb::handle task) : column_(task, "task", length_of(task, "task")) {}
  operator std::span<const int64_t>() const { return column_.span(); }  // NOLINT: an argument

 private:
  Column<const int64_t> column_;
};

BoundQueuedTasks new_tasks(nb::object task, int8_t first) {
  const size_t n = length_of(task, "task");
  return {std::move(task), BoundColumn<int32_t>(std::vector<int32_t>(n)),
          BoundColumn<int8_t>(std::vector<int8_t>(n, first))};
}

// Of `rows`, a mask, row numbers or a slice, the numbers.
std::vector<size_t> row_numbers(nb::handle rows, size_t n) {
  std::vector<size_t> chosen;
  if (PySlice_Check(rows.ptr())) {
    Py_ssize_t begin, end, step;
    if (PySlice_Unpack(rows.ptr(), &begin, &end, &step) != 0) throw nb::python_error();
    const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(n), &begin, &end, step);
    for (Py_ssize_t i = 0; i < count; ++i) chosen.push_back(static_cast<size_t>(begin + i * step));
    return chosen;
  }
  const size_t length = length_of(rows, "rows");
  if (const agora::ContiguousBuffer buffer(rows.ptr());
      buffer.valid() && buffer.dimensions() == 1 && *buffer.format() == '?') {
    const Column<const bool> mask(rows, "rows", n);
    for (size_t i = 0; i < n; ++i)
      if (mask.data()[i]) chosen.push_back(i);
    return chosen;
  }
  for (const int64_t row : Column<const int64_t>(rows, "rows", length).span()) {
    const int64_t from_start = row < 0 ? row + static_cast<int64_t>(n) : row;
    if (from_start < 0 || from_start >= static_cast<int64_t>(n))
      throw nb::index_error(
          ("row " + std::to_string(row) + ": expected one of " + std::to_string(n)).c_str());
    chosen.push_back(static_cast<size_t>(from_start));
  }
  return chosen;
}

BoundQueuedTasks take(Tasks tasks, nb::handle rows) {
  const QueuedTasksView view = tasks.view();
  QueuedTasks taken;
  for (const size_t row : row_numbers(rows, view.size())) taken.append_row(view, row);
  taken.rounds = view.rounds;
  taken.some_placed = view.some_placed;
  return BoundQueuedTasks(std::move(taken));
}

// The first `count` tasks and the rest.
nb::tuple split_at(nb::handle self, size_t count) {
  const QueuedTasksView view = nb::cast<Tasks>(self).view();
  if (count >= view.size()) return nb::make_tuple(self, BoundQueuedTasks(QueuedTasks{}));
  return nb::make_tuple(BoundQueuedTasks(copy_of(view.head(count))),
                        BoundQueuedTasks(copy_of(view.tail(count))));
}

nb::object join(const nb::list& parts) {
  QueuedTasks joined;
  nb::handle last;
  size_t with_tasks = 0;
  for (nb::handle part : parts) {
    const QueuedTasksView view = nb::cast<Tasks>(part).view();
    if (view.empty()) continue;
    joined.append(view);
    last = part;
    ++with_tasks;
  }
  if (with_tasks == 1) return nb::borrow(last);
  return nb::cast(BoundQueuedTasks(std::move(joined)));
}

bool equal(Tasks a, Tasks b) {
  const QueuedTasksView x = a.view(), y = b.view();
  return std::ranges::equal(x.task, y.task) && std::ranges::equal(x.attempts, y.attempts) &&
         std::ranges::equal(x.first, y.first) && x.rounds == y.rounds &&
         x.some_placed == y.some_placed;
}

nb::object repr(Tasks self) {
  return nb::str("QueuedTasks(task={!r}, attempts={!r}, first={!r}, rounds={}, some_placed={})")
      .attr("format")(self.task.array(), self.attempts.array(), self.first.array(), self.rounds,
                      self.some_placed);
}

void bind_queued_tasks(nb::module_& module) {
  nb::class_<BoundQueuedTasks> tasks(module, "QueuedTasks", R"(Tasks to decide on, in order.

Args:
    task: Ids, int64[n].
    attempts: Claims made for each so far, int32[n].
    first: 1 unless the task ran before, int8[n].
    rounds: Of tasks that are requeued together: rounds that left them without a place.
    some_placed: Of such tasks: whether any round placed tasks that were submitted with them.

Functions that take such tasks raise ValueError if a column has another type or length.)");
  tasks
      .def(
          "__init__",
          [](BoundQueuedTasks* self, nb::object task, nb::object attempts, nb::object first,
             int64_t rounds, bool some_placed) {
            new (self) BoundQueuedTasks(std::move(task), BoundColumn<int32_t>(std::move(attempts)),
                                        BoundColumn<int8_t>(std::move(first)), rounds, some_placed);
          },
          nb::arg("task"), nb::arg("attempts"), nb::arg("first"), nb::arg("rounds") = 0,
          nb::arg("some_placed") = false)
      .def_prop_rw(
          "task", [](Tasks self) { return self.task.array(); },
          [](Tasks self, nb::object array) { self.task = BoundColumn<int64_t>(std::move(array)); })
      .def_prop_rw(
          "attempts", [](Tasks self) { return self.attempts.array(); },
          [](Tasks self, nb::object array) {
            self.attempts = BoundColumn<int32_t>(std::move(array));
          })
      .def_prop_rw(
          "first", [](Tasks self) { return self.first.array(); },
          [](Tasks self, nb::object array) { self.first = BoundColumn<int8_t>(std::move(array)); })
      .def_rw("rounds", &BoundQueuedTasks::rounds)
      .def_rw("some_placed", &BoundQueuedTasks::some_placed)
      .def("__len__", &BoundQueuedTasks::size)
      .def("__eq__", &equal, nb::is_operator())
      .def("__repr__", &repr)
      .def("take", &take, nb::arg("rows"),
           "Copy the tasks that a mask bool[n], row numbers int64[k] or a slice selects.")
      .def("split", &split_at, nb::arg("count"), "The first `count` tasks and the rest.")
      .def_static("new", &new_tasks, nb::arg("task"), nb::arg("first"),
                  R"(Queued tasks that no claim was made for.

Args:
    task: Ids, int64[n].
    first: 1 if their next commit is their first, 0 if they ran before.)")
      .def_static("join", &join, nb::arg("parts"), "All tasks of the parts, in order.");
  tasks.attr("__match_args__") =
      nb::make_tuple("task", "attempts", "first", "rounds", "some_placed");
  tasks.attr("__hash__") = nb::none();
  module.def(
      "split_batch",
      [](nb::handle work, std::optional<int64_t> limit, nb::handle gang) {
        const OptionalColumn<int64_t> gangs(gang, "gang");
        const QueuedTasksView tasks = nb::cast<Tasks>(work).view();
        return split_at(work, agora::batch_within(tasks.task, limit, gangs.span()));
      },
      nb::arg("work"), nb::arg("limit").none(), nb::arg("gang").none(),
      R"(The first `limit` tasks and the rest: fewer where that would part a gang, and more if the
first gang is larger.

Args:
    work: The tasks.
    limit: None: all.
    gang: int64[tasks], of each task id; None if no task has one.)");
}

void bind_head_of_line(nb::module_& module) {
  nb::class_<BoundUnitSizes>(module, "UnitSizes")
      .def(nb::init<nb::handle, size_t, nb::handle, nb::handle, nb::handle>(), nb::arg("request"),
           nb::arg("resources"), nb::arg("gang"), nb::arg("preference"), nb::arg("elsewhere_cost"))
      .def_prop_ro(
          "are_alike", [](const BoundUnitSizes& self) { return self.sizes.are_alike(); },
          "Whether every unit is a task without a constraint that asks for the same: where one "
          "finds no room, no other does.");
  using Skipped = BoundSkippedUnits;
  nb::class_<Skipped>(module, "SkippedUnits",
                      R"(The units of one agent for which there was no room, in the order in which
they lacked it; see queue_parts.hpp.

They are tried again when the view has changed: each in turn, and then one batch of those behind
them, before the next turn begins. So neither starves the other where the view changes faster than
the agent decides. A unit that is at least as large as one that found no room in the same view is
left out.

Args:
    sizes: Of all units.
    head_of_line_us: How long the first lets those behind it go ahead; None: for ever.
    gang: The gang of each task id, int64[tasks]; None if no task has one.
    account: Of the agent's quota, within which tasks may be decided on; None: all may.)")
      .def(
          nb::init<const BoundUnitSizes&, std::optional<int64_t>, nb::handle, BoundQuotaAccount*>(),
          nb::arg("sizes"), nb::arg("head_of_line_us").none(), nb::arg("gang").none(),
          nb::arg("account").none() = nb::none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>())
      .def(
          "__len__", [](const Skipped& self) { return self.skipped.size(); },
          "How many entries wait.")
      .def(
          "holds", [](const Skipped& self, int64_t now_us) { return self.skipped.holds(now_us); },
          nb::arg("now_us"), "Whether the first holds the queue: those behind it are not tried.")
      .def(
          "holder",
          [](const Skipped& self, int64_t now_us) { return array_of(self.skipped.holder(now_us)); },
          nb::arg("now_us"), "The tasks that hold the queue, int64[n]; none if it is not held.")
      .def(
          "all_tasks",
          [](const Skipped& self) {
            QueuedTasks tasks;
            self.skipped.all_tasks(tasks);
            return array_of(std::span<const int64_t>(tasks.task));
          },
          "The tasks that lack room, int64[n].")
      .def(
          "on_view_changed", [](Skipped& self) { self.skipped.on_view_changed(); },
          "What found no room before may find some now.")
      .def(
          "due",
          [](Skipped& self, int64_t now_us, bool others) {
            return self.skipped.due(now_us, others);
          },
          nb::arg("now_us"), nb::arg("others"),
          R"(The place of those to try next in the view as it stands; None if there are none, or if
it is the turn of those behind.

Args:
    others: Whether there are any behind.)")
      .def(
          "take",
          [](Skipped& self, size_t place, std::optional<int64_t> limit) {
            QueuedTasks offered;
            self.skipped.take(place, limit, offered);
            return BoundQueuedTasks(std::move(offered));
          },
          nb::arg("place"), nb::arg("limit").none(),
          "Take at most `limit` of the tasks at a place for a round; the rest stays there.")
      .def(
          "pass_on", [](Skipped& self) { self.skipped.pass_on(); },
          "A batch of those behind is tried.")
      .def(
          "on_no_room",
          [](Skipped& self, int64_t now_us, Tasks left) {
            self.skipped.on_no_room(now_us, left.view());
          },
          nb::arg("now_us"), nb::arg("left"),
          "The round that was taken last left these tasks without room.");
}

using Amounts = nb::ndarray<nb::numpy, int64_t, nb::ndim<2>>;

// The account's own memory, int64[G, R].
template <auto member>
Amounts amounts(nb::handle self) {
  QuotaAccount& account = nb::cast<BoundQuotaAccount&>(self).account;
  return Amounts((account.*member).data(), {account.groups(), account.resources()}, self);
}

void set_granted(BoundQuotaAccount& self, nb::handle amount) {
  QuotaAccount& account = self.account;
  const Column<const int64_t> granted(amount, "granted", account.groups(), account.resources());
  std::ranges::copy_n(granted.data(), static_cast<ptrdiff_t>(account.granted.size()),
                      account.granted.begin());
}

template <void (QuotaAccount::*move)(std::span<const int64_t>)>
void move_tasks(BoundQuotaAccount& self, nb::handle task) {
  (self.account.*move)(Ids(task));
}

void bind_quota_account(nb::module_& module) {
  using Account = BoundQuotaAccount;
  nb::class_<Account>(module, "QuotaAccount")
      .def(nb::init<nb::handle, size_t, nb::handle, size_t, nb::handle>(), nb::arg("of_task"),
           nb::arg("groups"), nb::arg("request"), nb::arg("resources"), nb::arg("gang"))
      .def_prop_ro("held", &amounts<&QuotaAccount::held>)
      .def_prop_ro("waiting", &amounts<&QuotaAccount::waiting>)
      .def_prop_rw("granted", &amounts<&QuotaAccount::granted>, &set_granted)
      .def("submit", &move_tasks<&QuotaAccount::submit>, nb::arg("task"),
           "Tasks were submitted, int64[n], or have to run again.")
      .def("offer", &move_tasks<&QuotaAccount::offer>, nb::arg("task"),
           "Waiting tasks are decided on.")
      .def("withdraw", &move_tasks<&QuotaAccount::withdraw>, nb::arg("task"),
           "Tasks that were decided on wait again: they found no place, or lost it to a rival.")
      .def("drop", &move_tasks<&QuotaAccount::drop>, nb::arg("task"), "Waiting tasks are given up.")
      .def("adopt", &move_tasks<&QuotaAccount::adopt>, nb::arg("task"), "Tasks run already.")
      .def("end", &move_tasks<&QuotaAccount::end>, nb::arg("task"), "Tasks run no more.")
      .def(
          "look", [](Account& self) { self.account.look(); },
          "What tasks that ended held may be used from now on.")
      .def(
          "within",
          [](Account& self, nb::handle task) {
            const auto fits = self.account.within(Ids(task));
            const NewArray<bool> array(fits.size());
            std::ranges::copy(fits, array.data());
            return array.object();
          },
          nb::arg("task"),
          R"(Which of these waiting tasks may be decided on now: of each group the first ones, as
many as its grant has room for, bool[n]. A task that does not fit stops those of its group that come
after it, so that small tasks do not keep a large one waiting for ever; and no gang is parted.)")
      .def(
          "has_room",
          [](const Account& self, nb::handle task, nb::handle before) {
            return self.account.has_room(Ids(task), Ids(before));
          },
          nb::arg("task"), nb::arg("before"),
          R"(Whether the first of these tasks, which are of one group, or its whole gang, may be
decided on now, together with other tasks that come before it.

Args:
    task: int64[n], n > 0.
    before: int64[k], the other tasks.)");
}

}  // namespace

void bind_queue_parts(nb::module_& module) {
  bind_queued_tasks(module);
  bind_head_of_line(module);
  bind_quota_account(module);
}
