#include "placer.hpp"

#include <algorithm>

namespace agora {

namespace {

// uniform draws for an empty row before all are ranked
constexpr int kTries = 8;

bool ranks(PlacementKind kind) {
  return kind == PlacementKind::BestFit || kind == PlacementKind::LoadSpreading;
}

}  // namespace

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

}  // namespace agora
