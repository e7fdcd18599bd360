// The allocator of offers: shares compared exactly whatever their size, and on random histories
// what a run may never do. tests/properties/test_offer_allocator_oracle.py compares whole runs.
#include "parsync/protocols/native/offer_allocator.hpp"

#include <limits>
#include <map>
#include <set>
#include <utility>

#include "check.hpp"

using namespace agora;

namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

void test_shares_are_compared_exactly() {
  // 1 / 3 and the largest fraction below it that has terms of 63 bits
  CHECK(is_smaller_share(kLargest / 3, kLargest, 1, 1, 3, 1) == (kLargest % 3 != 0));
  CHECK(is_smaller_share(kLargest - 1, kLargest, kLargest, 1, kLargest, 1));
  CHECK(!is_smaller_share(1, kLargest, 1, kLargest - 1, kLargest, kLargest));
  CHECK(is_smaller_share(kLargest - 1, kLargest, kLargest, kLargest, kLargest, kLargest));
  CHECK(!is_smaller_share(kLargest, kLargest, kLargest, kLargest, kLargest, kLargest));
  Draws draw(3);
  for (uint64_t i = 0; i < tries(20'000); ++i) {
    int64_t of[6];
    for (int64_t& one : of) one = static_cast<int64_t>(draw(1 << 20)) + 1;
    CHECK(is_smaller_share(of[0], of[1], of[2], of[3], of[4], of[5]) ==
          (of[0] * of[4] * of[5] < of[3] * of[1] * of[2]));
  }
}

void test_a_share_of_nothing_does_not_count() {
  RoleTree tree(2, false);
  const int32_t poor = tree.add_leaf(tree.role("a"), "poor", 0);
  const int32_t rich = tree.add_leaf(tree.role("a"), "rich", 1);
  tree.set_total(std::vector<int64_t>{10, 0});
  tree.charge(poor, std::vector<int64_t>{0, 100}.data(), 1, 2);
  tree.charge(rich, std::vector<int64_t>{1, 0}.data(), 1, 1);
  tree.set_eligible(poor, true);
  tree.set_eligible(rich, true);
  tree.settle();
  CHECK(tree.share_ppm(poor) == 0 && tree.share_ppm(rich) == 100'000);
  std::vector<int32_t> order;
  Stream stream(1);
  tree.visit(stream, [&](int32_t framework) {
    order.push_back(framework);
    return true;
  });
  CHECK((order == std::vector<int32_t>{0, 1}));
}

// The order after charges, one after the other, is that of a tree whose nodes are sorted anew.
void test_charges_in_order() {
  Draws draw(5);
  for (uint64_t history = 0; history < tries(60); ++history) {
    RoleTree tree(2, false), sorted(2, false);
    const bool one_role = draw(2);
    std::vector<int32_t> leaves;
    const std::vector<int64_t> total{50, 1 + static_cast<int64_t>(draw(90))};
    for (RoleTree* one : {&tree, &sorted}) {
      leaves.clear();
      for (int32_t f = 0; f < 9; ++f) {
        const char* const role = f < 4 || one_role ? "a" : f < 7 ? "b/c" : "b";
        leaves.push_back(one->add_leaf(one->role(role), std::string(1, char('z' - f)), f));
      }
      one->set_total(total);
    }
    for (int step = 0; step < 100; ++step) {
      int32_t leaf = leaves[draw(leaves.size())];
      if (draw(4) == 0) {
        const bool eligible = draw(2);
        tree.set_eligible(leaf, eligible);
        sorted.set_eligible(leaf, eligible);
      }
      const std::vector<int64_t> amount{static_cast<int64_t>(draw(3)),
                                        static_cast<int64_t>(draw(3))};
      const int32_t group = tree.only_group();
      CHECK(group != RoleTree::kNone || !one_role);
      if (group != RoleTree::kNone && !tree.leaves(group).empty()) {
        const size_t place = draw(tree.leaves(group).size());
        leaf = tree.leaves(group)[place];
        tree.charge_leaf(group, place, amount.data());
        tree.charge(group, amount.data(), +1, 1);
      } else {
        tree.charge(leaf, amount.data(), +1, 1);
      }
      tree.settle();
      sorted.charge(leaf, amount.data(), +1, 1);
      sorted.set_total(total);
      std::vector<int32_t> orders[2];
      Stream stream(1);
      for (size_t i = 0; i < 2; ++i)
        (i == 0 ? tree : sorted).visit(stream, [&](int32_t framework) {
          orders[i].push_back(framework);
          return true;
        });
      CHECK(orders[0] == orders[1]);
      for (const int32_t node : leaves) CHECK(tree.share_ppm(node) == sorted.share_ppm(node));
      for (size_t r = 0; r < 2; ++r) CHECK(tree.charged(0)[r] == sorted.charged(0)[r]);
      CHECK(tree.charges(0) == sorted.charges(0));
    }
  }
}

OfferAllocator::Settings settings_of(Draws& draw, size_t machines) {
  OfferAllocator::Settings settings;
  settings.name = "offers";
  auto [capacity, values] = SharedTable<int64_t>::make(machines, 2);
  for (size_t i = 0; i < 2 * machines; ++i) values[i] = static_cast<int64_t>(draw(20));
  settings.capacity = std::move(capacity);
  if (draw(2)) settings.roles.push_back({"a", 2000, {8, 0}, {20, OfferAllocator::kNoLimit}});
  settings.smallest = {static_cast<int64_t>(draw(3)), 0};
  settings.random = draw(2);
  settings.task_sized = draw(2);
  settings.machines_per_turn = draw(2) ? 1 : machines;
  if (draw(2)) settings.rivals_role = "a/b";
  return settings;
}

// free: of all machines.
OfferAllocator::Offers allocate(OfferAllocator& allocator, int64_t now_us,
                                const std::vector<int32_t>& candidates,
                                const std::vector<int64_t>& free) {
  std::vector<int64_t> of_candidates;
  for (const int32_t one : candidates)
    for (size_t r = 0; r < allocator.width(); ++r)
      of_candidates.push_back(free[static_cast<size_t>(one) * allocator.width() + r]);
  return allocator.allocate(now_us, candidates, of_candidates.data(), free.data());
}

struct Offer {
  int32_t framework, machine;
  std::vector<int64_t> amount;
};

void test_no_run_offers_twice() {
  Draws draw(7);
  for (uint64_t history = 0; history < tries(60); ++history) {
    const size_t machines = 1 + draw(12), width = 2;
    const OfferAllocator::Settings settings = settings_of(draw, machines);
    OfferAllocator allocator(settings);
    for (int32_t f = 0; f < 4; ++f)
      allocator.add_framework(3 * f, std::string(1, static_cast<char>('k' + f)),
                              draw(2) ? "a" : "c");
    std::vector<int64_t> free(settings.capacity.data(),
                              settings.capacity.data() + machines * width);
    std::vector<Offer> open;
    const auto change = [&](const Offer& offer, int64_t sign) {
      for (size_t r = 0; r < width; ++r)
        free[static_cast<size_t>(offer.machine) * width + r] += sign * offer.amount[r];
    };
    for (int64_t now_us = 0; now_us < 60; ++now_us) {
      std::vector<int32_t> candidates;
      for (size_t m = 0; m < machines; ++m)
        if (draw(4)) candidates.push_back(static_cast<int32_t>(m));
      for (int32_t f = 0; f < 4; ++f) {
        allocator.want(
            3 * f,
            std::vector<int64_t>{2, static_cast<int64_t>(draw(4)), static_cast<int64_t>(draw(4)),
                                 1},
            std::vector<int64_t>{static_cast<int64_t>(draw(4)), static_cast<int64_t>(draw(3))});
        if (draw(6) == 0) allocator.suppress(3 * f);
        if (draw(3) == 0) allocator.revive(3 * f);
      }
      const OfferAllocator::Offers made = allocate(allocator, now_us, candidates, free);
      std::set<std::pair<int32_t, int32_t>> pairs;
      for (size_t i = 0; i < made.framework.size(); ++i) {
        const int64_t* const amount = made.amount.data() + i * width;
        open.push_back({made.framework[i], made.machine[i], {amount, amount + width}});
        CHECK(pairs.emplace(made.framework[i], made.machine[i]).second);
        CHECK(amount[0] + amount[1] > 0);
        change(open.back(), -1);
      }
      for (const int64_t of : free) CHECK(of >= 0);
      while (!open.empty() && draw(3)) {
        const Offer ended = open[draw(open.size())];
        std::erase_if(open, [&](const Offer& one) {
          if (one.framework != ended.framework) return false;
          change(one, +1);
          allocator.on_offers_ended({&one.framework, 1}, one.amount.data());
          allocator.refuse(one.framework, {&one.machine, 1}, one.amount.data(),
                           now_us + static_cast<int64_t>(draw(9)));
          return true;
        });
      }
      std::map<int32_t, std::vector<int64_t>> offered;
      for (const Offer& one : open) {
        std::vector<int64_t>& sum = offered.try_emplace(one.framework, width).first->second;
        for (size_t r = 0; r < width; ++r) sum[r] += one.amount[r];
      }
      for (int32_t f = 0; f < 12; f += 3)
        CHECK(allocator.offered(f) == offered.try_emplace(f, width).first->second);
      if (draw(10) == 0) {
        const auto machine = static_cast<int32_t>(draw(machines));
        const bool up = draw(3);
        allocator.on_machines_changed({&machine, 1}, {&up, 1});
      }
      if (draw(10) == 0) allocator.set_rivals_use(std::vector<int64_t>{int64_t(draw(9)), 1});
    }
    const std::vector<int64_t> one{0, 1000};
    const int32_t framework = 3;
    check_refused([&] { allocator.on_offers_ended({&framework, 1}, one.data()); });
    check_refused([&] { allocator.on_freed({&framework, 1}, one.data()); });
    for (int32_t f = 0; f < 12; f += 3) allocator.deactivate(f);
    CHECK(allocator.filters() == 0);
  }
}

}  // namespace

int main() {
  test_shares_are_compared_exactly();
  test_a_share_of_nothing_does_not_count();
  test_charges_in_order();
  test_no_run_offers_twice();
  return EXIT_SUCCESS;
}
