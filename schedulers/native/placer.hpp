// The greedy placement kernel, the ranked rows that it draws from, and the planner on top of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "objective.hpp"
#include "priced_rows.hpp"
#include "shared_state/native/random.hpp"
#include "shared_state/native/view.hpp"

namespace agora {

struct RankedRow {
  int64_t rank;  // lowest first
  int32_t row;
  int16_t price = 0;  // before all, lowest first: a rank (priced_rows.hpp), 0 without prices

  bool same_place(const RankedRow& other) const {
    return rank == other.rank && price == other.price;
  }
  std::pair<int16_t, int64_t> place() const { return {price, rank}; }
};

// Open rows by room: for best fit and load spreading, whose plans take the extreme row again and
// again.
//
//   heap   the first rows in order, with their ties; rows up to a limit
//   rest   the other rows, beyond the limit and in no order; most plans never come to them
//
// Building is O(open rows). Afterwards a pick is O(log): a row whose room changed is pushed again
// with its new rank, and what lies there with an old rank, or of a row no longer open, is dropped
// when it comes first. When the heap is empty, the first of the rest move into it.
class RankedRows {
 public:
  bool built() const { return built_; }
  void clear() {
    heap_.clear();
    rest_.clear();
    built_ = false;
  }
  // Filling: add() each row, then build().
  void add(const RankedRow& row) { rest_.push_back(row); }
  // Rows of the same price and rank come in the order of their hashes; without a salt, lowest
  // first.
  void build(std::optional<uint64_t> salt) {
    salt_ = salt;
    built_ = true;
    refill();
  }
  void push(const RankedRow& row) {
    if (row.place() > limit_) return rest_.push_back(row);
    heap_.push_back(with_tie(row));
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }
  bool empty() const { return heap_.empty(); }  // the rest is then, too
  const RankedRow& first() const { return heap_.front(); }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    heap_.pop_back();
    if (heap_.empty()) refill();
  }

 private:
  static constexpr size_t kFewest = 32;  // rows that are worth a pass over the rest
  static constexpr size_t kShare = 16;
  static constexpr std::pair<int16_t, int64_t> kNoLimit{INT16_MAX, INT64_MAX};

  struct Tied : RankedRow {
    uint64_t tie;
  };
  // (an object, so that the heap's loops compare without a call)
  struct Later {
    bool operator()(const Tied& a, const Tied& b) const {
      if (a.price != b.price) return a.price > b.price;
      if (a.rank != b.rank) return a.rank > b.rank;
      if (a.tie != b.tie) return a.tie > b.tie;
      return a.row > b.row;
    }
  };

  Tied with_tie(const RankedRow& row) const {
    return {row, salt_ ? hash64(row.row, *salt_) : uint64_t{0}};
  }

  // Requires: the heap is empty.
  void refill() {
    limit_ = next_limit();
    const auto end = std::partition(rest_.begin(), rest_.end(),
                                    [this](const RankedRow& row) { return row.place() > limit_; });
    for (auto row = end; row != rest_.end(); ++row) heap_.push_back(with_tie(*row));
    std::make_heap(heap_.begin(), heap_.end(), Later{});
    rest_.erase(end, rest_.end());
  }

  // The first place, if enough rows have it; else one that a sixteenth of the rows come up to.
  std::pair<int16_t, int64_t> next_limit() {
    const auto earlier = [](const RankedRow& a, const RankedRow& b) {
      return a.place() < b.place();
    };
    const size_t wanted = std::max(kFewest, rest_.size() / kShare);
    if (rest_.size() <= 2 * wanted) return kNoLimit;
    const auto first = std::min_element(rest_.begin(), rest_.end(), earlier)->place();
    const auto have_it = std::count_if(rest_.begin(), rest_.end(),
                                       [&](const RankedRow& row) { return row.place() == first; });
    if (static_cast<size_t>(have_it) >= kFewest) return first;
    const auto last = rest_.begin() + static_cast<std::ptrdiff_t>(wanted) - 1;
    std::nth_element(rest_.begin(), last, rest_.end(), earlier);
    return last->place();
  }

