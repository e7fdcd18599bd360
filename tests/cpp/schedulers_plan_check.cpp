// What plans are checked against: the tasks that wait, against sets in a few lines, and claims that
// differ from their tasks.
#include <algorithm>
#include <set>
#include <vector>

#include "check.hpp"
#include "schedulers/native/contract.hpp"

using namespace agora;

namespace {

using Ids = std::vector<int64_t>;
constexpr int64_t kTasks = 8;
const Ids kGang{-1, 7, 7, -1, 2, 7, 2, -1};

Ids some(Draws& draw, uint64_t most) {
  Ids task;
  for (uint64_t n = draw(most + 1); n > 0; --n) task.push_back(static_cast<int64_t>(draw(kTasks)));
  return task;
}

Ids distinct(Draws& draw) {
  const Ids drawn = some(draw, 4);
  const std::set<int64_t> once(drawn.begin(), drawn.end());
  return {once.begin(), once.end()};
}

// A scheduler's rounds, of which some plans break a rule, and what it is told in between.
void waiting_tasks_are_those_offered_or_rejected_and_not_claimed(Draws& draw) {
  PendingTasks tasks(kTasks, kGang);
  std::set<int64_t> waiting;
  for (int step = 0; step < 12; ++step) {
    const Ids told = some(draw, 3);
    switch (draw(4)) {
      case 0:
        tasks.rejected(told);
        waiting.insert(told.begin(), told.end());
        break;
      case 1:
        tasks.adopted(told);
        for (const int64_t task : told) waiting.erase(task);
        break;
      default: {
        const Ids offered = distinct(draw);
        waiting.insert(offered.begin(), offered.end());
        Ids claimed, pending;  // most plans keep the rules
        for (const int64_t task : offered) (draw(2) ? claimed : pending).push_back(task);
        for (const int64_t task : waiting)
          if (std::count(offered.begin(), offered.end(), task) == 0 && draw(3) == 0)
            claimed.push_back(task);
        if (draw(3) == 0) claimed.push_back(static_cast<int64_t>(draw(kTasks)));
        if (draw(3) == 0) pending.push_back(static_cast<int64_t>(draw(kTasks)));
        if (draw(4) == 0 && !pending.empty()) pending.pop_back();

        Ids named = claimed;
        named.insert(named.end(), pending.begin(), pending.end());
        const std::set<int64_t> once(named.begin(), named.end());
        const auto in = [](const auto& all, int64_t task) {
          return std::find(all.begin(), all.end(), task) != all.end();
        };
        const bool keeps_rules = once.size() == named.size() &&
                                 std::all_of(claimed.begin(), claimed.end(),
                                             [&](int64_t task) { return in(waiting, task); }) &&
                                 std::all_of(pending.begin(), pending.end(),
                                             [&](int64_t task) { return in(offered, task); }) &&
                                 std::all_of(offered.begin(), offered.end(),
                                             [&](int64_t task) { return in(once, task); });
        CHECK(tasks.take_round(offered, claimed, pending) == keeps_rules);
        if (keeps_rules)
          for (const int64_t task : claimed) waiting.erase(task);
      }
    }
    CHECK(tasks.count() == waiting.size());
    CHECK((tasks.all() == Ids(waiting.begin(), waiting.end())));
    const Ids gangs{7, 2, 3};
    Ids expected(gangs.size());
    for (const int64_t task : waiting)
      for (size_t g = 0; g < gangs.size(); ++g)
        expected[g] += kGang[static_cast<size_t>(task)] == gangs[g] ? 1 : 0;
    CHECK(tasks.in_gang(gangs) == expected);
  }
}

void claims_ask_for_what_their_tasks_do() {
  const Ids request{1, 2, 3, 4, 5, 6}, gang{-1, 5, -1};
  const auto first = [&](const Ids& task, const Ids& asked, const Ids& of) {
    return first_differing_claim(task, asked, of, request, gang, 2);
  };
  CHECK(first({2, 0}, {5, 6, 1, 2}, {-1, -1}).place == -1);
  CHECK(first({}, {}, {}).place == -1);
  const DifferingClaim amount = first({1, 2}, {3, 4, 5, 7}, {-1, -1});
  CHECK(amount.place == 1 && amount.request);  // before the gang of the first
  const DifferingClaim of_gang = first({1, 2}, {3, 4, 5, 6}, {5, 5});
  CHECK(of_gang.place == 1 && !of_gang.request);
  check_refused([&] { first({3}, {1, 2}, {-1}); });
}

}  // namespace

int main() {
  Draws draw(5);
  for (int i = 0; i < 3000; ++i) waiting_tasks_are_those_offered_or_rejected_and_not_claimed(draw);
  claims_ask_for_what_their_tasks_do();
  PendingTasks plain(2, {});
  CHECK(plain.take_round(Ids{1, 0}, Ids{0}, Ids{1}) && plain.all() == Ids{1});
  check_refused([&] { plain.rejected(Ids{2}); });
  check_refused([&] { plain.take_round(Ids{-1}, Ids{}, Ids{}); });
  check_refused([] { PendingTasks(3, Ids{0}); });
  return 0;
}
