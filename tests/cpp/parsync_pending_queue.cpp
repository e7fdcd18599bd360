// The queues of agents under random orders, for the sanitizers to watch: no task is offered twice,
// and what is offered is within the grants. Orders that no state allows end in an exception. (What
// queues do exactly: tests/properties/test_pending_queues.py.)
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "parsync/protocols/native/pending_queue.hpp"

using agora::AgentQueue;
using agora::PendingQueue;
using agora::PendingReason;
using agora::PlannedTasks;
using agora::QueuedTasks;
using agora::QuotaAccount;
using agora::RoundTasks;
using agora::SchedulerQueue;
using agora::SkippedUnits;
using agora::UnitSizes;

namespace {

constexpr int64_t kTasks = 90;
constexpr size_t kGroups = 3;

QueuedTasks new_tasks(const std::vector<int64_t>& task) {
  QueuedTasks tasks;
  tasks.task = task;
  tasks.attempts.assign(task.size(), 0);
  tasks.first.assign(task.size(), 1);
  return tasks;
}

// The columns of all tasks.
struct Table {
  explicit Table(Draws& draw) {
    for (int64_t task = 0; task < kTasks;) {
      const int64_t members = std::min<int64_t>(draw(4) ? 1 : 1 + draw(4), kTasks - task);
      const auto one_group = static_cast<int32_t>(draw(kGroups));
      for (int64_t i = 0; i < members; ++i, ++task) {
        gang.push_back(members > 1 ? task - i : agora::kNoGang);
        group.push_back(one_group);
        request.push_back(1 + static_cast<int64_t>(draw(3)));
        request.push_back(static_cast<int64_t>(draw(3)));
        priority.push_back(static_cast<int32_t>(draw(2)));
        preference.push_back(static_cast<int32_t>(draw(2)));
        job.push_back(task / 4);
      }
    }
  }

  std::vector<int64_t> request, gang, job, elsewhere{0, int64_t{1} << 38};
  std::vector<int32_t> group, priority, preference;
};

class Run {
 public:
  explicit Run(uint64_t seed)
      : draw_(seed),
        table_(draw_),
        sizes_(table_.request, 2, table_.gang, table_.preference, table_.elsewhere) {
    AgentQueue::Options options;
    keeps_ = draw_(5) == 0;
    options.requeues = draw_(2) == 0;
    options.attempts_max = 1 + static_cast<int64_t>(draw_(4));
    options.attempts_max_unplaced = 1 + static_cast<int64_t>(draw_(4));
    options.gang = table_.gang;
    options.whole_queue = draw_(3) == 0;
    if (!keeps_ && draw_(2)) {
      account_ =
          std::make_unique<QuotaAccount>(table_.group, kGroups, table_.request, 2, table_.gang);
      options.account = account_.get();
      options.is_own_limit = draw_(3) == 0;
      options.priority = table_.priority;
      grant(20);
    }
    if (!options.requeues && !options.whole_queue && draw_(2)) {
      std::optional<int64_t> head_of_line_us;
      if (draw_(2)) head_of_line_us = 1 + static_cast<int64_t>(draw_(9));
      skipped_ =
          std::make_unique<SkippedUnits>(sizes_, head_of_line_us, table_.gang, account_.get());
      options.skipped = skipped_.get();
    }
    gives_up_ = !keeps_ && !options.requeues && !skipped_ && !account_ && draw_(2);
    if (keeps_) {
      queue_ = std::make_unique<SchedulerQueue>(options.whole_queue, table_.gang);
    } else {
      auto queue = std::make_unique<AgentQueue>(options);
      if (gives_up_)
        queue->give_up_jobs(table_.job, options.attempts_max, options.attempts_max_unplaced);
      queue_ = std::move(queue);
    }
    if (draw_(3) == 0) queue_->limit_jobs(table_.job, 1 + static_cast<int64_t>(draw_(4)));
  }

  void play() {
    for (int step = 0; step < 120; ++step) {
      now_us_ += static_cast<int64_t>(draw_(3));
      switch (draw_(8)) {
        case 0:
          submit();
          break;
        case 1:
          if (account_) grant(40);
          break;
        case 2:
          end_one();
          break;
        case 3:
          rejoin();
          break;
        case 4:
          commit();
          break;
        default:
          round();
      }
      // looked at for what reading it may touch
      queue_->waiting(now_us_, [&](std::span<const int64_t> task, agora::Waiting, int64_t) {
        for (const int64_t one : task) CHECK(one >= 0 && one < next_);
      });
    }
  }

