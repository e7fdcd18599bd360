// The allocator of the protocol of offers as a participant beside the master.
//
// What is offered is decided in offer_allocator.hpp. Here are the triggers of its runs, and the
// offers from when they are made to their end.
//
// An offer is made once the cell holds its room, or at once where offers do not hold room. It ends
// exactly once: accepted, declined, rescinded or expired. Then its room is free again, except what
// claims took.
//
// Triggers of an allocation run are, as in Mesos: a timer, for all machines; an agent that
// subscribes or revives, for all; a machine that comes up, for this one. Room that is freed or
// declined waits for one of these, unless an option says otherwise. At most one run is pending;
// further triggers add their machines to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "offer_allocator.hpp"
#include "offers_events.hpp"
#include "parsync/core/native/events.hpp"
#include "parsync/core/native/participant.hpp"
#include "parsync/metrics/native/measurements.hpp"
#include "shared_state/native/ascending_ids.hpp"
#include "shared_state/native/cell.hpp"

namespace agora::offers {

// The offers without an answer, in rows that ascend by id.
class OutstandingOffers {
 public:
  // Some of them, n.
  struct Rows {
    std::vector<int64_t> id;
    std::vector<int32_t> agent, machine;
    std::vector<int64_t> amount;  // [n, R]
    std::vector<int64_t> made_us;

    size_t size() const { return id.size(); }
    // The different agents, ascending.
    std::vector<int32_t> agents() const;
  };

  explicit OutstandingOffers(size_t width) : width_(width) {}

  size_t size() const { return size_; }
  // Adds offers with their ids. Requires: ids that ascend, above all before.
  void add(std::span<const int64_t> id, std::span<const int32_t> agent,
           std::span<const int32_t> machine, const int64_t* amount,
           std::span<const int64_t> made_us);
  // Ends those of some offers that have not ended: returns them, in the order of the ids. place:
  // gets which of the ids these are; may be null.
  Rows end(std::span<const int64_t> ids, std::vector<size_t>* place = nullptr);
  // Ends those that `ends(row)` says: returns them, in order.
  template <class Ends>
  Rows end_if(const Ends& ends) {
    std::vector<int64_t> ids;
    each([&](size_t row) {
      if (ends(row)) ids.push_back(id(row));
    });
    return end(ids);
  }

  // Calls visit(row) for each that has not ended, in order.
  template <class Visit>
  void each(const Visit& visit) const {
    for (size_t row = 0; row < ids_.size(); ++row)
      if (!ended_[row]) visit(row);
  }
  int64_t id(size_t row) const { return ids_[row]; }
  int32_t agent(size_t row) const { return agent_[row]; }
  int32_t machine(size_t row) const { return machine_[row]; }
  const int64_t* amount(size_t row) const { return amount_.data() + row * width_; }
  int64_t made_us(size_t row) const { return made_us_[row]; }

 private:
  void drop_ended();

  size_t width_;
  size_t size_ = 0;
  AscendingIds ids_;
  std::vector<int32_t> agent_, machine_;
  std::vector<int64_t> amount_, made_us_;
  std::vector<uint8_t> ended_;
};

class OffersCellSide final : public Participant {
 public:
  struct Settings {
    int64_t address = 0;  // its own
    int64_t sample_us = 0;
    int64_t interval_us = 0;
    int64_t allocation_us = 0;          // that a run takes
    std::optional<int64_t> timeout_us;  // after which offers expire
    bool locks = true;                  // offers hold their room
    bool freed_triggers = false;        // room that is freed or declined is offered at once
    SharedTable<int64_t> request;       // [tasks, R]
    std::vector<int64_t> refuse_us;     // by agent; 0: no filter
    SharedColumn<bool> is_own;          // by agent: it is of this protocol
  };

  // What a checkpoint keeps besides the allocator's state and the measurements. Offers that the
  // cell was asked to hold have no id.
  struct State {
    struct Offers {
      std::vector<int64_t> offer;
      std::vector<int32_t> agent, machine;
      std::vector<int64_t> amount;  // [n, R]
      std::vector<int64_t> made_us;
    };
    std::vector<int64_t> epoch;  // by agent
    Offers outstanding, asked;
    int64_t last_offer = 0, requests = 0;
    bool is_pending = false;
    int64_t runs = 0;
    int64_t counted_us = 0;
    std::vector<uint8_t> candidates;  // by machine
    std::vector<int64_t> rivals_use;
    bool rivals_changed = false;
    std::vector<int64_t> counts;  // [kCounts, agents]
  };
  static constexpr size_t kCounts = 7;

  // allocator, cell, records: borrowed. records: the table `offers`.
  OffersCellSide(Settings settings, OfferAllocator& allocator, const Cell& cell,
                 RowBuffer& records);

