// The tasks an agent was given and has not placed: what its next round is about, and what becomes
// of tasks that a round did not place.
//
// The states of a task, and what moves it:
//
//   submitted, or has to run again
//      | add()
//      |------------> HELD BACK  until its job is admitted (jobs_max)
//      v                  |
//   IN LINE <-------------+
//      |    ^ ^------------------ put back: its quota has no room  (CURRENT, LOSER, SKIPPED)
//      |    +-------------------- on_requeue_due()                 (PAUSED)
//      | next_batch()
//      v
//   CURRENT, the batch that rounds are about
//      | take()                              on_planned() leaves it waiting:
//      v                                       BLOCK    -> CURRENT, or SKIPPED: others go ahead
//   OFFERED in a round ----------------------> REQUEUE  -> PAUSED once the round's outcome is known
//      |                                       kept     -> KEPT by the scheduler
//      | on_planned() claims it                too large -> leaves
//      v
//   CLAIMED (KEPT tasks are claimed, too)    on_committed() rejects it:
//      |                                       BLOCK    -> CURRENT; where others go ahead, LOSER
//      +-------------------------------------> REQUEUE  -> PAUSED, or given up: leaves
//      |
//      v
//   placed: leaves. Its job holds its place among those admitted until on_finished().
//
// SKIPPED and LOSER tasks are taken for rounds without being CURRENT.
//
// Two kinds, by who remembers the tasks that a plan leaves waiting: the agent, which offers them
// again (AgentQueue), or the scheduler (flow schedulers), which is then told about new tasks only
// (SchedulerQueue).
//
// Invariant. Every task that was added and has not left is in one place, and no two rounds under
// way hold it. next_batch() has no batch unless has_next() says so at that time, and has one if it
// does; except that with an account, tasks that go back into line from SKIPPED may leave others
// there which hold the queue.
//
// A round may be taken and planned while others wait for their outcome. Throws
// std::invalid_argument and std::out_of_range for tasks that its state does not allow.
//
// Beside the queue: SortingOut, what never enters it, and QueueHolds, who holds it up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsync/core/native/queue_parts.hpp"
#include "parsync/metrics/native/agent_log.hpp"
#include "schedulers/native/contract.hpp"

namespace agora {

// As schedulers.interface.PendingReason.
enum class PendingReason : int8_t {
  NoRoom,
  TooLarge,
  PricedOut,
  WaitsForPreferred,
  SlotsTooDear,
  HeldBack,
  NotRouted,
};

// Why a task still waits, as parsync.metrics.tables.Waiting.
enum class Waiting : int8_t {
  NoRoom,
  Behind,
  NotTried,
  Quota,
  JobNotAdmitted,
  Paused,
  Rejected,
  PricedOut,
  WaitsForPreferred,
  SlotsTooDear,
  HeldBack,
  NotRouted,
};

// Called with tasks that wait for one reason, behind one task, or kNobody.
inline constexpr int64_t kNobody = -1;
using SeeWaiting = std::function<void(std::span<const int64_t>, Waiting, int64_t ahead)>;

// A plan, as far as a queue has to know it.
struct PlannedTasks {
  std::span<const int64_t> claimed;
  std::span<const int64_t> pending;  // left waiting
  std::span<const int8_t> pending_reason;
  bool in_full = false;  // known to claim all offered tasks in their order
};

// What a round is about, and what its queue notes of it until its outcome is known.
struct RoundTasks {
  QueuedTasks offered;
  QueuedTasks claimed;                       // by its plan; of a SchedulerQueue
  QueuedTasks left;                          // by its plan; of REQUEUE
  int64_t since_us = SkippedUnits::kNotYet;  // its tasks had lacked room before
  bool blocked = false;                      // the view had no room for some of its tasks
  std::vector<uint8_t> had_turn{};           // of the tasks offered; empty: all had
};

// The tasks that leave the queue, and the key by which tasks rejoin it after a pause; 0: none do.
struct QueueExits {
  std::vector<int64_t> too_large;
  std::vector<int64_t> abandoned;
  int64_t retry = 0;