  std::vector<Tied> heap_;
  std::vector<RankedRow> rest_;
  std::pair<int16_t, int64_t> limit_ = kNoLimit;  // of the heap's rows; the rest's lie beyond it
  std::optional<uint64_t> salt_;
  bool built_ = false;
};

enum class PartitionRanking : int {
  Optimistic = 0,
  QualityFirst = 1,
  LatencyFirst = 2,
  FreshestPreferred = 3
};
// By value, as schedulers.interface.PartitionRanking names them.
constexpr std::array kRankingNames{"OPTIMISTIC", "QUALITY_FIRST", "LATENCY_FIRST",
                                   "FRESHEST_PREFERRED"};
static_assert(kRankingNames.size() == static_cast<size_t>(PartitionRanking::FreshestPreferred) + 1);
// What QUALITY_FIRST calls the best partition.
enum class PartitionQuality : int {
  MeanScore = 0,  // the highest mean score ln(weight) of open rows (ParSync section 5.2)
  MeanWeight = 1  // their highest mean weight
};
// By value, as schedulers.interface.PartitionQuality names them.
constexpr std::array kQualityNames{"MEAN_SCORE", "MEAN_WEIGHT"};
static_assert(kQualityNames.size() == static_cast<size_t>(PartitionQuality::MeanWeight) + 1);
enum class PlacementKind : int {
  Random = 0,
  RandomizedFirstFit = 1,
  FirstFit = 2,
  BestFit = 3,
  LoadSpreading = 4,
  WeightedSampling = 5
};
// By value, as schedulers.greedy.scheduler.PlacementKind names them.
constexpr std::array kPlacementKindNames{"RANDOM",   "RANDOMIZED_FIRST_FIT", "FIRST_FIT",
                                         "BEST_FIT", "LOAD_SPREADING",       "WEIGHTED_SAMPLING"};
static_assert(kPlacementKindNames.size() ==
              static_cast<size_t>(PlacementKind::WeightedSampling) + 1);