  void handle(int64_t now_us, const EventPtr& event, Effects& effects) override;
  // Adds a row of measurements per agent for the interval that ends.
  void record(int64_t now_us);

  size_t agents() const { return epoch_.size(); }
  size_t width() const { return allocator_.width(); }
  size_t machines() const { return cell_.machines(); }
  State state() const;
  // Requires: columns that fit together.
  void restore(const State& state);

 private:
  static constexpr int64_t kNever = -1;  // the epoch of an agent that has not subscribed
  // Room and time are multiplied; so the room of the whole cell is counted in about so many units.
  static constexpr int64_t kUnits = int64_t{1} << 26;
  // Rows of the counts: what became of offers since the last sample, by agent.
  enum Count : size_t { kMade, kAccepted, kDeclined, kRescinded, kExpired, kHeld, kUsed };
  static_assert(kUsed + 1 == kCounts);

  // Offers that are about to be made.
  struct NewOffers {
    SharedColumn<int32_t> agent, machine;
    SharedTable<int64_t> amount;
    int64_t made_us = 0;
    size_t size() const { return agent.size(); }
    NewOffers at(const std::vector<size_t>& rows) const {
      return {rows_of(agent, rows), rows_of(machine, rows), rows_of(amount, rows), made_us};
    }
  };

  void start(int64_t now_us, Effects& effects);
  void on_subscribed(int64_t now_us, const Subscribe& event, Effects& effects);
  void on_answered(int64_t now_us, const OffersAnswered& event, Effects& effects);
  void on_holds_ended(int64_t now_us, const HoldsEnded& event, Effects& effects);
  void on_machines_changed(int64_t now_us, const MachinesChanged& event, Effects& effects);
  void charge(const SharedColumn<int64_t>& task, const SharedColumn<int32_t>& owner, int64_t sign);
  // Whether the event is of the agent's last start.
  template <class T>
  bool is_current(const T& event) const {
    return event.epoch == epoch_[agent_row(event.agent)];
  }
  // Throws std::invalid_argument if there is no such agent.
  size_t agent_row(int64_t agent) const;

  void trigger(int64_t now_us, std::span<const int32_t> machine, Effects& effects);
  void trigger_all(int64_t now_us, Effects& effects);
  void add_all_candidates();
  void set_pending(int64_t now_us, Effects& effects);
  void allocate(int64_t now_us, Effects& effects);
  void on_held(int64_t now_us, const HoldReply& event, Effects& effects);
  void make(int64_t now_us, const NewOffers& made, std::span<const int64_t> ids, Effects& effects);

  using EndedOffers = OutstandingOffers::Rows;
  void account_for_ended(int64_t now_us, const EndedOffers& ended, Count how,
                         const std::vector<int64_t>* used = nullptr);
  void count_held(int64_t now_us, int32_t agent, int64_t amount, int64_t made_us);
  void refuse(int64_t now_us, const EndedOffers& ended, const std::vector<int64_t>& amount);
  void release(const EndedOffers& ended, Effects& effects);
  void tell(const EndedOffers& ended, Effects& effects);
  void expire(int64_t now_us, Effects& effects);
  int64_t next_expiry_us() const;
  void set_sample_timer(int64_t now_us, Effects& effects) const;
  int64_t next_interval_us(int64_t now_us) const {
    return (now_us / settings_.interval_us + 1) * settings_.interval_us;
  }
  // Of the first resource. Rooms are mostly counted as they are, and a division takes long.
  int64_t units(int64_t amount) const { return unit_ == 1 ? amount : amount / unit_; }
  int64_t& count(Count of, int32_t agent) {
    return counts_[of * epoch_.size() + static_cast<size_t>(agent)];
  }

  const Settings settings_;
  OfferAllocator& allocator_;
  const Cell& cell_;
  RowBuffer& records_;
  int64_t unit_ = 1, units_ = 1;

  std::vector<int64_t> epoch_;  // by agent
  OutstandingOffers offers_;
  NewOffers asked_;         // those whose room the cell is asked to hold
  int64_t last_offer_ = 0;  // the id of the last one that was only announced
  int64_t requests_ = 0;
  std::vector<uint64_t> candidates_;  // of the pending run: a bit for each machine
  bool is_pending_ = false;
  std::vector<int64_t> rivals_use_;
  bool rivals_changed_ = false;
  std::vector<int64_t> counts_;  // [kCounts, agents]
  // until when kHeld has been counted of the offers without an answer
  int64_t counted_us_ = 0;
  int64_t runs_ = 0;

  // scratch
  std::vector<int64_t> free_, all_free_, amount_, made_us_;
  std::vector<int32_t> owner_;
};

}  // namespace agora::offers
