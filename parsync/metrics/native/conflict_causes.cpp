#include "conflict_causes.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "shared_state/native/cell.hpp"

namespace agora {

ConflictCauses::ConflictCauses(size_t machines, SharedColumn<int32_t> preference,
                               const PreferenceColumns& catalog, std::vector<int64_t> from_us,
                               std::vector<int64_t> to_us)
    : last_(machines),
      before_(machines),
      preference_(std::move(preference)),
      catalog_(catalog),
      from_us_(std::move(from_us)),
      to_us_(std::move(to_us)) {
  check_lengths(catalog);
  if (from_us_.size() != to_us_.size())
    throw std::invalid_argument("conflict causes: expected as many ends as beginnings");
}

size_t ConflictCauses::row_of(int32_t machine, int64_t task) const {
  if (machine < 0 || static_cast<size_t>(machine) >= last_.size())
    throw std::invalid_argument("machine " + std::to_string(machine) + ": not one of the cell");
  if (task < 0 || static_cast<size_t>(task) >= preference_.size())
    throw std::invalid_argument("task " + std::to_string(task) + ": not one of the workload");
  return static_cast<size_t>(machine);
}

void ConflictCauses::on_load(const Load& load) {
  const auto& [task, machine, request, owner, allocation] = load;
  if (machine.size() != task.size() || owner.size() != task.size())
    throw std::invalid_argument("conflict causes: expected a machine and an owner for each task");
  constexpr int64_t kLongAgoUs = -1;
  for (size_t i = 0; i < task.size(); ++i)
    last_[row_of(machine[i], task[i])] = {owner[i], task[i], kLongAgoUs};
}

void ConflictCauses::on_commit(const TransactionPtr& claims, const CommitResultPtr& answer,
                               int64_t now_us) {
  const Transaction& transaction = *claims;
  const CommitResult& result = *answer;
  const size_t n = transaction.size();
  if (transaction.machine.size() != n || result.reason.size() != n || result.rival.size() != n)
    throw std::invalid_argument("conflict causes: expected an answer to each claim");
  const auto scheduler = static_cast<int32_t>(transaction.scheduler);
  bool has_conflict = false;
  for (size_t i = 0; i < transaction.size(); ++i) {
    row_of(transaction.machine[i], transaction.task[i]);
    has_conflict = has_conflict || is_conflict(result.reason[i]);
  }
  if (has_conflict && counts(now_us)) count(transaction, result, now_us);
  for (size_t i = 0; i < transaction.size(); ++i) {
    if (result.reason[i] != static_cast<int8_t>(Reason::Accepted)) continue;
    const auto row = static_cast<size_t>(transaction.machine[i]);
    if (last_[row].scheduler != scheduler) before_[row] = last_[row];
    last_[row] = {scheduler, transaction.task[i], now_us};
  }
}

bool ConflictCauses::counts(int64_t now_us) const {
  const auto after = std::upper_bound(from_us_.begin(), from_us_.end(), now_us);
  return after != from_us_.begin() &&
         now_us < to_us_[static_cast<size_t>(after - from_us_.begin()) - 1];
}

void ConflictCauses::count(const Transaction& transaction, const CommitResult& result,
                           int64_t now_us) {
  for (size_t i = 0; i < transaction.size(); ++i) {
    if (!is_conflict(result.reason[i])) continue;
    const int32_t machine = transaction.machine[i], rival = result.rival[i];
    const auto row = static_cast<size_t>(machine);
    const bool is_held = result.reason[i] == static_cast<int8_t>(Reason::Held);
    const Claim* const claim = rival == kNobody || is_held       ? nullptr
                               : last_[row].scheduler == rival   ? &last_[row]
                               : before_[row].scheduler == rival ? &before_[row]
                                                                 : nullptr;
    if (claim && claim->at_us == now_us) {
      ++same_tick_;
    } else if (claim && prefers(transaction.task[i], machine) && prefers(claim->task, machine)) {
      ++quality_;
    } else {
      ++stale_;
    }
  }
}

bool ConflictCauses::prefers(int64_t task, int32_t machine) const {
  int64_t cost = 0;
  bool preferred = false;
  placement_cost(catalog_, {&preference_[static_cast<size_t>(task)], 1}, {&machine, 1}, &cost,
                 &preferred);
  return preferred;
}

}  // namespace agora