// The greedy placement kernel: one plan for a batch of tasks on one view, which is left as it was.
//
// Each task, in the order given, goes to a machine that fits it in the view as the tasks before it
// left it. The ranking says where to look (ParSync, sections 5.2 and 6), for each task:
//   OPTIMISTIC     preferred machines anywhere, then the whole view as one pool;
//   QUALITY_FIRST  preferred machines anywhere, then the partition whose open rows have the highest
//                  mean quality, then the next; where no row differs in score, the whole view as
//                  one pool. Every partition is looked at. The quality of a row is its weight, or
//                  its score (PartitionQuality);
//   LATENCY_FIRST  the freshest partition with room: preferred machines in it, then any in it; then
//                  the next freshest;
//   FRESHEST_PREFERRED  preferred machines anywhere, of equal cost those in the freshest partition
//                  that has one with room; then any in the freshest partition with room.
// "Preferred" are the levels of the task's set in ascending cost: listed machines, then listed
// racks; within a level uniformly among the rows that fit, so that schedulers with the same state
// spread. LOAD_SPREADING takes the row with the most room there too. Which row of a pool is the
// kind's:
//   RANDOM                uniform among the rows that fit;
//   RANDOMIZED_FIRST_FIT  Omega's: draw among the remaining candidates; one that fits is taken and
//                         stays a candidate, another is set aside until a task of another request;
//   FIRST_FIT             the lowest row that fits;
//   BEST_FIT              the row that fits with the least room (sum over dimensions, as shares of
//                         the largest machine), ties to the lowest;
//   LOAD_SPREADING        the row that fits with the most room, ties in an order drawn anew for
//                         each plan;
//   WEIGHTED_SAMPLING     with probability proportional to the slot score among the rows that fit:
//                         weighted sampling without replacement.
//
// With prices (priced_rows.hpp) a row is dearer or cheaper by what its next slot is worth to
// others. Where the price decides between equal costs, a task takes the lowest price among the rows
// of the lowest cost, and the kind decides between equal prices. Where prices are paid it takes the
// lowest cost + weight x price over all levels and elsewhere, of the rows that the ranking
// considers: under LATENCY_FIRST those of the partition, elsewhere under QUALITY_FIRST those of the
// partition chosen, under FRESHEST_PREFERRED those of the freshest partition with room, for each
// level and elsewhere by itself. Prices may be those of placements on other than listed machines
// alone. Weighted sampling knows no prices.
//
// A task whose set is a constraint (objective.hpp) takes what the set lists or nothing.
//
// A task that `waits` takes a listed machine or none, at any of their costs (delay scheduling).
// With `preferred_first` there are two passes: in the first, every task whose set lists machines
// takes one if it can; in the second, the tasks left that do not wait are placed as above. Both
// passes go in the order given. A task that both passes look for a place counts its partitions
// once, except under LATENCY_FIRST.
//
// Under FRESHEST_PREFERRED a task counts the partitions with an open row up to the last one looked
// at for it, whether or not an earlier task of the plan has found out that it holds nothing.
//
// That nothing fits is certain, and cheap to repeat: a row found open but too small is excluded
// from the index until a task asks for less than it was refused for (in some dimension), so it is
// met at most once per plan for requests that do not shrink. Counted work is rows looked at (drawn,
// tested or gathered) and, apart, rows ranked, and ranked again: a function of the input and the
// stream key.
struct PlaceRequest {
  size_t count;
  const int64_t* request;                    // [count, R]
  std::span<const int32_t> preference;       // [count]
  std::span<const int64_t> gang;             // [count]; negative: none
  std::span<const int32_t> partition_order;  // a permutation of the partitions, freshest first
  PartitionRanking ranking;
  PlacementKind kind;
  uint64_t stream;
  bool preferred_first = false;
  std::span<const bool> waits = {};  // [count]; empty: none does
  // [count], those of earlier calls, whose partitions do not count again; empty: none
  std::span<const bool> kept = {};
  PricedRows* prices = nullptr;  // none: no placement has a price
  PartitionQuality quality = PartitionQuality::MeanWeight;
};

struct PlaceWork {
  int64_t searches = 0;  // for a task's place, where it is not known beforehand that there is none
  int64_t looked_at = 0;
  // Rows put in order, and moved in it, by the kinds that rank (best fit, load spreading).
  int64_t ranked = 0;
  int64_t partitions_scanned = 0;
};

// machine: [count], -1 where left waiting. A gang is placed whole or not at all. Throws
// std::invalid_argument for input out of range.
PlaceWork place(ClusterView& view, const Catalog& catalog, const PlaceRequest& request,
                int32_t* machine);

// Where a task may go.
enum class Search { Anywhere, ListedMachines };

// Where each task of a plan may go, by its place in the plan.
using SearchOf = std::function<Search(size_t task)>;

// One plan in the making.
class Placer {
 public:
  Placer(ClusterView& view, const Catalog& catalog, const PlaceRequest& request);

  int32_t place_one(size_t task, Search search);
  bool place_gang(std::span<const uint32_t> tasks, const SearchOf& search, int32_t* machine);
  const PlaceWork& work() const { return work_; }

 private:
  static constexpr int32_t kNone = -1;

