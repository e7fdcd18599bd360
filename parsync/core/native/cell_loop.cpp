#include "cell_loop.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "event.hpp"
#include "bound_event.hpp"
#include "effect_interpreter.hpp"
#include "events.hpp"

namespace nb = nanobind;

namespace agora {

// As effect_interpreter.hpp wants it.
struct CellLoop::Runtime {
  CellLoop& loop;

  bool has(int64_t address) const {
    return loop.participants_.contains(address) || loop.addresses_.contains(address);
  }
  void send(int64_t, int64_t to, EventPtr event, int64_t sender) {
    loop.send(to, std::move(event), sender);
  }
  void set_timer(int64_t, int64_t at_us, EventPtr event, int64_t sender) {
    loop.set_timer(at_us, std::move(event), sender);
  }
  bool carries_out(int64_t, int64_t, const Effect&, BoundParticipant&) { return false; }
};

namespace {

// Shows the calls of a step to what is called meanwhile.
class Shown {
 public:
  Shown(const CellLoop::Calls*& shown, const CellLoop::Calls& calls) : shown_(shown) {
    shown_ = &calls;
  }
  ~Shown() { shown_ = nullptr; }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

 private:
  const CellLoop::Calls*& shown_;
};

}  // namespace

CellLoop::CellLoop(const nb::dict& participants, std::unordered_set<int64_t> addresses)
    : addresses_(std::move(addresses)) {
  replace(participants);
}

void CellLoop::replace(const nb::dict& participants) {
  for (const auto& [address, participant] : participants)
    participants_.insert_or_assign(nb::cast<int64_t>(address),
                                   Handler{native_of(participant), nb::borrow(participant)});
}

void CellLoop::start(const EventPtr& event, int64_t at_us, const Calls& calls) {
  const Shown shown(calls_, calls);
  now_us_ = std::max(now_us_, at_us);
  timers_.clear();
  std::vector<int64_t> addresses;
  for (const auto& [address, handler] : participants_) addresses.push_back(address);
  std::sort(addresses.begin(), addresses.end());
  for (const int64_t address : addresses) inbox_.emplace_back(address, event);
  handle_inbox(calls);
}

void CellLoop::run(int64_t at_us, nb::handle messages, const Calls& calls) {
  const Shown shown(calls_, calls);
  now_us_ = std::max(now_us_, at_us);
  while (!timers_.empty() && timers_.next_us() <= now_us_) {
    EventHeap::Entry timer = timers_.pop();
    inbox_.emplace_back(timer.address, std::move(timer.event));
    handle_inbox(calls);
  }
  for (const nb::handle message : nb::iter(messages)) {
    const nb::object address = message[0], event = message[1];
    const auto to = nb::cast<int64_t>(address);
    if (participants_.contains(to)) {
      inbox_.emplace_back(to, event_from(event));
      handle_inbox(calls);
    } else {
      call(addresses_.contains(to) ? calls.outgoing : calls.unknown, address, event);
    }
  }
}

void CellLoop::send(int64_t to, EventPtr event, int64_t sender) {
  if (!calls_) throw std::logic_error("send: no participant is handling an event");
  const Calls& calls = *calls_;
  const EventPtr sent = event;
  if (participants_.contains(to)) {
    if (calls.digest) calls.digest->add(to, *event);
    inbox_.emplace_back(to, std::move(event));
  } else {
    call(calls.outgoing, number(to), face_of(event));
  }
  const uint64_t key = sent->key();
  if (sender == kMaster && !calls.on_placed.is_none() &&
      (key == TasksStarted::kType.key() || key == TasksEnded::kType.key()))
    call(calls.on_placed, face_of(sent));
}

void CellLoop::set_timer(int64_t at_us, EventPtr event, int64_t address) {
  if (!calls_) throw std::logic_error("set_timer: no participant is handling an event");
  if (calls_->digest) calls_->digest->add(address, at_us, *event);
  timers_.push(at_us, address, std::move(event));
}

void CellLoop::handle_inbox(const Calls& calls) {
  while (!inbox_.empty()) {
    const auto [address, event] = std::move(inbox_.front());
    inbox_.pop_front();
    handle(address, event, calls);
  }
}

void CellLoop::handle(int64_t address, const EventPtr& event, const Calls& calls) {
  address_ = address;
  event_ = event;
  const Handler& handler = participants_.at(address);
  effects_.clear();
  if (handler.native) {
    handler.native->handle(now_us_, event, effects_);
    if (!calls.on_handled.is_none()) {
      handler.native->hand_out(effects_);
      call(calls.on_handled, number(address), face_of(event), handler.native->listed(effects_));
    }
    Runtime runtime{*this};
    carry_out(runtime, now_us_, address, *handler.native, effects_, calls.rest);
  } else {
    const nb::object time = number(now_us_), face = face_of(event);
    const nb::object effects = call(nb::getattr(handler.participant, "handle"), time, face);
    if (!effects.is_none() && !calls.on_handled.is_none())  // None is refused below
      call(calls.on_handled, number(address), face, effects);
    call(calls.rest, time, number(address), effects);
  }
  event_.reset();
}

}  // namespace agora
