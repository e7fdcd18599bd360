// Decides what is offered to whom in a two-level scheduler: the hierarchical allocator of Mesos
// (Hindman et al., "Mesos", NSDI 2011; apache/mesos, src/master/allocator/mesos/hierarchical.cpp).
// It handles no events, reads no clock, and owns no resources: it says what to offer, and is told
// how each offer ended.
//
// One run, over candidate machines:
//   1. guarantees: shuffled machines; for each, roles below their guarantee get up to it
//   2. fair shares: shuffled anew; for each, the first framework in order that is active and
//      neither suppressed nor filtered gets all that is left, within the limit of its role, except
//      the headroom: what guarantees that are not met may still need
//
// What is offered is charged to the framework's share at once, before the next machine.
//
// Charges: allocate() -> offered; on_offers_ended() -> not offered any more; on_allocated() -> in
// use; on_freed() -> not in use any more. Invariant: none of these is below zero; a call that would
// make it so is refused, so nothing is un-charged twice unnoticed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "role_tree.hpp"
#include "shared_state/native/fields.hpp"

namespace agora {

// What one framework has refused, by machine. Whoever refuses a machine mostly ends the filter
// before anybody asks for it, so filters are only entered in the index by machine when one is asked
// for.
class OfferFilters {
 public:
  OfferFilters(size_t machines, size_t width) : machines_(machines), width_(width) {}

  size_t size() const { return machine_.size() - ended_; }
  // amount: [machine.size(), R].
  void add(std::span<const int32_t> machine, const int64_t* amount, int64_t until_us);
  void end_all();
  void end_of(int32_t machine);
  // Whether one hides this amount of the machine. Ends those whose time is over.
  bool hides(int32_t machine, const int64_t* amount, int64_t now_us) {
    if (machine_.empty()) return false;
    if (indexed_ < machine_.size()) index(now_us);
    const auto row = static_cast<size_t>(machine);
    return has_some(row) && any_hides(row, amount, now_us);
  }
  // Calls visit(machine, amount, until_us) for each, in the order in which they were added.
  template <class Visit>
  void each(const Visit& visit) const {
    for (size_t row = 0; row < machine_.size(); ++row)
      if (machine_[row] >= 0) visit(machine_[row], amount_.data() + row * width_, until_us_[row]);
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  void index(int64_t now_us);
  void clear_index() {
    std::ranges::fill(has_some_, 0);
    indexed_ = 0;
  }
  void drop_ended();
  bool has_some(size_t machine) const { return has_some_[machine / 64] >> (machine % 64) & 1; }
  void set_has_some(size_t machine, bool has) {
    uint64_t& word = has_some_[machine / 64];
    word = (word & ~(uint64_t{1} << (machine % 64))) | uint64_t{has} << (machine % 64);
  }
  void end(size_t row) {
    machine_[row] = -1;
    ++ended_;
  }
  bool any_hides(size_t machine, const int64_t* amount, int64_t now_us);

  size_t machines_, width_;
  std::vector<int32_t> machine_;  // by filter; -1: it has ended
  std::vector<int64_t> amount_;   // [filters, R]
  std::vector<int64_t> until_us_;
  std::vector<uint32_t> next_;      // of the same machine, or kNone
  std::vector<uint32_t> first_;     // by machine, if it has some; empty if none was ever asked for
  std::vector<uint64_t> has_some_;  // a bit for each machine, of which more stay in the cache
  size_t indexed_ = 0;              // the filters before this one are in the index, or have ended
  size_t ended_ = 0;
};

class OfferAllocator {
 public:
  static constexpr int64_t kNoLimit = -1;

  struct Role {
    std::string path;
    int64_t weight_permille = RoleTree::kWeightOne;
    std::vector<int64_t> guarantee;  // by resource, 0: none
    std::vector<int64_t> limit;      // by resource, or kNoLimit
  };

  struct Settings {
    uint64_t seed = 0;
    std::string name;               // of the random streams
    SharedTable<int64_t> capacity;  // [machines, R], what claims may fill each machine to
    std::vector<Role> roles;        // others have weight 1 and no quota
    std::vector<int64_t> smallest;  // by resource; an offer has so much of one of them. 0: ignored
    bool random = false;            // roles and frameworks are shuffled by weight
    bool task_sized = false;        // grants of one wanted task; else all that is left
    size_t machines_per_turn = 1;   // that one framework gets before shares are looked at again
    std::optional<std::string> rivals_role;  // none: what rivals use is no part of the total
  };