 private:
  struct Open {
    RoundTasks tasks;
    std::vector<int64_t> claimed, pending;
    std::vector<int8_t> reason;
    PlannedTasks plan() const { return {claimed, pending, reason}; }
  };

  void grant(uint64_t most) {
    for (int64_t& amount : account_->granted) amount = static_cast<int64_t>(draw_(most));
    account_->look();
  }

  void submit() {
    std::vector<int64_t> tasks;
    const int64_t wanted = 1 + static_cast<int64_t>(draw_(8));
    const auto goes_on = [&] {
      const auto at = static_cast<size_t>(next_);
      return table_.gang[at] != agora::kNoGang && table_.gang[at] == table_.gang[at - 1];
    };
    while (next_ < kTasks && (static_cast<int64_t>(tasks.size()) < wanted || goes_on()))
      tasks.push_back(next_++);
    waiting_.insert(tasks.begin(), tasks.end());
    queue_->add(new_tasks(tasks));
  }

  void end_one() {
    if (placed_.empty()) return;
    const int64_t task = *placed_.begin();
    placed_.erase(task);
    if (account_) account_->end({&task, 1});
    if (draw_(2)) {
      queue_->on_finished({&task, 1});
      return;
    }
    waiting_.insert(task);
    queue_->add(new_tasks({task}));
  }

  void rejoin() {
    if (paused_.empty()) return;
    queue_->on_requeue_due(*paused_.begin());
    paused_.erase(paused_.begin());
  }

  void round() {
    while (gives_up_ && !flying_.empty()) commit();  // jobs are given up between rounds
    const bool view_changed = draw_(2);
    const bool has_next = queue_->has_next(now_us_, view_changed);
    const auto begun = queue_->next_batch(now_us_, view_changed);
    // next_batch() may put the first of those skipped back into line: the next then holds the
    // queue
    CHECK(has_next == begun.has_value() || (has_next && account_ && skipped_));
    if (!begun) return;
    Open open;
    std::optional<int64_t> limit;
    if (draw_(2)) limit = 1 + static_cast<int64_t>(draw_(6));
    const std::vector<int64_t> held = account_ ? account_->held : std::vector<int64_t>{};
    queue_->take(limit, open.tasks.offered);
    const auto& offered = open.tasks.offered.task;
    for (size_t i = 0; i < held.size(); ++i)
      CHECK(account_->held[i] == held[i] || account_->held[i] <= account_->granted[i]);
    for (const int64_t task : offered) {
      CHECK(waiting_.erase(task) == 1);
      if (gives_up_) open.tasks.had_turn.push_back(draw_(3) > 0);
      if (draw_(2)) {
        open.claimed.push_back(task);
        continue;
      }
      open.pending.push_back(task);
      const bool too_large = draw_(9) == 0;
      open.reason.push_back(
          static_cast<int8_t>(too_large ? PendingReason::TooLarge : PendingReason::NoRoom));
      if (!too_large) (keeps_ ? kept_ : waiting_).insert(task);
    }
    // tasks of earlier rounds that the scheduler had kept
    for (auto kept = kept_.begin(); kept != kept_.end();)
      if (std::ranges::count(offered, *kept) == 0 && draw_(3) == 0) {
        open.claimed.push_back(*kept);
        kept = kept_.erase(kept);
      } else {
        ++kept;
      }
    std::ranges::reverse(open.claimed);
    left(queue_->on_planned(open.tasks, open.plan(), now_us_));
    flying_.push_back(std::move(open));
    if (draw_(2)) commit();
  }

  void commit() {
    if (flying_.empty()) return;
    Open open = std::move(flying_.front());
    flying_.erase(flying_.begin());
    QueuedTasks claimed, losers;
    queue_->claimed_tasks(open.tasks, open.plan(), claimed);
    CHECK(claimed.task == open.claimed);
    for (size_t i = 0; i < claimed.size(); ++i) {
      CHECK(claimed.attempts[i] == attempts_[claimed.task[i]]);
      if (draw_(2)) {
        placed_.insert(claimed.task[i]);
        attempts_.erase(claimed.task[i]);
        continue;
      }
      ++claimed.attempts[i];
      ++attempts_[claimed.task[i]];
      losers.append_row(claimed, i);
      waiting_.insert(claimed.task[i]);
    }
    left(queue_->on_committed(open.tasks, open.plan(), losers));
  }