  bool empty() const { return too_large.empty() && abandoned.empty() && retry == 0; }
  void clear() {
    too_large.clear();
    abandoned.clear();
    retry = 0;
  }
};

// The jobs of an agent that admits few at a time (Omega section 3.4). A job is admitted when its
// first task may be offered, and leaves when all of its tasks have ended or were given up. Others
// wait in order of submission. Tasks of admitted jobs that have to run again are never held back.
class JobAdmission {
 public:
  using Admit = std::function<void(const QueuedTasksView&)>;

  // job: of each task id, borrowed.
  JobAdmission(std::span<const int64_t> job, int64_t jobs_max);

  // Admits tasks that were submitted, by job in order of their first tasks, or holds them back.
  void add(const QueuedTasksView& tasks, const Admit& admit);
  // Tasks ran before the agent began.
  void on_adopted(std::span<const int64_t> task);
  // Tasks are over. Admits jobs in place of those that have ended, and says whether it did.
  bool leave(std::span<const int64_t> task, const Admit& admit);
  void waiting(const SeeWaiting& see) const;

 private:
  size_t row(int64_t task) const { return row_of(task, job_.size()); }
  bool has_place() const { return static_cast<int64_t>(tasks_of_.size()) < jobs_max_; }
  void enter(int64_t job, std::span<const int64_t> task);

  const std::span<const int64_t> job_;
  const int64_t jobs_max_;
  std::vector<uint8_t> is_here_;                   // submitted to the agent, and not over
  std::unordered_map<int64_t, int64_t> tasks_of_;  // by admitted job: those that are here
  std::unordered_map<int64_t, std::vector<QueuedTasks>> held_back_;  // by job
  std::deque<int64_t> order_;                                        // of those jobs
};

// The scheduling attempts of an agent's jobs, and which of these have had their chances: those that
// `most` attempts did not place whole, or most_unplaced if they placed no task. So frameworks of
// Omega's simulator of Mesos give up jobs.
class JobAttempts {
 public:
  // job: of each task id, borrowed.
  JobAttempts(std::span<const int64_t> job, int64_t most, int64_t most_unplaced)
      : job_(job), most_(most), most_unplaced_(most_unplaced) {}

  // A round is over. Counts an attempt of each job with a task that had its turn, unless these only
  // wait for a preferred machine. Appends the tasks of jobs that are given up: those of the round
  // that still wait.
  void on_round(const RoundTasks& round, const PlannedTasks& plan, const QueuedTasksView& losers,
                std::vector<int64_t>& given_up);

 private:
  struct Count {
    int64_t attempts = 0;
    bool some_placed = false;
  };

  const std::span<const int64_t> job_;
  const int64_t most_;
  const int64_t most_unplaced_;
  std::unordered_map<int64_t, Count> count_;  // by job with tasks that wait or have been placed
};

// What an agent asks of its queue, whoever remembers the tasks that wait.
class PendingQueue {
 public:
  virtual ~PendingQueue() = default;

  // Admits at most jobs_max jobs at a time. Called before any task is added. job: of each task id,
  // borrowed.
  void limit_jobs(std::span<const int64_t> job, int64_t jobs_max);

  // Are there tasks that the next round would offer even though others find no room?
  virtual bool has_new(int64_t now_us) = 0;
  // Are there tasks that only a change of the view can help?
  virtual bool has_waiting() const = 0;
  // Is there anything to decide? next_batch() then has a batch. view_changed: whether those that
  // wait may find what they did not find before.
  virtual bool has_next(int64_t now_us, bool view_changed) = 0;

  // Tasks that were submitted, or have to run again.
  void add(const QueuedTasksView& tasks);

  // Chooses the batch of the next round. Returns the size of a batch begun now; 0 if the current
  // batch continues; unset if there is nothing to decide.
  virtual std::optional<int64_t> next_batch(int64_t now_us, bool view_changed) = 0;
  // The tasks that take() can take, in order. Valid until the next call of a function.
  virtual QueuedTasksView current() = 0;
  // Takes at most `limit` of them. No round parts a gang.
  virtual void take(std::optional<int64_t> limit, QueuedTasks& offered) = 0;

  // The tasks of the unit without room that holds the queue: those behind it are not tried.
  virtual std::span<const int64_t> holder(int64_t now_us) const = 0;
  // Calls `see` with the tasks that wait, by reason.
  void waiting(int64_t now_us, const SeeWaiting& see);

  // The tasks that the round claims, in the plan's order, with their attempts so far and whether
  // the commit would be their first.
  virtual void claimed_tasks(const RoundTasks& round, const PlannedTasks& plan,
                             QueuedTasks& claimed) const = 0;