  struct Offers {
    std::vector<int32_t> framework, machine;  // no pair of them twice
    std::vector<int64_t> amount;              // [n, R]
  };

  // What a checkpoint keeps. Rows of frameworks are in the order in which they were added.
  struct State {
    int64_t runs = 0;
    std::vector<int64_t> rivals;
    std::vector<uint8_t> up;                  // by machine
    std::vector<int32_t> framework;           // of each row
    std::vector<uint8_t> active, suppressed;  // by row
    std::vector<int64_t> offers;              // by row: made so far
    std::vector<int64_t> offered, allocated;  // [rows, R]
    std::vector<int32_t> wanted_row;          // of each size of wanted tasks
    std::vector<int64_t> wanted;              // [sizes, R]: of one task
    std::vector<int64_t> wanted_tasks;        // [sizes]
    std::vector<int32_t> filter_row, filter_machine;
    std::vector<int64_t> filter_amount;  // [filters, R]
    std::vector<int64_t> filter_until_us;
  };

  // Throws std::invalid_argument that names the field.
  explicit OfferAllocator(Settings settings);

  // Frameworks. Numbers are chosen by the caller; std::invalid_argument for one that there is not.
  // A framework is active when it is added.
  void add_framework(int32_t framework, const std::string& name, const std::string& role);
  void activate(int32_t framework);
  // Ends its filters, its suppression and what it wanted. Its charges stay until they end.
  void deactivate(int32_t framework);
  void suppress(int32_t framework);
  // Ends its suppression and all of its filters.
  void revive(int32_t framework);
  // The next grants are for so many tasks [k] of these amounts [k, R], instead of what it wanted
  // before. The first of them that a machine has room for is granted first.
  void want(int32_t framework, std::span<const int64_t> amount, std::span<const int64_t> tasks);
  // Hides each machine from the framework until then, inclusive, wherever the offer would not
  // exceed the amount [k, R] in any resource.
  void refuse(int32_t framework, std::span<const int32_t> machine, const int64_t* amount,
              int64_t until_us);

  // Charges, rows of amounts [k, R].
  void on_offers_ended(std::span<const int32_t> framework, const int64_t* amount);
  void on_allocated(std::span<const int32_t> framework, const int64_t* amount);
  void on_freed(std::span<const int32_t> framework, const int64_t* amount);
  // What all others together use now, by resource.
  void set_rivals_use(std::span<const int64_t> amount);
  // Ends the filters of these machines. Machines that are down leave the total.
  void on_machines_changed(std::span<const int32_t> machine, std::span<const bool> up);

  // One run. What is free is neither in use nor held; negative amounts count as 0.
  // candidates: ascending, each once. free: [candidates, R]. all_free: [machines, R], only read if
  // any_guarantee(). Throws std::invalid_argument if there is no such machine.
  const Offers& allocate(int64_t now_us, std::span<const int32_t> candidates, const int64_t* free,
                         const int64_t* all_free);

  size_t width() const { return width_; }
  bool is_task_sized() const { return settings_.task_sized; }
  bool any_guarantee() const { return any_guarantee_; }
  size_t machines() const { return up_.size(); }
  size_t filters() const;
  // Of each framework, in the order in which they were added.
  std::vector<int32_t> framework_numbers() const;
  std::vector<int64_t> shares_ppm();
  const std::vector<int64_t>& offered(int32_t framework) const { return at(framework).offered; }
  const std::vector<int64_t>& allocated(int32_t framework) const { return at(framework).allocated; }

  State state() const;
  // Requires: the same settings and frameworks as those of the state, and no run so far.
  void restore(const State& state);

 private:
  enum class Stage { Guarantees, FairShares };

  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Wanted {                 // tasks of one size
    std::vector<int64_t> amount;  // [R], of one
    int64_t tasks = 0;
    size_t tried = 0;  // machines of this stage without room for one
  };
  struct Framework {
    Framework(int32_t its_number, size_t machines, size_t width)
        : number(its_number), offered(width), allocated(width), filters(machines, width) {}

