#include "may_be_placed.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace agora {

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

}  // namespace agora