  // The round that began at start_us is decided: puts what its plan left waiting where it belongs,
  // and marks the round if that was for lack of room. The answer is valid until the next call.
  const QueueExits& on_planned(RoundTasks& round, const PlannedTasks& plan, int64_t start_us);
  // The round is over: puts the losers where they belong.
  const QueueExits& on_committed(const RoundTasks& round, const PlannedTasks& plan,
                                 const QueuedTasksView& losers);
  // What left with the last of these two calls.
  const QueueExits& exits() const { return exits_; }
  // The pause of QueueExits::retry is over.
  virtual void on_requeue_due(int64_t key) = 0;
  // Tasks of the agent ran before it began.
  void on_adopted(std::span<const int64_t> task);
  // Tasks of the agent ran to their end. Says whether there is more to decide now.
  bool on_finished(std::span<const int64_t> task);

 protected:
  virtual void enqueue(const QueuedTasksView& tasks) = 0;
  virtual void planned(RoundTasks& round, const PlannedTasks& plan, int64_t start_us) = 0;
  virtual void committed(const RoundTasks& round, const PlannedTasks& plan,
                         const QueuedTasksView& losers) = 0;
  virtual void see_waiting(int64_t now_us, const SeeWaiting& see) = 0;

  QueueExits exits_;  // of planned() and committed()

 private:
  const QueueExits& without_exits();

  std::optional<JobAdmission> admission_;
};

// Batches in line, one line for each quota group; a single one without quotas. Within a line tasks
// of higher priority come first, and among equals those submitted first.
class Lines {
 public:
  // account: null without quotas. priority: of each task id; empty if all are alike.
  Lines(QuotaAccount* account, std::span<const int32_t> priority);

  bool empty() const;
  void append(const QueuedTasksView& tasks) { insert(tasks, ++last_); }
  // To the front of the tasks of their priority.
  void put_back(const QueuedTasksView& tasks) { insert(tasks, --first_); }

  // Whether a line has room for the task at its head, besides the tasks `before`.
  bool has_head(std::span<const int64_t> before = {}) const;
  // Whether such a line has a batch at its head that was not requeued.
  bool has_new_head(std::span<const int64_t> before) const;
  // Of the lines with room, chooses the one whose head was submitted first; at least one must have
  // room. Puts `before` back, which may make it the head of that line, and then takes the head.
  void take_head(const QueuedTasksView& before, QueuedTasks& batch);
  // Adds batches to `batch`, in order of submission: of the lines with room besides `before`, all
  // that were not requeued. Under quotas a line is taken only up to its first requeued batch.
  void take_new(std::span<const int64_t> before, QueuedTasks& batch);

  void waiting(std::span<const int64_t> holder, const SeeWaiting& see) const;

 private:
  struct Batch {
    int64_t level;   // -priority
    int64_t number;  // ascends with submission, and descends with each that is put back
    QueuedTasks tasks;
  };
  using Line = std::vector<Batch>;  // a heap

  static bool is_later(const Batch& a, const Batch& b);
  bool has_room(const Line& line, std::span<const int64_t> before) const;
  void insert(const QueuedTasksView& tasks, int64_t number);
  Batch& push(size_t line, int64_t level, int64_t number);
  void sift(size_t line);
  Batch pop(Line& line);

