// Queued tasks, head of line and quota account as Python holds them: with the arrays and objects
// that they borrow.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <optional>
#include <span>

#include "head_of_line.hpp"
#include "queued_tasks.hpp"
#include "quota_account.hpp"
#include "shared_state/native/column.hpp"
#include "shared_state/native/new_array.hpp"

namespace agora {

// A column of one value per task id, or none.
template <class T>
class OptionalColumn {
 public:
  OptionalColumn(nanobind::handle array, const char* field) {
    if (!array.is_none()) column_.emplace(array, field, length_of(array, field));
  }
  std::span<const T> span() const { return column_ ? column_->span() : std::span<const T>{}; }

 private:
  std::optional<Column<const T>> column_;
};

template <class T>
nanobind::object array_of(std::span<const T> values) {
  const NewArray<T> array(values.size());
  std::ranges::copy(values, array.data());
  return array.object();
}

// The face of QueuedTasks. Its columns are numpy arrays, so that Python gets the very arrays that
// it made one of, and may keep them for as long as it likes.
struct BoundQueuedTasks {
  nanobind::object task, attempts, first;
  int64_t rounds = 0;
  bool some_placed = false;

  static BoundQueuedTasks of(const QueuedTasksView& tasks) {
    return {array_of(tasks.task), array_of(tasks.attempts), array_of(tasks.first), tasks.rounds,
            tasks.some_placed};
  }
};

// The memory of such a face.
class QueuedTasksColumns {
 public:
  explicit QueuedTasksColumns(const BoundQueuedTasks& tasks)
      : QueuedTasksColumns(tasks, length_of(tasks.task, "task")) {}

  QueuedTasksView view() const {
    return {task_.span(), attempts_.span(), first_.span(), rounds_, some_placed_};
  }

 private:
  QueuedTasksColumns(const BoundQueuedTasks& tasks, size_t size)
      : task_(tasks.task, "task", size),
        attempts_(tasks.attempts, "attempts", size),
        first_(tasks.first, "first", size),
        rounds_(tasks.rounds),
        some_placed_(tasks.some_placed) {}

  Column<const int64_t> task_;
  Column<const int32_t> attempts_;
  Column<const int8_t> first_;
  int64_t rounds_;
  bool some_placed_;
};

class BoundUnitSizes {
 public:
  BoundUnitSizes(nanobind::handle request, size_t resources, nanobind::handle gang,
                 nanobind::handle preference, nanobind::handle elsewhere_cost)
      : gang_(gang, "gang", length_of(gang, "gang")),
        request_(request, "request", gang_.size(), resources),
        preference_(preference, "preference", gang_.size()),
        sizes({request_.data(), gang_.size() * resources}, resources, gang_.span(),
              preference_.span(),
              Column<const int64_t>(elsewhere_cost, "elsewhere_cost",
                                    length_of(elsewhere_cost, "elsewhere_cost"))
                  .span()) {}

 private:
  Column<const int64_t> gang_, request_;
  Column<const int32_t> preference_;

 public:
  const UnitSizes sizes;
};

class BoundQuotaAccount {
 public:
  BoundQuotaAccount(nanobind::handle of_task, size_t groups, nanobind::handle request,
                    size_t resources, nanobind::handle gang)
      : of_task_(of_task, "of_task", length_of(of_task, "of_task")),
        request_(request, "request", of_task_.size(), resources),
        gang_(gang, "gang", of_task_.size()),
        account(of_task_.span(), groups, {request_.data(), of_task_.size() * resources}, resources,
                gang_.span()) {}

 private:
  Column<const int32_t> of_task_;
  Column<const int64_t> request_, gang_;

 public:
  QuotaAccount account;
};

// The sizes and the account are kept alive by nanobind.
class BoundPassedOver {
 public:
  BoundPassedOver(const BoundUnitSizes& sizes, std::optional<int64_t> head_of_line_us,
                  nanobind::handle gang, BoundQuotaAccount* account)
      : gang_(gang, "gang"),
        passed(sizes.sizes, head_of_line_us, gang_.span(), account ? &account->account : nullptr) {}

 private:
  OptionalColumn<int64_t> gang_;

 public:
  PassedOver passed;
};

}  // namespace agora