  // Rows to choose from: one partition, or all.
  struct Pool {
    size_t partition;  // P: all
    int64_t first;
    int64_t end;
  };
  struct OpenSum {
    int64_t count = 0;
    int64_t quality = 0;
  };
  // The cheapest rows of a pool or level, drawn ahead in ascending order of price and out of their
  // trees, so that the memory of several is asked for together.
  struct DrawnAhead {
    uint64_t epoch = 0;
    std::vector<DrawnRow> rows;
    size_t next = 0;
    size_t ready = 0;       // rows before it stand where they belong, and their memory is asked for
    size_t end = 0;         // of the rows of the rank of the one at `ready`
    size_t at_once = 0;     // drawn the last time
    uint64_t put_back = 0;  // how many rows had been put back when these were drawn
  };
  // The open rows of a level within a pool, gathered once per plan.
  struct Candidates {
    uint64_t epoch = 0;
    std::vector<int32_t> rows;
    RankedRows ranked;  // the rows of load spreading
    std::vector<int16_t> ranks;
    PriceTree by_price;  // over ranks
    DrawnAhead ahead;
  };
  // The rows of a level within a pool.
  struct LevelRows {
    std::span<const int32_t> members;
    std::span<const Catalog::RowRange> racks;
    size_t count;
  };
  // Under FreshestPreferred: partitions before `at` in the order have no row of a level to offer.
  struct Cursor {
    uint64_t epoch = 0;
    size_t at = 0;
  };
  // A place for a task.
  struct Offer {
    int32_t row = kNone;
    int64_t cost = 0;
    bool priced = false;
    DrawnRow drawn = {};
  };

  Pool pool(size_t partition) const;
  int64_t open_in(const Pool& pool) const;
  int32_t find_place(size_t task);
  int32_t find_listed(size_t task);
  int32_t find_in(int32_t set, const Pool& pool, Search search);
  void count_partitions(size_t task, size_t partitions);
  void count_all_partitions(size_t task);
  bool freshest_preferred() const { return input_.ranking == PartitionRanking::FreshestPreferred; }
  void note_open_partitions();
  void count_searched(size_t task);
  int32_t prefer(int32_t set, const Pool& pool, Search search);
  int32_t of_level(uint32_t number, const Pool& pool, bool priced);
  LevelRows rows_of(const Catalog::Level& level, const Pool& pool) const;
  void gather(const LevelRows& rows, const Pool& pool, std::vector<int32_t>& out);
  int32_t prefer_level(uint32_t number, const Pool& pool);
  int32_t draw_candidate(std::vector<int32_t>& rows);
  int32_t emptiest_candidate(RankedRows& rows, bool priced);
  void rank(const std::vector<int32_t>& rows, bool priced, RankedRows& out);
  uint64_t key_of(uint32_t level, const Pool& pool) const;
  int32_t choose_elsewhere(const Pool& pool);
  int32_t choose(const Pool& pool);
  int32_t draw_empty(const Pool& pool);
  int32_t choose_ranked(const Pool& pool);
  int32_t choose_by_quality();
  int32_t choose_freshest();
  OpenSum open_sum(size_t partition) const;
  bool by_quality() const {
    return input_.ranking == PartitionRanking::QualityFirst && view_.static_state().scored();
  }
  bool by_score() const { return by_quality() && input_.quality == PartitionQuality::MeanScore; }
  RankedRow ranked(int32_t row, bool priced) const;
  std::optional<uint64_t> salt_of_ties() const;
  bool has_most_room(int32_t row) const;
  void push_ranked(int32_t row);

  int32_t cheapest(int32_t set, const Pool& pool, Search search);
  bool may_beat(int64_t cost, const Offer& best) const;
  bool beats(const Offer& one, const Offer& best) const;
  int64_t price_of(const Offer& offer) const;
  Int128 paid_for(const Offer& offer) const;
  int32_t cheapest_of_level(uint32_t number, const Pool& pool);
  int32_t cheapest_of_few(const LevelRows& rows, const Pool& pool);
  int32_t cheapest_of_pool(const Pool& pool);
  template <typename RowOf>
  int32_t next_cheapest(DrawnAhead& ahead, std::span<PriceTree> trees, const RowOf& row_of);
  size_t rows_to_draw(const DrawnAhead& ahead);
  void make_ready(DrawnAhead& ahead);
  template <typename RowOf>
  void draw(std::span<PriceTree> trees, size_t wanted, const RowOf& row_of,
            std::vector<DrawnRow>& out);
  void put_back(const DrawnRow& drawn);
  int32_t cheapest_of_tree(PriceTree& tree, std::span<const int32_t> rows, DrawnAhead& ahead);
  int16_t price_rank(int32_t row) const { return prices_->rank(row); }