  QuotaAccount* const account_;
  const std::span<const int32_t> priority_;
  std::vector<Line> lines_;
  int64_t last_ = 0, first_ = 0;
  std::vector<QueuedTasks> spare_;  // memory of batches that were taken
};

// The queue of an agent that itself offers waiting tasks again, in order of submission; losers
// first (BLOCK), or after a pause at the tail (REQUEUE).
//
// Under REQUEUE, as in Omega's simulator, all that a round left without a place pauses together,
// until attempts_max rounds have done so, or attempts_max_unplaced if none placed a task of the
// batch.
//
// With an account, the tasks of a quota group are offered only while its grant has room for them.
// Among groups with room, the batch submitted first is next, so one group's tasks never wait for
// another group to get room. A round keeps the grant as it stands when the tasks are offered: what
// it claims was within it.
class AgentQueue final : public PendingQueue {
 public:
  struct Options {
    bool requeues = false;  // what becomes of losers: REQUEUE, or BLOCK
    int64_t attempts_max = 1;
    int64_t attempts_max_unplaced = 1;
    std::span<const int64_t> gang = {};  // of each task id; empty if no task has one
    // All new tasks join the next round, instead of one batch at a time; a requeued batch stays by
    // itself, because its rounds are counted.
    bool whole_queue = false;
    // Keeps what a round left without room, while others go ahead. Null: it holds up all that come
    // after it. Not with `requeues` or `whole_queue`.
    SkippedUnits* skipped = nullptr;
    // Of the agent's quota. The queue enters what becomes of tasks until they are committed.
    QuotaAccount* account = nullptr;
    std::span<const int32_t> priority = {};  // of each task id; empty if all are alike
    // The account is that of a limit that the scheduler sets itself (Omega section 3.4). It does
    // not change, so what is held back waits for own tasks to end.
    bool is_own_limit = false;
  };

  explicit AgentQueue(const Options& options);

  // Gives up jobs (BLOCK), as JobAttempts, where one round is over before the next begins. Called
  // before any task is added.
  void give_up_jobs(std::span<const int64_t> job, int64_t most, int64_t most_unplaced);

  bool has_new(int64_t now_us) override;
  bool has_waiting() const override;
  bool has_next(int64_t now_us, bool view_changed) override;
  std::optional<int64_t> next_batch(int64_t now_us, bool view_changed) override;
  QueuedTasksView current() override;
  void take(std::optional<int64_t> limit, QueuedTasks& offered) override;
  std::span<const int64_t> holder(int64_t now_us) const override;
  void claimed_tasks(const RoundTasks& round, const PlannedTasks& plan,
                     QueuedTasks& claimed) const override;
  void on_requeue_due(int64_t key) override;

 protected:
  void enqueue(const QueuedTasksView& tasks) override;
  void planned(RoundTasks& round, const PlannedTasks& plan, int64_t start_us) override;
  void committed(const RoundTasks& round, const PlannedTasks& plan,
                 const QueuedTasksView& losers) override;
  void see_waiting(int64_t now_us, const SeeWaiting& see) override;

 private:
  bool has_new_batches() const;
  bool has_batch() const;
  bool may_continue() const;
  bool has_losers();
  bool has_more(int64_t now_us);
  std::optional<int64_t> begin_batch();
  void keep_within_quota(QueuedTasks& tasks);
  void requeue(const RoundTasks& round, const PlannedTasks& plan, const QueuedTasksView& losers);
  void give_up(const RoundTasks& round, const PlannedTasks& plan, const QueuedTasksView& losers);

  const Options options_;
  Lines lines_;
  QueuedTasks current_;
  std::optional<size_t> place_;  // among those skipped, of the next round's tasks
  // beside those skipped: tasks whose claims were rejected, and since when they lack room
  std::deque<std::pair<QueuedTasks, int64_t>> losers_;
  std::vector<int64_t> without_room_;  // of the current batch, in the last round
  std::map<int64_t, QueuedTasks> paused_;
  int64_t pauses_ = 0;
  std::optional<JobAttempts> attempts_;
  QueuedTasks scratch_;
};

// The queue of an agent whose scheduler remembers the waiting tasks. The scheduler is offered new
// tasks and losers only, and is called whenever its view has changed.
class SchedulerQueue final : public PendingQueue {
 public:
  // whole_queue, gang: as for AgentQueue.
  SchedulerQueue(bool whole_queue, std::span<const int64_t> gang)
      : whole_queue_(whole_queue), gang_(gang) {}

  bool has_new(int64_t now_us) override;
  bool has_waiting() const override { return !kept_.empty(); }
  bool has_next(int64_t now_us, bool view_changed) override;
  std::optional<int64_t> next_batch(int64_t now_us, bool view_changed) override;
  QueuedTasksView current() override { return current_; }
  void take(std::optional<int64_t> limit, QueuedTasks& offered) override;
  std::span<const int64_t> holder(int64_t) const override { return {}; }
  void claimed_tasks(const RoundTasks& round, const PlannedTasks& plan,
                     QueuedTasks& claimed) const override;
  void on_requeue_due(int64_t key) override;

