// Queued tasks, head of line and quota account as Python holds them: with the arrays and objects
// that they borrow.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "queue_parts.hpp"
#include "shared_state/native/column.hpp"

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

// A column of queued tasks as Python holds it: native memory until Python looks at it, an array
// from then on.
template <class T>
class BoundColumn {
 public:
  explicit BoundColumn(std::vector<T> values) : values_(std::move(values)) {}
  explicit BoundColumn(nanobind::object array) : array_(std::move(array)) {}

  nanobind::object array() {
    if (!array_.is_valid()) {
      const NewArray<T> made(values_.size());
      std::ranges::copy(values_, made.data());
      array_ = made.object();
      data_ = made.data();
      length_ = values_.size();
      values_ = {};
    }
    return array_;
  }

  size_t size(const char* field) const {
    return array_.is_valid() ? length_of(array_, field) : values_.size();
  }

  // Throws ValueError for an array of another type or length.
  std::span<const T> span(const char* field, size_t length) {
    if (!array_.is_valid()) {
      if (values_.size() != length) throw nanobind::value_error("queued tasks: unequal columns");
      return values_;
    }
    if (data_ == nullptr || length_ != length) look_at(field, length);
    return {data_, length};
  }

 private:
  void look_at(const char* field, size_t length) {
    const Column<const T> column(array_, field, length);
    if (column.is_copy()) {
      const NewArray<T> copy(length);
      std::ranges::copy(column.span(), copy.data());
      array_ = copy.object();
      data_ = copy.data();
    } else {
      data_ = column.data();  // the array's own memory, which stays where it is
    }
    length_ = length;
  }

  std::vector<T> values_;  // while there is no array
  nanobind::object array_;
  const T* data_ = nullptr;  // the array's, once it was looked at
  size_t length_ = 0;
};

// The Python class of QueuedTasks.
struct BoundQueuedTasks {
  explicit BoundQueuedTasks(QueuedTasks tasks)
      : task(std::move(tasks.task)),
        attempts(std::move(tasks.attempts)),
        first(std::move(tasks.first)),
        rounds(tasks.rounds),
        some_placed(tasks.some_placed) {}
  BoundQueuedTasks(nanobind::object task, BoundColumn<int32_t> attempts, BoundColumn<int8_t> first,
                   int64_t rounds = 0, bool some_placed = false)
      : task(std::move(task)),
        attempts(std::move(attempts)),
        first(std::move(first)),
        rounds(rounds),
        some_placed(some_placed) {}

  size_t size() const { return task.size("task"); }
  // Throws ValueError if the columns are not those of tasks.
  QueuedTasksView view() {
    const size_t n = size();
    return {task.span("task", n), attempts.span("attempts", n), first.span("first", n), rounds,
            some_placed};
  }

  BoundColumn<int64_t> task;
  BoundColumn<int32_t> attempts;
  BoundColumn<int8_t> first;
  int64_t rounds;
  bool some_placed;
};

inline QueuedTasks copy_of(const QueuedTasksView& tasks) {
  QueuedTasks copy;
  copy.assign(tasks);
  return copy;
}

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
class BoundSkippedUnits {
 public:
  BoundSkippedUnits(const BoundUnitSizes& sizes, std::optional<int64_t> head_of_line_us,
                    nanobind::handle gang, BoundQuotaAccount* account)
      : gang_(gang, "gang"),
        skipped(sizes.sizes, head_of_line_us, gang_.span(), account ? &account->account : nullptr) {
  }

 private:
  OptionalColumn<int64_t> gang_;

 public:
  SkippedUnits skipped;
};

}  // namespace agora
