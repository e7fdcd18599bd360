// Why claims conflict, by hand: each cause, both beside each other, and what a view could have
// shown; and the best scores that so many slots can have.
#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "parsync/model/native/best_scores.hpp"
#include "parsync/model/native/cell_master.hpp"

using namespace agora::slots;

namespace {

SlotSettings cell(int64_t slots, double variance) {
  SlotSettings settings;
  settings.slots = slots;
  settings.partitions = 2;
  settings.score_variance = variance;
  settings.seed = 3;
  return settings;
}

std::vector<Pick> all_slots(const SlotTable& table) {
  std::vector<Pick> all;
  for (uint32_t group = 0; group < table.groups(); ++group)
    for (uint32_t slot = table.start[group]; slot < table.start[group + 1]; ++slot)
      all.push_back({slot, group});
  return all;
}

struct Cell {
  explicit Cell(double variance) : table(cell(400, variance)), master(table, 0) {}

  std::vector<uint8_t> decided(const std::vector<Pick>& claims) const {
    std::vector<uint8_t> in_use;
    master.note_in_use(claims, in_use);
    return in_use;
  }
  ConflictCauses commit(int64_t now_ns, const std::vector<Pick>& claims,
                        const std::vector<uint8_t>& in_use) {
    return master.grant(now_ns, claims, in_use).causes;
  }

  SlotTable table;
  CellMaster master;
};

void expect(const ConflictCauses& found, int64_t same_tick, int64_t quality, int64_t stale,
            int64_t visible) {
  CHECK(found.same_tick == same_tick);
  CHECK(found.quality == quality);
  CHECK(found.stale == stale);
  CHECK(found.visible == visible);
}

// The rule itself, slot by slot.
void preferred_slots_weigh_more_than_the_mean() {
  for (const double variance : {0.0, 0.5, 2.0, 50.0}) {
    const SlotTable table(cell(4000, variance));
    int64_t all = 0;
    for (const Pick pick : all_slots(table)) all += table.weight(pick.slot, pick.group);
    int64_t preferred = 0;
    for (const Pick pick : all_slots(table)) {
      const bool above = table.weight(pick.slot, pick.group) * 4000 > all;
      CHECK(table.is_preferred(pick.slot, pick.group) == above);
      preferred += above;
    }
    CHECK((preferred == 0) == (variance == 0.0));
    CHECK(preferred < 2000);
  }
}

void slots_taken_at_the_same_time_come_first() {
  Cell of(2.0);
  const std::vector<Pick> claims = all_slots(of.table);
  const std::vector<uint8_t> idle = of.decided(claims);
  expect(of.commit(50, claims, idle), 0, 0, 0, 0);
  expect(of.commit(50, claims, idle), 400, 0, 0, 0);
  // a third of that time: still the first one's slots
  expect(of.commit(50, claims, idle), 400, 0, 0, 0);
  // one nanosecond later, preferred ones count
  const int64_t preferred = std::count_if(claims.begin(), claims.end(), [&](Pick pick) {
    return of.table.is_preferred(pick.slot, pick.group);
  });
  CHECK(preferred > 0 && preferred < 200);
  expect(of.commit(51, claims, idle), 0, preferred, 400 - preferred, 0);
}

void a_time_forgets_the_one_before() {
  Cell of(0.0);
  const std::vector<Pick> all = all_slots(of.table);
  const std::vector<Pick> first(all.begin(), all.begin() + 10),
      next(all.begin() + 10, all.begin() + 20);
  const std::vector<Pick> both(all.begin(), all.begin() + 20);
  const std::vector<uint8_t> idle = of.decided(both);
  of.commit(1, first, idle);
  expect(of.commit(1, first, idle), 10, 0, 0, 0);
  of.commit(2, next, idle);
  expect(of.commit(2, both, idle), 10, 0, 10, 0);
  expect(of.commit(3, both, idle), 0, 0, 20, 0);
}

void slots_in_use_at_the_decision_are_visible() {
  Cell of(0.0);
  const std::vector<Pick> all = all_slots(of.table);
  const std::vector<Pick> taken(all.begin(), all.begin() + 30);
  const std::vector<Pick> later(all.begin() + 30, all.begin() + 50);
  of.commit(1, taken, of.decided(taken));
  const std::vector<Pick> claims(all.begin() + 20, all.begin() + 60);
  const std::vector<uint8_t> in_use = of.decided(claims);  // ten of them
  of.commit(2, later, of.decided(later));
  // 10 taken before the decision, 20 after it, 10 idle
  expect(of.commit(3, claims, in_use), 0, 0, 30, 10);
}

void slots_that_are_free_again_are_no_conflicts() {
  Cell of(0.0);
  const std::vector<Pick> all = all_slots(of.table);
  of.commit(1, all, of.decided(all));
  const std::vector<uint8_t> in_use = of.decided(all);
  of.master.free(all);
  expect(of.commit(2, all, in_use), 0, 0, 0, 0);
}

void the_best_scores_are_the_highest_ones() {
  const SlotTable table(cell(1000, 2.0));
  std::vector<int64_t> scores;
  for (const SlotValue& value : table.value) scores.push_back(value.score);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  BestScores best(table);
  for (const int64_t slots : {0, 1, 2, 700, 650, 1000, 3, 0})
    CHECK(best.sum(slots) == std::accumulate(scores.begin(), scores.begin() + slots, int64_t{0}));
}

}  // namespace

int main() {
  preferred_slots_weigh_more_than_the_mean();
  slots_taken_at_the_same_time_come_first();
  a_time_forgets_the_one_before();
  slots_in_use_at_the_decision_are_visible();
  slots_that_are_free_again_are_no_conflicts();
  the_best_scores_are_the_highest_ones();
}