 protected:
  void enqueue(const QueuedTasksView& tasks) override;
  void planned(RoundTasks& round, const PlannedTasks& plan, int64_t start_us) override;
  void committed(const RoundTasks& round, const PlannedTasks& plan,
                 const QueuedTasksView& losers) override;
  void see_waiting(int64_t now_us, const SeeWaiting& see) override;

 private:
  struct Kept {
    int32_t attempts;
    int8_t first;
    PendingReason reason;
  };

  const bool whole_queue_;
  const std::span<const int64_t> gang_;
  std::deque<QueuedTasks> new_;
  std::vector<QueuedTasks> spare_;  // memory of batches that were begun
  QueuedTasks current_;
  std::unordered_map<int64_t, Kept> kept_;  // tasks left with the scheduler
};

// Removes the tasks that one agent can never place when it receives them, so that they hold up no
// others, and records them.
class SortingOut {
 public:
  // units: none: the agent can place all. reason: why each task can never be placed
  // (schedulers.unplaceable.Unplaceable), of the tasks for which `units` says that.
  SortingOut(const UnplaceableUnits* units, std::span<const int8_t> reason, AgentLog& log)
      : units_(units), reason_(reason), log_(log) {}

  // Which of these tasks, submitted together, are recorded as unplaceable: 1 in the answer, [n],
  // which is empty if there are none, and valid until the next call.
  const std::vector<uint8_t>& sort_out(int64_t now_us, std::span<const int64_t> task) {
    never_.clear();
    if (!units_ || !units_->among(task, now_us, never_)) return never_;
    std::vector<int64_t> unplaceable;
    for (size_t i = 0; i < task.size(); ++i)
      if (never_[i]) unplaceable.push_back(task[i]);
    record(now_us, unplaceable);
    return never_;
  }

  // Removes them.
  void keep_placeable(int64_t now_us, QueuedTasks& tasks) {
    if (sort_out(now_us, tasks.task).empty()) return;
    size_t kept = 0;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (never_[i]) continue;
      tasks.task[kept] = tasks.task[i];
      tasks.attempts[kept] = tasks.attempts[i];
      tasks.first[kept++] = tasks.first[i];
    }
    tasks.truncate(kept);
  }

  // Records tasks that can never be placed.
  void record(int64_t now_us, std::span<const int64_t> task) {
    if (!units_) return log_.unplaceable(now_us, task, kLargerThanEveryMachine);
    std::vector<int8_t> reasons;
    for (const int64_t id : task) reasons.push_back(reason_[row_of(id, reason_.size())]);
    log_.unplaceable(now_us, task, reasons);
  }

 private:
  static constexpr int8_t kLargerThanEveryMachine = 0;

  const UnplaceableUnits* const units_;
  const std::span<const int8_t> reason_;
  AgentLog& log_;
  std::vector<uint8_t> never_;
};

// Records which unit holds the queue of an agent, since when, and how many tasks wait behind it
// (the table `holds`), if it keeps tasks waiting.
class QueueHolds {
 public:
  explicit QueueHolds(AgentLog& log) : log_(log) {}

  // A round is decided. holder: the tasks of the unit that holds the queue; none if no unit does.
  // queued: the tasks that wait, those included.
  void see(int64_t now_us, std::span<const int64_t> holder, int64_t queued) {
    if (!holder_.empty() && !goes_on(holder)) end(now_us, queued);
    if (holder.empty()) return;
    if (holder_.empty()) {
      from_us_ = now_us;
      behind_ = 0;
    }
    holder_.assign(holder.begin(), holder.end());
    behind_ = std::max(behind_, queued - static_cast<int64_t>(holder.size()));
  }

  // The hold is over, with so many tasks that wait; or the run is.
  void end(int64_t now_us, int64_t queued) {
    const int64_t behind = std::max(behind_, queued);
    if (!holder_.empty() && behind > 0) log_.hold(holder_[0], from_us_, now_us, behind);
    holder_.clear();
    behind_ = 0;
  }

 private:
  // Whether these tasks are of the unit that held the queue before.
  bool goes_on(std::span<const int64_t> holder) const {
    return std::ranges::any_of(
        holder, [this](int64_t task) { return std::ranges::find(holder_, task) != holder_.end(); });
  }

  AgentLog& log_;
  std::vector<int64_t> holder_;
  int64_t from_us_ = 0;
  int64_t behind_ = 0;
};

}  // namespace agora