  void left(const agora::QueueExits& exits) {
    for (const int64_t task : exits.abandoned) CHECK(waiting_.erase(task) == 1);
    if (exits.retry) paused_.insert(exits.retry);
  }

  Draws draw_;
  Table table_;
  UnitSizes sizes_;
  std::unique_ptr<QuotaAccount> account_;
  std::unique_ptr<SkippedUnits> skipped_;
  std::unique_ptr<PendingQueue> queue_;
  bool keeps_ = false, gives_up_ = false;
  int64_t now_us_ = 0, next_ = 0;
  std::set<int64_t> waiting_, kept_, placed_, paused_;
  std::map<int64_t, int64_t> attempts_;
  std::vector<Open> flying_;
};

template <class Error, class Call>
bool throws(Call call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

void test_illegal_orders() {
  const std::vector<int64_t> gang{-1, 7, 7}, one{1}, unknown{3}, request{1, 1, 1}, big{1LL << 62};
  const std::vector<int32_t> group{0, 0, 0}, zero{0};
  QuotaAccount account(group, 1, request, 1, gang);
  CHECK(throws<std::out_of_range>([&] { account.submit(unknown); }));
  CHECK(throws<std::out_of_range>([&] { account.within(std::vector<int64_t>{-1}); }));
  CHECK(throws<std::invalid_argument>([&] { account.has_room({}, one); }));
  CHECK(throws<std::invalid_argument>([&] { QuotaAccount(group, 0, request, 1, gang); }));
  const std::vector<int64_t> alone{agora::kNoGang}, first{0};
  QuotaAccount full(zero, 1, big, 1, alone);
  full.submit(first);
  CHECK(throws<std::overflow_error>([&] { full.submit(first); }));

  AgentQueue::Options options;
  options.gang = gang;
  options.account = &account;
  AgentQueue queue(options);
  CHECK(throws<std::out_of_range>([&] { queue.add(new_tasks(unknown)); }));
  CHECK(throws<std::out_of_range>([&] { queue.on_requeue_due(1); }));
  RoundTasks round;
  const std::vector<int8_t> no_reason;
  CHECK(throws<std::invalid_argument>([&] { queue.on_planned(round, {{}, one, no_reason}, 0); }));
  QueuedTasks claimed;
  CHECK(throws<std::invalid_argument>([&] { queue.claimed_tasks(round, {one, {}, {}}, claimed); }));
  CHECK(throws<std::invalid_argument>([&] { agora::batch_within(one, -1, gang); }));

  SchedulerQueue keeps(true, gang);
  CHECK(throws<std::invalid_argument>([&] { keeps.on_planned(round, {one, {}, {}}, 0); }));
  CHECK(throws<std::logic_error>([&] { keeps.on_requeue_due(1); }));

  const std::vector<int32_t> preference{0, 0, 0};
  const UnitSizes sizes(request, 1, gang, preference, first);
  AgentQueue limited(options);
  CHECK(throws<std::logic_error>([&] { limited.give_up_jobs(first, 1, 1); }));
  SkippedUnits skipped(sizes, 5, gang, nullptr);
  CHECK(throws<std::out_of_range>([&] { skipped.take(0, std::nullopt, claimed); }));
  CHECK(throws<std::invalid_argument>([&] { skipped.on_no_room(0, {}); }));
  CHECK(throws<std::out_of_range>([&] { skipped.on_no_room(0, new_tasks(unknown)); }));
  options.skipped = &skipped;
  options.requeues = true;
  CHECK(throws<std::invalid_argument>([&] { AgentQueue refused(options); }));
}

// Once a few batches have gone through a queue, others need no new memory.
void test_memory_is_kept() {
  AgentQueue queue({});
  RoundTasks round;
  const QueuedTasks batch = new_tasks({3, 1, 2});
  std::set<const int64_t*> memory;
  for (int i = 0; i < 100; ++i) {
    queue.add(batch);
    CHECK(queue.next_batch(i, false) == 3);
    queue.take(std::nullopt, round.offered);
    CHECK(round.offered.task == batch.task);
    CHECK(i < 10 || memory.contains(round.offered.task.data()));
    memory.insert(round.offered.task.data());
  }
}

}  // namespace

int main() {
  test_illegal_orders();
  test_memory_is_kept();
  for (uint64_t seed = 1; seed <= tries(250); ++seed) Run(seed).play();
  return EXIT_SUCCESS;
}
