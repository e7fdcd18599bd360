#include "placer.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "shared_state/native/random.hpp"

namespace agora {

namespace {

constexpr int64_t kMaxRequest = int64_t{1} << 50;
constexpr int32_t kUnplaced = -1;
// uniform draws for an empty row before all are ranked, and from a level of more than kGatherAtOnce
// rows before its open rows are gathered for the plan
constexpr int kTries = 8;
// a level of at most so many rows is gathered per task: nothing is kept (under FreshestPreferred,
// where a level is searched in parts, the parts are)
constexpr size_t kGatherAtOnce = 128;

void check(const ClusterView& view, const Catalog& catalog, const PlaceRequest& in) {
  const size_t dimensions = view.static_state().dimensions();
  if (catalog.machines() != view.static_state().machines())
    throw std::invalid_argument("the catalog is of another cell than the view");
  for (size_t i = 0; i < in.count * dimensions; ++i)
    if (in.request[i] < 0 || in.request[i] > kMaxRequest)
      throw std::invalid_argument("request[" + std::to_string(i / dimensions) +
                                  "]: expected 0 to 2^50");
  for (size_t i = 0; i < in.count; ++i)
    if (in.preference[i] < 0 || static_cast<size_t>(in.preference[i]) >= catalog.sets())
      throw std::invalid_argument("preference[" + std::to_string(i) + "]: there is no set " +
                                  std::to_string(in.preference[i]));
  for (const std::span<const bool> flags : {in.waits, in.kept})
    if (!flags.empty() && flags.size() != in.count)
      throw std::invalid_argument("waits, kept: expected one per task, or none");
  if (in.prices != nullptr) {
    if (in.kind == PlacementKind::WeightedSampling)
      throw std::invalid_argument("weighted sampling draws by slot score: it knows no prices");
    if (in.prices->prices() == nullptr) throw std::invalid_argument("no prices were set");
    if (in.prices->prices()->machines() != view.static_state().machines() ||
        in.prices->prices()->dimensions() != dimensions)
      throw std::invalid_argument("the prices are of another cell than the view");
  }
  std::vector<bool> seen(view.static_state().partitions());
  for (const int32_t p : in.partition_order)
    if (p >= 0 && static_cast<size_t>(p) < seen.size()) seen[static_cast<size_t>(p)] = true;
  if (in.partition_order.size() != seen.size() ||
      !std::all_of(seen.begin(), seen.end(), [](bool s) { return s; }))
    throw std::invalid_argument("partition_order: expected every partition once");
}

bool ranks(PlacementKind kind) {
  return kind == PlacementKind::BestFit || kind == PlacementKind::LoadSpreading;
}

}  // namespace

PlaceWork place(ClusterView& view, const Catalog& catalog, const PlaceRequest& in,
                int32_t* machine) {
  check(view, catalog, in);
  // The members of each gang, gang by gang; a gang is placed at its first member's turn.
  std::vector<uint32_t> in_gangs;
  for (size_t i = 0; i < in.count; ++i)
    if (in.gang[i] >= 0) in_gangs.push_back(static_cast<uint32_t>(i));
  std::stable_sort(in_gangs.begin(), in_gangs.end(),
                   [&](uint32_t a, uint32_t b) { return in.gang[a] < in.gang[b]; });

  Placer placer(view, catalog, in);
  const auto waits = [&](size_t task) { return !in.waits.empty() && in.waits[task]; };
  const auto lists_machines = [&](size_t task) {
    return catalog.lists_machines(in.preference[task]);
  };
  // Places each task that `considers` names, its gang with it.
  const auto pass = [&](const auto& considers, const auto& search) {
    for (size_t i = 0; i < in.count; ++i) {
      if (machine[i] != kUnplaced) continue;
      if (in.gang[i] < 0) {
        if (considers(i)) machine[i] = placer.place_one(i, search(i));
        continue;
      }
      const auto first =
          std::lower_bound(in_gangs.begin(), in_gangs.end(), in.gang[i],
                           [&](uint32_t task, int64_t gang) { return in.gang[task] < gang; });
      if (*first != i) continue;  // placed, or not, with its first member
      auto last = first;
      while (last != in_gangs.end() && in.gang[*last] == in.gang[i]) ++last;
      if (!std::all_of(first, last, considers) || placer.place_gang({first, last}, search, machine))
        continue;
      for (auto task = first; task != last; ++task) machine[*task] = kUnplaced;
    }
  };
  std::fill(machine, machine + in.count, kUnplaced);
  const auto by_patience = [&](size_t task) {
    return waits(task) ? Search::ListedMachines : Search::Anywhere;
  };
  if (in.preferred_first) {
    pass(lists_machines, [](size_t) { return Search::ListedMachines; });
    pass([&](size_t task) { return in.gang[task] >= 0 || !waits(task); }, by_patience);
  } else {
    pass([](size_t) { return true; }, by_patience);
  }
  return placer.work();
}

// --- one plan in the making ---

Placer::Placer(ClusterView& view, const Catalog& catalog, const PlaceRequest& request)
    : view_(view),
      catalog_(catalog),
      input_(request),
      dimensions_(view.static_state().dimensions()),
      everything_{view.static_state().partitions(), 0,
                  static_cast<int64_t>(view.static_state().machines())},
      stream_(request.stream),
      trial_(view),
      excluded_sum_(view.static_state().partitions()),
      cursors_(freshest_preferred() ? catalog.levels() : 0),
      was_open_(freshest_preferred() ? view.static_state().partitions() : 0),
      counted_(request.preferred_first ? request.count : 0),
      ranked_(ranks(request.kind) ? view.static_state().partitions() + 1 : 0) {
  if (request.kind == PlacementKind::WeightedSampling) view.keep_classes();
  if (by_quality()) by_score() ? view.sum_scores() : view.sum_weights();
  if (request.prices != nullptr) {
    prices_.emplace(*request.prices, view);
    draws_.emplace(*prices_, stream_,
                   request.kind == PlacementKind::FirstFit ? Ties::First : Ties::Random);
    ahead_.resize(everything_.partition + 1);
  }
}

int32_t Placer::place_one(size_t task, Search search) {
  begin_request(input_.request + task * dimensions_);
  task_ = task;
  if (view_.index().count() == 0) return kNone;
  const int32_t row = search == Search::Anywhere ? find_place(task) : find_listed(task);
  if (row != kNone) take(row);
  return row;
}

bool Placer::place_gang(std::span<const uint32_t> tasks, const SearchOf& search, int32_t* machine) {
  readmit_all();
  const size_t before = trial_.mark();
  for (const uint32_t task : tasks) {
    machine[task] = place_one(task, search(task));
    if (machine[task] != kNone) continue;
    trial_.rollback(before);
    forget_excluded();
    for (RankedRows& ranked : ranked_) ranked.clear();
    return false;
  }
  return true;
}

// --- where to look ---

Placer::Pool Placer::pool(size_t partition) const {
  const std::vector<int64_t>& offsets = view_.static_state().index.offsets;
  return {partition, offsets[partition], offsets[partition + 1]};
}

int64_t Placer::open_in(const Pool& pool) const {
  return pool.partition == everything_.partition ? view_.index().count()
                                                 : view_.index().count(pool.partition);
}

void Placer::count_partitions(size_t task, size_t partitions) {
  if (!input_.kept.empty() && input_.kept[task]) return;
  work_.partitions_scanned += static_cast<int64_t>(partitions);
}

void Placer::count_all_partitions(size_t task) {
  if (!counted_.empty()) {
    if (counted_[task]) return;
    counted_[task] = true;
  }
  count_partitions(task, view_.static_state().partitions());
}

void Placer::note_open_partitions() {
  for (size_t p = 0; p < was_open_.size(); ++p) was_open_[p] = view_.index().count(p) > 0;
  searched_ = 0;
}

void Placer::count_searched(size_t task) {
  if (!counted_.empty()) {
    if (counted_[task]) return;
    counted_[task] = true;
  }
  size_t partitions = 0;
  for (size_t at = 0; at < searched_; ++at)
    partitions += was_open_[static_cast<size_t>(input_.partition_order[at])];
  count_partitions(task, partitions);
}

// Within an epoch rows only lose room, and those too small for a request are excluded: a set
// without room stays without.
int32_t Placer::find_listed(size_t task) {
  const int32_t set = input_.preference[task];
  const bool by_partition = input_.ranking == PartitionRanking::LatencyFirst;
  if (freshest_preferred()) {
    note_open_partitions();
  } else if (!by_partition) {
    count_all_partitions(task);
  }
  const auto known = without_room_.find(set);
  if (known != without_room_.end() && known->second == epoch_) {
    searched_ = was_open_.size();
    count_searched(task);
    return kNone;
  }
  ++work_.searches;
  int32_t row = kNone;
  if (by_partition) {
    for (size_t at = 0; at < input_.partition_order.size() && row == kNone; ++at) {
      const size_t p = static_cast<size_t>(input_.partition_order[at]);
      if (view_.index().count(p) == 0) continue;
      count_partitions(task, 1);
      row = find_in(set, pool(p), Search::ListedMachines);
    }
  } else {
    row = find_in(set, everything_, Search::ListedMachines);
    if (freshest_preferred()) count_searched(task);
  }
  if (row == kNone) without_room_[set] = epoch_;
  return row;
}

int32_t Placer::find_place(size_t task) {
  ++work_.searches;
  const int32_t set = input_.preference[task];
  switch (input_.ranking) {
    case PartitionRanking::LatencyFirst: {
      for (size_t at = freshest_; at < input_.partition_order.size(); ++at) {
        const size_t p = static_cast<size_t>(input_.partition_order[at]);
        if (view_.index().count(p) == 0) {
          if (at == freshest_) ++freshest_;
          continue;
        }
        count_partitions(task, 1);
        const int32_t row = find_in(set, pool(p), Search::Anywhere);
        if (row != kNone) return row;
      }
      return kNone;
    }
    case PartitionRanking::QualityFirst:
      count_all_partitions(task);
      return find_in(set, everything_, Search::Anywhere);
    case PartitionRanking::FreshestPreferred: {
      note_open_partitions();
      const int32_t row = find_in(set, everything_, Search::Anywhere);
      count_searched(task);
      return row;
    }
    case PartitionRanking::Optimistic:
      count_all_partitions(task);
      return find_in(set, everything_, Search::Anywhere);
  }
  return kNone;
}

int32_t Placer::find_in(int32_t set, const Pool& pool, Search search) {
  if (prices_) return cheapest(set, pool, search);
  const int32_t row = prefer(set, pool, search);
  if (row != kNone || search == Search::ListedMachines || catalog_.is_constraint(set)) return row;
  return choose_elsewhere(pool);
}

int32_t Placer::choose_elsewhere(const Pool& pool) {
  if (freshest_preferred()) return choose_freshest();
  return by_quality() ? choose_by_quality() : choose(pool);
}

Placer::OpenSum Placer::open_sum(size_t partition) const {
  const WeightedIndex& index = view_.index();
  const OpenSum& excluded = excluded_sum_[partition];
  const int64_t quality = by_score() ? index.score(partition) : index.weight(partition);
  return {index.count(partition) + excluded.count, quality + excluded.quality};
}

// Means are over all open rows, those too small for this request included. A partition that has
// none to offer has all its rows excluded by the attempt, so each is tried at most once.
int32_t Placer::choose_by_quality() {
  const WeightedIndex& index = view_.index();
  while (index.count() > 0) {
    size_t best = everything_.partition;
    OpenSum of_best;
    for (const int32_t candidate : input_.partition_order) {
      const size_t p = static_cast<size_t>(candidate);
      if (index.count(p) == 0) continue;
      const OpenSum sum = open_sum(p);
      if (best != everything_.partition && static_cast<Int128>(sum.quality) * of_best.count <=
                                               static_cast<Int128>(of_best.quality) * sum.count)
        continue;
      best = p;
      of_best = sum;
    }
    const int32_t row = choose(pool(best));
    if (row != kNone) return row;
  }
  return kNone;
}

int32_t Placer::choose_freshest() {
  for (size_t at = freshest_; at < input_.partition_order.size(); ++at) {
    const size_t p = static_cast<size_t>(input_.partition_order[at]);
    if (view_.index().count(p) == 0) {
      if (at == freshest_) ++freshest_;
      continue;
    }
    searched_ = std::max(searched_, at + 1);
    const int32_t row = choose(pool(p));
    if (row != kNone) return row;
  }
  searched_ = input_.partition_order.size();
  return kNone;
}

// --- the kinds ---

int32_t Placer::choose(const Pool& pool) {
  const WeightedIndex& index = view_.index();
  const bool all = pool.partition == everything_.partition;
  if (ranks(input_.kind)) return choose_ranked(pool);
  if (prices_) return cheapest_of_pool(pool);
  while (open_in(pool) > 0) {
    int32_t row = kNone;
    switch (input_.kind) {
      case PlacementKind::FirstFit:
        row = index.next_open(pool.first, pool.end);
        break;
      case PlacementKind::WeightedSampling:
        row = all ? index.draw_weighted(stream_) : index.draw_weighted(pool.partition, stream_);
        break;
      default:
        row = all ? index.draw_uniform(stream_) : index.draw_uniform(pool.partition, stream_);
    }
    ++work_.looked_at;
    if (fits(row)) return row;
    exclude(row);
  }
  return kNone;
}

RankedRow Placer::ranked(int32_t row, bool priced) const {
  const int64_t room = view_.static_state().normalised(view_.free(row));
  const int16_t price = priced ? price_rank(row) : int16_t{0};
  return {input_.kind == PlacementKind::BestFit ? room : -room, row, price};
}

std::optional<uint64_t> Placer::salt_of_ties() const {
  if (input_.kind == PlacementKind::BestFit) return std::nullopt;
  return input_.stream;
}

bool Placer::has_most_room(int32_t row) const {
  return view_.static_state().normalised(view_.free(row)) == view_.static_state().most_room();
}

// Of load spreading: a row that none can have more room than, if one is soon drawn. Uniform among
// them, so that the rows need not be ranked to break ties at random.
int32_t Placer::draw_empty(const Pool& pool) {
  const WeightedIndex& index = view_.index();
  const bool all = pool.partition == everything_.partition;
  for (int i = 0; i < kTries && open_in(pool) > 0; ++i) {
    const int32_t row =
        all ? index.draw_uniform(stream_) : index.draw_uniform(pool.partition, stream_);
    ++work_.looked_at;
    if (fits(row) && has_most_room(row)) return row;
  }
  return kNone;
}

int32_t Placer::choose_ranked(const Pool& pool) {
  RankedRows& rows = ranked_[pool.partition];
  const bool priced = prices_.has_value();
  if (!rows.built()) {
    if (input_.kind == PlacementKind::LoadSpreading && !priced) {
      const int32_t row = draw_empty(pool);
      if (row != kNone) return row;
    }
    int32_t row = view_.index().next_open(pool.first, pool.end);
    for (; row != kNone; row = view_.index().next_open(row + 1, pool.end)) {
      rows.add(ranked(row, priced));
      ++work_.ranked;
    }
    rows.build(salt_of_ties());
  }
  while (!rows.empty()) {
    const RankedRow first = rows.first();
    ++work_.looked_at;
    const bool current = open(first.row) && ranked(first.row, priced).same_place(first);
    if (current && fits(first.row)) return first.row;
    rows.pop();
    ++work_.ranked;
    if (current) exclude(first.row);
  }
  return kNone;
}

// --- what the plan does to the view ---

void Placer::push_ranked(int32_t row) {
  if (ranked_.empty()) return;
  const size_t partition = view_.static_state().index.partition_of(row);
  for (const size_t pool : {partition, everything_.partition}) {
    if (!ranked_[pool].built()) continue;
    ranked_[pool].push(ranked(row, prices_.has_value()));
    ++work_.ranked;
  }
}

void Placer::begin_request(const int64_t* request) {
  request_ = request;
  if (excluded_.empty()) return;
  bool at_least = true, same = true;
  for (size_t r = 0; r < dimensions_; ++r) {
    at_least &= request[r] >= refused_[r];
    same &= request[r] == refused_[r];
  }
  if (same || (at_least && input_.kind != PlacementKind::RandomizedFirstFit)) return;
  readmit_all();
}

// Rows excluded for an earlier, smaller request do not fit this one either.
void Placer::exclude(int32_t row) {
  trial_.exclude(row);
  if (prices_) prices_->changed(row);
  excluded_.push_back(row);
  OpenSum& sum = excluded_sum_[view_.static_state().index.partition_of(row)];
  ++sum.count;
  const int64_t weight = view_.static_state().index.weight[static_cast<size_t>(row)];
  sum.quality += by_score() ? score_of(weight) : weight;
  refused_ = request_;
}

void Placer::readmit_all() {
  if (excluded_.empty()) return;
  for (const int32_t row : excluded_) {
    trial_.readmit(row);
    if (prices_) prices_->changed(row);
    push_ranked(row);
  }
  forget_excluded();
}

void Placer::forget_excluded() {
  excluded_.clear();
  std::fill(excluded_sum_.begin(), excluded_sum_.end(), OpenSum{});
  freshest_ = 0;
  ++epoch_;
  if (prices_) prices_->undo_corrections();
}

void Placer::take(int32_t row) {
  const bool stays = trial_.take(row, request_);
  if (prices_) {
    prices_->changed(row);
    if (stays) put_back(drawn_);
    drawn_ = {};
  }
  if (stays) push_ranked(row);
}

// --- the preferred machines: the levels of a task's set ---

int32_t Placer::prefer(int32_t set, const Pool& pool, Search search) {
  for (uint32_t level = catalog_.first_level(set); level < catalog_.end_level(set); ++level) {
    if (search == Search::ListedMachines && catalog_.level(level).racks) return kNone;
    const int32_t row = of_level(level, pool, false);
    if (row != kNone || open_in(pool) == 0) return row;
  }
  return kNone;
}

Placer::LevelRows Placer::rows_of(const Catalog::Level& level, const Pool& pool) const {
  LevelRows rows{{}, {}, 0};
  if (level.racks) {
    rows.racks = catalog_.rack_rows(level);
    for (const Catalog::RowRange& rack : rows.racks) {
      const int64_t first = std::max<int64_t>(rack.first, pool.first),
                    end = std::min<int64_t>(rack.end, pool.end);
      if (first < end) rows.count += static_cast<size_t>(end - first);
    }
    return rows;
  }
  rows.members = catalog_.members(level);
  if (pool.partition != everything_.partition) {
    const auto first = std::lower_bound(rows.members.begin(), rows.members.end(), pool.first);
    rows.members = {first, std::lower_bound(first, rows.members.end(), pool.end)};
  }
  rows.count = rows.members.size();
  return rows;
}

// A row of a level within a pool. Under FreshestPreferred it is in the freshest partition that has
// one with room. Within an epoch a partition without stays without.
int32_t Placer::of_level(uint32_t number, const Pool& pool, bool priced) {
  const auto within = [&](const Pool& part) {
    return priced ? cheapest_of_level(number, part) : prefer_level(number, part);
  };
  if (!freshest_preferred()) return within(pool);
  Cursor& cursor = cursors_[number];
  if (cursor.epoch != epoch_) cursor = {epoch_, 0};
  for (; cursor.at < input_.partition_order.size(); ++cursor.at) {
    const size_t p = static_cast<size_t>(input_.partition_order[cursor.at]);
    if (view_.index().count(p) == 0) continue;
    const int32_t row = within(this->pool(p));
    if (row == kNone) continue;
    searched_ = std::max(searched_, cursor.at + 1);
    return row;
  }
  searched_ = cursor.at;
  return kNone;
}

uint64_t Placer::key_of(uint32_t level, const Pool& pool) const {
  return static_cast<uint64_t>(level) * (everything_.partition + 1) + pool.partition;
}

int32_t Placer::prefer_level(uint32_t number, const Pool& pool) {
  const LevelRows rows = rows_of(catalog_.level(number), pool);
  if (rows.count == 0) return kNone;
  const bool spreading = input_.kind == PlacementKind::LoadSpreading;
  if (rows.count <= kGatherAtOnce && !spreading && !freshest_preferred()) {
    gather(rows, pool, scratch_);
    return draw_candidate(scratch_);
  }
  const uint64_t key = key_of(number, pool);
  auto kept = candidates_.find(key);
  if (kept == candidates_.end()) {
    // A draw that fits is uniform among those that fit; most often one does, and nothing need be
    // gathered.
    // Of load spreading one that no row can have more room than.
    for (int i = 0; i < kTries && !rows.members.empty(); ++i) {
      const int32_t row = rows.members[stream_.below(rows.count)];
      ++work_.looked_at;
      if (open(row) && fits(row) && (!spreading || has_most_room(row))) return row;
    }
    kept = candidates_.try_emplace(key).first;
  }
  Candidates& candidates = kept->second;
  if (candidates.epoch != epoch_) {
    gather(rows, pool, candidates.rows);
    if (spreading) rank(candidates.rows, false, candidates.ranked);
    candidates.epoch = epoch_;
  }
  return spreading ? emptiest_candidate(candidates.ranked, false) : draw_candidate(candidates.rows);
}

// The open ones.
void Placer::gather(const LevelRows& rows, const Pool& pool, std::vector<int32_t>& out) {
  work_.looked_at += static_cast<int64_t>(rows.members.size());
  out.resize(rows.members.size());
  size_t opened = 0;
  for (const int32_t row : rows.members) {  // open rows come in no order: no branch
    out[opened] = row;
    opened += open(row);
  }
  out.resize(opened);
  for (const Catalog::RowRange& range : rows.racks) {
    const int64_t end = std::min<int64_t>(range.end, pool.end);
    int32_t row = view_.index().next_open(std::max<int64_t>(range.first, pool.first), end);
    for (; row != kNone; row = view_.index().next_open(row + 1, end)) {
      out.push_back(row);
      ++work_.looked_at;
    }
  }
}

// Uniform among the candidates that fit. Those that do not leave the list.
int32_t Placer::draw_candidate(std::vector<int32_t>& rows) {
  while (!rows.empty()) {
    const size_t at = stream_.below(rows.size());
    const int32_t row = rows[at];
    ++work_.looked_at;
    if (open(row)) {
      if (fits(row)) return row;
      exclude(row);
    }
    rows[at] = rows.back();
    rows.pop_back();
  }
  return kNone;
}

void Placer::rank(const std::vector<int32_t>& rows, bool priced, RankedRows& out) {
  out.clear();
  for (const int32_t row : rows) out.add(ranked(row, priced));
  out.build(salt_of_ties());
  work_.ranked += static_cast<int64_t>(rows.size());
}

// Between the epochs of a plan rows only lose room: a row that has lost some is ranked again when
// it comes first.
int32_t Placer::emptiest_candidate(RankedRows& rows, bool priced) {
  while (!rows.empty()) {
    const RankedRow first = rows.first();
    ++work_.looked_at;
    const bool opened = open(first.row);
    const RankedRow now = opened ? ranked(first.row, priced) : first;
    const bool current = now.same_place(first);
    if (opened && current && fits(first.row)) return first.row;
    rows.pop();
    ++work_.ranked;
    if (opened && !current) {
      rows.push(now);
      ++work_.ranked;
    }
    if (opened && current) exclude(first.row);
  }
  return kNone;
}

// --- tasks that wait ---

int64_t may_be_placed(const ClusterView& view, const Catalog& catalog, const WaitingTasks& tasks,
                      bool* may) {
  const size_t dimensions = view.static_state().dimensions();
  if (catalog.machines() != view.static_state().machines())
    throw std::invalid_argument("the catalog is of another cell than the view");
  struct Known {
    const int64_t* fits = nullptr;     // a request that some listed machine has room for
    const int64_t* refused = nullptr;  // one that none has
  };
  std::unordered_map<int32_t, Known> by_set;
  const auto at_most = [&](const int64_t* one, const int64_t* other) {
    for (size_t r = 0; r < dimensions; ++r)
      if (one[r] > other[r]) return false;
    return true;
  };
  int64_t looked_at = 0;
  const bool room = view.index().count() > 0;
  for (size_t i = 0; i < tasks.count; ++i) {
    may[i] = room;
    if (!room || !tasks.waits[i]) continue;
    const int32_t set = tasks.preference[i];
    if (set < 0 || static_cast<size_t>(set) >= catalog.sets())
      throw std::invalid_argument("preference[" + std::to_string(i) + "]: there is no set " +
                                  std::to_string(set));
    const int64_t* request = tasks.request + i * dimensions;
    Known& known = by_set[set];
    if (known.refused != nullptr && at_most(known.refused, request)) {
      may[i] = false;
      continue;
    }
    if (known.fits != nullptr && at_most(request, known.fits)) continue;
    const auto listed = catalog.listed_machines(set);
    const auto found = std::find_if(listed.begin(), listed.end(), [&](int32_t row) {
      return view.index().contains(row) && view.fits(row, request);
    });
    looked_at += found - listed.begin() + (found != listed.end() ? 1 : 0);
    may[i] = found != listed.end();
    (may[i] ? known.fits : known.refused) = request;
  }
  return looked_at;
}

namespace {

constexpr int8_t kNoRoom = 0, kTooLarge = 1;  // schedulers.interface.PendingReason

}  // namespace

void OfferedTasks::read(const PlacingColumns& table, std::span<const int64_t> task) {
  const size_t width = table.dimensions;
  request.resize(task.size() * width);
  preference.resize(task.size());
  gang.resize(task.size());
  for (size_t i = 0; i < task.size(); ++i) {
    const int64_t id = task[i];
    if (id < 0 || static_cast<size_t>(id) >= table.tasks)
      throw std::invalid_argument("task[" + std::to_string(i) + "]: there is no such task");
    const int64_t* row = table.request + id * table.request_row_stride;
    for (size_t r = 0; r < width; ++r)
      request[i * width + r] = row[static_cast<int64_t>(r) * table.request_stride];
    preference[i] = table.preference[id * table.preference_stride];
    gang[i] = table.gang[id * table.gang_stride];
  }
}

ClaimedPlan TaskPlanner::plan_and_claim(ClusterView& view, std::span<const int64_t> task,
                                        const PlanContext& context,
                                        std::span<const uint8_t> never) {
  if (table_.dimensions != view.static_state().dimensions())
    throw std::invalid_argument("the tasks are of another cell than the view");
  if (!never.empty() && never.size() != task.size())
    throw std::invalid_argument("never: expected one per task, or none");
  ClaimedPlan plan;
  std::span<const int64_t> offered = task;
  if (!never.empty()) {
    offered_.clear();
    for (size_t i = 0; i < task.size(); ++i)
      if (!never[i]) offered_.push_back(task[i]);
    offered = offered_;
  }
  // A scheduler is not called if there is nothing left to offer to it.
  if (never.empty() || !offered.empty()) place_offered(view, offered, context, plan);
  for (size_t i = 0; i < never.size(); ++i) {
    if (!never[i]) continue;
    plan.pending.push_back(task[i]);
    plan.pending_reason.push_back(kTooLarge);
    ++plan.too_large;
  }
  if (plan.task.size() + plan.pending.size() != task.size())
    throw std::logic_error("the plan does not name every task once");
  plan.ticket = view.claim(plan.machine, plan.request.data());
  return plan;
}

void TaskPlanner::place_offered(ClusterView& view, std::span<const int64_t> task,
                                const PlanContext& context, ClaimedPlan& plan) {
  const size_t count = task.size(), width = table_.dimensions;
  tasks_.read(table_, task);
  found_.resize(count);
  const Work work = find(view, task, tasks_, context, found_);

  const auto placed = static_cast<size_t>(
      std::count_if(found_.begin(), found_.end(), [](int32_t row) { return row >= 0; }));
  plan.task.reserve(placed);
  plan.machine.reserve(placed);
  plan.request.reserve(placed * width);
  plan.gang.reserve(placed);
  plan.synced_us.reserve(placed);
  for (size_t i = 0; i < count; ++i) {
    if (found_[i] < 0) {
      plan.pending.push_back(task[i]);
      continue;
    }
    const int64_t* request = tasks_.request.data() + i * width;
    plan.task.push_back(task[i]);
    plan.machine.push_back(found_[i]);
    plan.request.insert(plan.request.end(), request, request + width);
    plan.gang.push_back(tasks_.gang[i]);
    plan.synced_us.push_back(view.synced_us()[view.static_state().index.partition_of(found_[i])]);
  }
  plan.pending_reason.assign(plan.pending.size(), kNoRoom);
  if (view.first_oversubscribed(plan.machine, plan.request.data(), {}, nullptr) >= 0)
    throw std::logic_error("the kernel placed more than the view has room for");

  plan.counted_work = work.counted;
  Int128 work_ps = 0;
  for (size_t i = 0; i < weights_ps_.size(); ++i)
    work_ps += Int128{weights_ps_[i]} * plan.counted_work[i];
  plan.operations = static_cast<int64_t>(work_ps / kPsPerOperation);
  plan.partitions_scanned = work.partitions_scanned;
}

TaskPlanner::Work GreedyPlanner::find(ClusterView& view, std::span<const int64_t> task,
                                      const OfferedTasks& columns, const PlanContext& context,
                                      std::span<int32_t> machine) {
  PlaceRequest input{task.size(),  columns.request.data(),  columns.preference,
                     columns.gang, context.partition_order, context.ranking,
                     kind_,        context.stream,          preferred_first_};
  input.prices = context.prices;
  input.quality = context.quality;
  const PlaceWork work = place(view, catalog_, input, machine.data());
  const auto tasks = static_cast<int64_t>(task.size());
  return {{1, preferred_first_ ? work.searches : tasks, work.looked_at, work.ranked},
          work.partitions_scanned};
}

}  // namespace agora
