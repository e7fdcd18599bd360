#include <algorithm>
#include <stdexcept>
#include <string>

#include "placer.hpp"

namespace agora {

namespace {

constexpr int64_t kMaxRequest = int64_t{1} << 50;
constexpr int32_t kUnplaced = -1;

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
    if (in.prices->machines() != view.static_state().machines() ||
        in.prices->dimensions() != dimensions)
      throw std::invalid_argument("the prices are of another cell than the view");
  }
  std::vector<bool> seen(view.static_state().partitions());
  for (const int32_t p : in.partition_order)
    if (p >= 0 && static_cast<size_t>(p) < seen.size()) seen[static_cast<size_t>(p)] = true;
  if (in.partition_order.size() != seen.size() ||
      !std::all_of(seen.begin(), seen.end(), [](bool s) { return s; }))
    throw std::invalid_argument("partition_order: expected every partition once");
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

}  // namespace agora