  void begin_request(const int64_t* request);
  bool fits(int32_t row) const { return view_.fits(row, request_); }
  bool open(int32_t row) const { return view_.index().contains(row); }
  void exclude(int32_t row);
  void readmit_all();
  void forget_excluded();
  void take(int32_t row);

  ClusterView& view_;
  const Catalog& catalog_;
  const PlaceRequest& input_;
  const size_t dimensions_;
  const Pool everything_;
  Stream stream_;
  Trial trial_;
  PlaceWork work_;

  const int64_t* request_ = nullptr;  // of the task being placed
  const int64_t* refused_ = nullptr;  // the request the excluded rows do not fit
  std::vector<int32_t> excluded_;
  std::vector<OpenSum> excluded_sum_;  // [P]: open rows the index does not count at the moment
  size_t freshest_ = 0;                // partitions before it in the order have no row to draw
  uint64_t epoch_ = 1;                 // candidates of an earlier one may lack rows

  std::vector<Cursor> cursors_;  // [levels] under FreshestPreferred
  std::vector<bool> was_open_;   // [P] likewise: as the search for the task began
  size_t searched_ = 0;          // partitions of the order that the search has looked at
  std::vector<bool> counted_;    // [count] if there are two passes: whose partitions are counted
  std::unordered_map<int32_t, uint64_t> without_room_;  // sets by the epoch in which none was found
  std::unordered_map<uint64_t, Candidates> candidates_;  // by level and partition
  std::vector<int32_t> scratch_;
  std::vector<RankedRows> ranked_;  // [P+1] for the kinds that rank, else empty
  std::optional<PriceTrial> prices_;
  std::optional<PriceDraws> draws_;  // with prices
  std::vector<DrawnAhead> ahead_;    // [P+1]; empty without prices
  DrawnRow drawn_;                   // the row that the last search by price found
  std::vector<DrawnRow> one_;
  uint64_t put_back_ = 0;
  size_t task_ = 0;  // being placed
  // Tasks one after the other with the same preferences, as last looked for: [first, end).
  size_t alike_first_ = 0, alike_end_ = 0;
};

// Tasks that wait with an agent.
struct WaitingTasks {
  size_t count;
  const int64_t* request;               // [count, R]
  std::span<const int32_t> preference;  // [count]
  std::span<const bool> waits;          // [count]
};
// Which of n waiting tasks may find a place: bool[n]. One that waits for its listed machines may if
// one of them has room for it, any other if the view has an open row. Returns the rows looked at.
// O(n + sizes of the distinct sets) where the tasks of a set ask for the same.
int64_t may_be_placed(const ClusterView& view, const Catalog& catalog, const WaitingTasks& tasks,
                      bool* may);

// Picoseconds of counted work in an operation (schedulers.decision_clock.PS_PER_OPERATION).
constexpr int64_t kPsPerOperation = 100'000;

// The columns of the task table that placing reads, by task id. Borrowed. A column of one value may
// repeat it with a stride of 0, so no column is expected to be contiguous; strides count entries.
struct PlacingColumns {
  size_t tasks;
  size_t dimensions;
  const int64_t* request;  // [tasks, dimensions]
  int64_t request_row_stride;
  int64_t request_stride;
  const int32_t* preference;
  int64_t preference_stride;
  const int64_t* gang;
  int64_t gang_stride;
};

// Those of some tasks, [n] each, one after the other; request is [n, R].
struct OfferedTasks {
  std::vector<int64_t> request;
  std::vector<int32_t> preference;
  std::vector<int64_t> gang;

  // Throws std::invalid_argument for a task that does not exist.
  void read(const PlacingColumns& table, std::span<const int64_t> task);
};

// What a plan depends on besides tasks and view (schedulers.interface.PlanContext).
struct PlanContext {
  uint64_t stream;
  PartitionRanking ranking;
  PartitionQuality quality;
  std::span<const int32_t> partition_order;  // the freshest first
  int64_t now_us = 0;
  PricedRows* prices = nullptr;  // none: no placement has a price
};

