// The wheel against a sorted multimap on a long random run, with entries far beyond one lap and
// with cancellations.
#include <cstdlib>
#include <map>
#include <set>

#include "check.hpp"
#include "parsync/core/native/worker_pool.hpp"

static Draws draw(12345);

int main() {
  const int64_t tick_us = 1000;
  agora::TimerWheel wheel(tick_us);
  std::map<std::pair<int64_t, int64_t>, int64_t> model;  // (end, order) -> id
  std::set<int64_t> cancelled;
  int64_t now = 0, next_id = 0;
  for (int round = 0; round < 3000; ++round) {
    for (uint64_t k = draw(30); k > 0; --k) {
      const int64_t end = now + static_cast<int64_t>(draw(draw(10) == 0 ? 60'000'000 : 200'000));
      wheel.add({end, next_id, next_id, 7, 0});
      model[{end, next_id}] = next_id;
      if (draw(20) == 0) {
        wheel.cancel(next_id);
        cancelled.insert(next_id);
      }
      ++next_id;
    }
    CHECK(wheel.size() == static_cast<int64_t>(model.size()));
    if (!model.empty()) {
      const int64_t first = model.begin()->first.first;
      const int64_t tick =
          std::max((first + tick_us - 1) / tick_us, now / tick_us + (round > 0)) * tick_us;
      CHECK(wheel.next_us() == tick);
    }
    now += static_cast<int64_t>(draw(round % 100 == 99 ? 30'000'000 : 20'000));
    const auto taken = wheel.take(now);
    size_t i = 0;
    while (!model.empty() &&
           (model.begin()->first.first + tick_us - 1) / tick_us <= now / tick_us) {
      const int64_t id = model.begin()->second;
      model.erase(model.begin());
      if (cancelled.erase(id)) continue;
      CHECK(i < taken.size() && taken[i].id == id && taken[i].owner == 7);
      ++i;
    }
    CHECK(i == taken.size());
  }
  return EXIT_SUCCESS;
}
