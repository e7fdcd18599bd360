#include "actor_loop.hpp"

#include <algorithm>
#include <iterator>

#include "bound_event.hpp"
#include "effect_interpreter.hpp"
#include "log_frames.hpp"

namespace nb = nanobind;

namespace agora {

namespace {

int64_t time_of(const ActorLoop::Calls& calls) { return nb::cast<int64_t>(call(calls.now_us)); }

}  // namespace

// As effect_interpreter.hpp wants it.
struct ActorLoop::Runtime {
  ActorLoop& loop;

  bool has(int64_t address) const { return loop.addresses_.contains(address); }
  void send(int64_t, int64_t to, EventPtr event, int64_t sender) {
    loop.send(to, std::move(event), sender);
  }
  void set_timer(int64_t, int64_t at_us, EventPtr event, int64_t sender) {
    loop.set_timer(at_us, std::move(event), sender);
  }
  bool carries_out(int64_t, int64_t, const Effect&, BoundParticipant&) { return false; }
};

ActorLoop::ActorLoop(const nb::dict& participants, std::unordered_set<int64_t> addresses,
                     int64_t lateness_us)
    : addresses_(std::move(addresses)), lateness_us_(lateness_us) {
  for (const auto& [key, participant] : participants) {
    const auto address = nb::cast<int64_t>(key);
    participants_.emplace(address, Handler{native_of(participant), nb::borrow(participant)});
    place_of_.emplace(address, outgoing_.size());
    outgoing_.emplace_back(address, std::vector<Message>{});
  }
}

void ActorLoop::deliver(int64_t address, EventPtr event) {
  inbox_.emplace_back(address, std::move(event));
}

void ActorLoop::send(int64_t to, EventPtr event, int64_t sender) {
  outgoing_[place_of_.at(sender)].second.emplace_back(to, std::move(event));
}

void ActorLoop::set_timer(int64_t at_us, EventPtr event, int64_t address) {
  if (event->priority() == Priority::Start && decision_start_us_) at_us = *decision_start_us_;
  timers_.push(at_us, address, std::move(event));
}

void ActorLoop::add_decision(int64_t due_us, int64_t address, EventPtr event, int64_t took_us,
                             int64_t over_us) {
  decisions_.push({due_us, ++decisions_made_, address, std::move(event), took_us, over_us});
}

void ActorLoop::advance(const Calls& calls) {
  while (true) {
    handle_messages(calls);
    const int64_t now_us = time_of(calls);
    const int64_t decided_us = decisions_.empty() ? now_us : decisions_.top().due_us;
    if (!timers_.empty() && timers_.next_us() <= std::min(decided_us, now_us)) {
      EventHeap::Entry timer = timers_.pop();
      if (timer.event->priority() == Priority::Start)  // of a round that follows a decision
        decision_start_us_ = std::max(timer.at_us, now_us - lateness_us_);
      handle(timer.address, std::move(timer.event), calls);
      decision_start_us_.reset();
    } else if (!decisions_.empty() && decided_us <= now_us) {
      const Decision decision = decisions_.top();
      decisions_.pop();
      decision_start_us_ = std::max(decision.due_us, now_us - lateness_us_);
      call(calls.on_decision, number(now_us - decision.over_us), number(decision.took_us));
      handle(decision.address, decision.event, calls);
      decision_start_us_.reset();
    } else {
      return;
    }
  }
}

void ActorLoop::handle_messages(const Calls& calls) {
  while (!inbox_.empty()) {
    Message message = std::move(inbox_.front());
    inbox_.pop_front();
    handle(message.first, std::move(message.second), calls);
  }
}

void ActorLoop::handle(int64_t address, EventPtr event, const Calls& calls) {
  const int64_t now_us = time_of(calls);
  address_ = address;
  event_ = std::move(event);
  const Handler& handler = participants_.at(address);
  effects_.clear();
  if (handler.native) {
    handler.native->handle(now_us, event_, effects_);
    handler.native->hand_out(effects_);
    if (calls.log && calls.log->append(address, now_us, *event_, effects_) >= kBufferBytes)
      call(calls.write_log);
    if (calls.waits) calls.waits->handled(now_us, *event_, effects_);
    if (!calls.on_handled.is_none())
      call(calls.on_handled, number(address), number(now_us), face_of(event_),
           handler.native->listed(effects_));
    Runtime runtime{*this};
    carry_out(runtime, now_us, address, *handler.native, effects_, calls.rest);
  } else {
    const nb::object time = number(now_us), face = face_of(event_);
    const nb::object effects = call(nb::getattr(handler.participant, "handle"), time, face);
    if (!effects.is_none()) {  // or else it is refused below
      if (calls.log && calls.log->append(address, now_us, *event_, effects) >= kBufferBytes)
        call(calls.write_log);
      if (calls.waits) note_waits(*calls.waits, now_us, *event_, effects);
      if (!calls.on_handled.is_none()) call(calls.on_handled, number(address), time, face, effects);
    }
    call(calls.rest, time, number(address), effects);
  }
  event_.reset();
}

std::optional<int64_t> ActorLoop::next_due_us() const {
  std::optional<int64_t> due_us;
  if (!timers_.empty()) due_us = timers_.next_us();
  if (!decisions_.empty())
    due_us = std::min(due_us.value_or(decisions_.top().due_us), decisions_.top().due_us);
  return due_us;
}

bool ActorLoop::has_outgoing() const {
  return std::any_of(outgoing_.begin(), outgoing_.end(),
                     [](const auto& of) { return !of.second.empty(); });
}

std::vector<ActorLoop::Message> ActorLoop::take_outgoing(int64_t rotation) {
  std::vector<Message> taken;
  if (outgoing_.empty()) return taken;
  const size_t first = static_cast<size_t>(rotation) % outgoing_.size();
  for (size_t i = 0; i < outgoing_.size(); ++i) {
    std::vector<Message>& sent = outgoing_[(first + i) % outgoing_.size()].second;
    std::move(sent.begin(), sent.end(), std::back_inserter(taken));
    sent.clear();
  }
  return taken;
}

std::vector<ActorLoop::Message> ActorLoop::messages() const {
  std::vector<Message> all(inbox_.begin(), inbox_.end());
  for (const auto& [sender, sent] : outgoing_) all.insert(all.end(), sent.begin(), sent.end());
  return all;
}

}  // namespace agora