    int32_t number;
    int32_t leaf = 0;
    size_t quota = 0;  // its row in quotas_
    bool active = true, suppressed = false;
    std::vector<Wanted> wanted;               // in the order in which they are granted
    std::vector<int64_t> offered, allocated;  // [R]
    OfferFilters filters;
  };
  struct Quota {
    int32_t role = 0;                       // a child of the root
    std::vector<int64_t> guarantee, limit;  // [R]
    bool is_guaranteed = false, is_limited = false;
  };

  const Framework& at(int32_t framework) const;
  Framework& at(int32_t framework);
  void update_eligible(Framework& framework);
  void charge(Framework& framework, std::vector<int64_t>& charged, const int64_t* amount,
              int64_t sign, const char* what);
  void charge_rows(std::span<const int32_t> framework, const int64_t* amount,
                   std::vector<int64_t> Framework::* charged, int64_t sign, const char* what);
  void settle();

  size_t machine_row(int64_t machine) const;
  void find_total();
  void find_offerable(std::span<const int32_t> candidates, const int64_t* free);
  void shuffle(Stage stage);
  Stream stream_of(uint64_t purpose) const;
  // Whether the amount, 0 or more, is no smaller than the smallest offer. Task-sized grants have no
  // such bound.
  bool is_offerable(const int64_t* amount) const {
    for (size_t r = 0; r < width_; ++r)
      if (has_smallest_ ? settings_.smallest[r] > 0 && amount[r] >= settings_.smallest[r]
                        : amount[r] > 0)
        return true;
    return false;
  }
  int64_t unmet(const Quota& quota, size_t resource) const;
  void find_headroom(const int64_t* free);
  // In these, a machine is named by its row in machine_.
  void run_stage(Stage stage, int64_t now_us, Stream& sorter);
  void serve_turn(Stage stage, int64_t now_us, std::span<const uint32_t> turn, Stream& sorter);
  void offer_in_group(int64_t now_us, int32_t group);
  void offer_turn(int64_t now_us, std::span<uint32_t> turn, Stream& sorter);
  void grant_tasks(Stage stage, int64_t now_us, Stream& sorter);
  const int64_t* allowed_of(Stage stage, const Framework& framework, uint32_t row);
  bool may_have_task(Stage stage, int64_t now_us, Framework& framework,
                     const std::vector<int64_t>& task, uint32_t row);
  void grant(Framework& framework, uint32_t row, const int64_t* amount);
  // All that the machine has left.
  void add_offer(const Framework& framework, uint32_t row) {
    offers_.framework.push_back(framework.number);
    offers_.machine.push_back(machine_[row]);
    for (size_t r = 0; r < width_; ++r) offers_.amount.push_back(left(row)[r]);
  }
  void add_to(std::vector<int64_t>& sum, const int64_t* amount) const {
    sum[0] += amount[0];  // there is mostly one: no loop to set up
    for (size_t r = 1; r < width_; ++r) sum[r] += amount[r];
  }
  // Asks for the memory that offering the machine reads.
  void prefetch(uint32_t row) const {
    __builtin_prefetch(&machine_[row]);
    __builtin_prefetch(&left_[row * width_]);
  }
  int64_t* left(uint32_t row) { return left_.data() + row * width_; }

  const Settings settings_;
  const size_t width_;
  RoleTree tree_;
  std::vector<Framework> frameworks_;
  std::vector<int32_t> row_of_;  // by number of framework, or -1
  std::vector<Quota> quotas_;    // the first is that of roles without one
  bool any_guarantee_ = false, has_smallest_ = false;
  std::vector<bool> up_;
  std::vector<int64_t> total_;  // by resource, of the machines that are up
  std::vector<int64_t> rivals_;
  int32_t rivals_leaf_ = RoleTree::kNone;
  bool total_changed_ = true;
  int64_t runs_ = 0;

  // of the run under way
  std::vector<int32_t> machine_;    // the candidates that are up and have something to offer
  std::vector<int64_t> left_;       // [machine_.size(), R], what they have left
  std::vector<uint32_t> order_;     // their rows, in the order of the stage
  std::vector<int64_t> available_;  // by resource, of all machines
  std::vector<int64_t> required_;   // by resource, for guarantees that are not met
  std::vector<int64_t> allowed_;    // by resource
  std::vector<int64_t> granted_;    // by resource, in a turn or a stage
  Offers offers_;
  std::vector<uint32_t> latest_;    // by row in machine_, its latest offer
  std::vector<uint32_t> previous_;  // by offer, that of the same machine
};

}  // namespace agora