// A plan about n tasks whose k claims have been taken out of the view.
struct ClaimedPlan {
  std::vector<int64_t> task;  // the claims, in the order of the tasks
  std::vector<int32_t> machine;
  std::vector<int64_t> request;  // [k, R]
  std::vector<int64_t> gang;
  std::vector<int64_t> synced_us;         // when the partition of each claim's machine was synced
  std::vector<int64_t> pending;           // [n - k], in their order, those too large at the end
  std::vector<int8_t> pending_reason;     // schedulers.interface.PendingReason
  int64_t ticket = -1;                    // of the claims in the view
  size_t too_large = 0;                   // tasks that were not offered, because nothing holds them
  std::array<int64_t, 4> counted_work{};  // plans (1), and what else the planner counts
  int64_t operations = 0;
  int64_t partitions_scanned = 0;

  // Whether it claims all tasks that it is about, in their order.
  bool in_full() const { return pending.empty(); }
};

// A placer of this repository as an agent calls it: it looks up the tasks that a round is about,
// finds places for them (find()), checks that they fit, and takes their claims out of the view.
//
//   ids ── columns of the task table ── find() ── claims ── view.claim()
//                                         └───── left waiting: pending, with the reason
//
// A plan needs nothing of Python.
class TaskPlanner {
 public:
  virtual ~TaskPlanner() = default;
  TaskPlanner(const TaskPlanner&) = delete;
  TaskPlanner& operator=(const TaskPlanner&) = delete;

  // task: n ids. never: which of them can never be placed (UnplaceableUnits), [n] or empty: none.
  // Throws std::invalid_argument, with the view as it was, for input out of range.
  ClaimedPlan plan_and_claim(ClusterView& view, std::span<const int64_t> task,
                             const PlanContext& context, std::span<const uint8_t> never = {});

 protected:
  struct Work {
    std::array<int64_t, 4> counted;  // as weights_ps weigh it
    int64_t partitions_scanned;
  };

  // weights_ps: of ClaimedPlan::counted_work.
  TaskPlanner(const PlacingColumns& table, const std::array<int64_t, 4>& weights_ps)
      : table_(table), weights_ps_(weights_ps) {}

  // Writes a row of the view for each task, -1 where it is left waiting; leaves the view as it was.
  // columns: of the tasks.
  virtual Work find(ClusterView& view, std::span<const int64_t> task, const OfferedTasks& columns,
                    const PlanContext& context, std::span<int32_t> machine) = 0;

  const PlacingColumns table_;

 private:
  void place_offered(ClusterView& view, std::span<const int64_t> task, const PlanContext& context,
                     ClaimedPlan& plan);

  const std::array<int64_t, 4> weights_ps_;
  // of the round being planned
  OfferedTasks tasks_;
  std::vector<int64_t> offered_;
  std::vector<int32_t> found_;
};

// Plans by a greedy placer (place()): no patience, no preemption.
// (schedulers.greedy.scheduler.GreedyScheduler gives prices besides, which it has learned in
// Python.) It counts plans, tasks, rows looked at and rows ranked.
class GreedyPlanner final : public TaskPlanner {
 public:
  // preferred_first: whether every task that can have a preferred machine gets one before the
  // others are placed.
  GreedyPlanner(const Catalog& catalog, const PlacingColumns& table, PlacementKind kind,
                bool preferred_first, const std::array<int64_t, 4>& weights_ps)
      : TaskPlanner(table, weights_ps),
        catalog_(catalog),
        kind_(kind),
        preferred_first_(preferred_first) {}

 private:
  Work find(ClusterView& view, std::span<const int64_t> task, const OfferedTasks& columns,
            const PlanContext& context, std::span<int32_t> machine) override;

  const Catalog& catalog_;
  const PlacementKind kind_;
  const bool preferred_first_;
};

}  // namespace agora
