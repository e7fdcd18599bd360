// Parts of the agent of the protocol of offers: what it has been offered, and how much of its queue
// a decision was about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "offers_events.hpp"
#include "shared_state/native/view.hpp"

namespace agora::offers {

// The offers of one agent that are without an answer, n of them, and a view that shows their room:
// other machines look full.
//
// A round that begins is about all offers on hand. What comes meanwhile is for the next one.
class OfferedRoom {
 public:
  // view: borrowed. Nobody else may bring it up to date.
  explicit OfferedRoom(ClusterView& view);

  size_t size() const { return offer_.size(); }
  size_t width() const { return width_; }
  size_t machines() const { return made_us_.size(); }
  // By offer.
  const std::vector<int64_t>& offer() const { return offer_; }
  const std::vector<int32_t>& machine() const { return machine_; }
  const std::vector<int64_t>& amount() const { return amount_; }  // [n, R]
  // Which the round under way is about, and which of those have ended meanwhile.
  const std::vector<uint8_t>& in_round() const { return in_round_; }
  const std::vector<uint8_t>& rescinded() const { return rescinded_; }
  // When the machine's last offer was made. Throws std::invalid_argument if there is no machine.
  int64_t made_us(int32_t machine) const { return made_us_[row_of(machine)]; }
  // How many partitions they are in.
  size_t partitions() const;

  // Shows that there is no room, in a view that shows nothing yet.
  void start(int64_t now_us);
  // Throws std::invalid_argument if columns do not fit together, or there is no such machine.
  void add(int64_t now_us, const Offers& event);
  void begin_round();
  // Which offers of the round are on some of these machines.
  std::vector<uint8_t> on_machines_of(std::span<const int32_t> machine) const;
  // The allocator has ended offers. Those of the round under way stay until end_round(), because
  // its claims rest on them, but show no room: that may be offered again.
  void rescind(int64_t now_us, std::span<const int64_t> offer);
  // The round is decided, and all its offers end but those that are kept and not rescinded.
  // kept: by offer; empty: none.
  void end_round(int64_t now_us, std::span<const bool> kept);
  // Forgets all offers while no round is under way. Returns their ids.
  std::vector<int64_t> remove_all(int64_t now_us);

 private:
  size_t row_of(int32_t machine) const;
  void subtract(size_t at);
  template <class Goes>
  void remove(int64_t now_us, const Goes& goes);
  void mark(int32_t machine) {
    const auto row = static_cast<size_t>(machine);
    marked_[row / 64] |= uint64_t{1} << (row % 64);
  }
  void show_marked(int64_t now_us);

  ClusterView& view_;
  size_t width_;
  std::vector<int64_t> made_us_;     // [M]
  std::vector<int64_t> of_machine_;  // [M, R]: what offers hold there
  std::vector<int64_t> offer_, amount_;
  std::vector<int32_t> machine_;
  std::vector<uint8_t> in_round_, rescinded_;
  int64_t version_ = 0;  // of the view

  // scratch: a bit for each machine whose room has changed, and a partition's rows to be shown
  std::vector<uint64_t> marked_;
  std::vector<uint32_t> row_;
  std::vector<int64_t> used_;
};

// The tasks that a decision looked at: those offered to the scheduler, up to the last one that it
// placed; at least one, if any was offered.
struct LookedAt {
  int64_t tasks = 0, jobs = 0;
  int64_t service_tasks = 0;
  int64_t service_jobs = 0, batch_jobs = 0;  // with tasks of the class among them
};

// job, task_class: of every task. Throws std::invalid_argument if there is no such task.
LookedAt looked_at(std::span<const int64_t> offered, std::span<const int64_t> placed,
                   std::span<const int64_t> job, std::span<const int8_t> task_class);

}  // namespace agora::offers
