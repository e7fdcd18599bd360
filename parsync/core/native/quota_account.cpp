#include "quota_account.hpp"

#include <algorithm>
#include <stdexcept>

namespace agora {

namespace {

void add(int64_t amount, int64_t& sum) {
  if (__builtin_add_overflow(sum, amount, &sum))
    throw std::overflow_error("quota account: requests sum to 2^63 or more");
}

void subtract(int64_t amount, int64_t& sum) {
  if (__builtin_sub_overflow(sum, amount, &sum))
    throw std::overflow_error("quota account: amounts differ by 2^63 or more");
}

}  // namespace

QuotaAccount::QuotaAccount(std::span<const int32_t> of_task, size_t groups,
                           std::span<const int64_t> request, size_t resources,
                           std::span<const int64_t> gang)
    : held(groups * resources),
      waiting(groups * resources),
      granted(groups * resources),
      of_task_(of_task),
      groups_(groups),
      request_(request),
      resources_(resources),
      ended_(groups * resources),
      taken_(groups * resources),
      stopped_(groups) {
  if (request.size() != of_task.size() * resources || gang.size() != of_task.size())
    throw std::invalid_argument("quota account: expected a group, request and gang of each task");
  for (const int32_t group : of_task)
    if (group < 0 || static_cast<size_t>(group) >= groups)
      throw std::invalid_argument("quota group " + std::to_string(group) +
                                  ": expected a number below " + std::to_string(groups));
  if (std::ranges::any_of(gang, [](int64_t one) { return one != kNoGang; })) gang_ = gang;
}

void QuotaAccount::look() { std::ranges::fill(ended_, 0); }

std::span<const uint8_t> QuotaAccount::within(std::span<const int64_t> task) {
  fits_.assign(task.size(), 0);
  std::ranges::fill(taken_, 0);
  std::ranges::fill(stopped_, 0);
  torn_.clear();
  for (size_t i = 0; i < task.size(); ++i) {
    const size_t group = group_of(task[i]);
    const int64_t* request = request_of(task[i]);
    for (size_t r = 0; r < resources_ && !stopped_[group]; ++r) {
      int64_t& taken = taken_[group * resources_ + r];
      add(request[r], taken);
      stopped_[group] = request[r] != 0 && taken > room(group, r);
    }
    fits_[i] = !stopped_[group];
    if (stopped_[group] && gang_of(task[i]) != kNoGang) torn_.push_back(gang_of(task[i]));
  }
  if (!torn_.empty()) {
    std::ranges::sort(torn_);
    for (size_t i = 0; i < task.size(); ++i)
      fits_[i] = fits_[i] && !std::ranges::binary_search(torn_, gang_of(task[i]));
  }
  return fits_;
}

bool QuotaAccount::any_within(std::span<const int64_t> task) {
  return std::ranges::any_of(within(task), [](uint8_t fits) { return fits != 0; });
}

bool QuotaAccount::has_room(std::span<const int64_t> task, std::span<const int64_t> before) const {
  if (task.empty()) throw std::invalid_argument("has_room: expected a task");
  const size_t group = group_of(task[0]);
  const int64_t gang = gang_of(task[0]);
  for (size_t r = 0; r < resources_; ++r) {
    int64_t asked = 0, wanted = 0;
    for (size_t i = 0; i < task.size() && (i == 0 || gang != kNoGang); ++i)
      if (i == 0 || gang_of(task[i]) == gang) add(request_of(task[i])[r], asked);
    for (const int64_t other : before)
      if (group_of(other) == group) add(request_of(other)[r], wanted);
    add(asked, wanted);
    if (asked != 0 && wanted > room(group, r)) return false;
  }
  return true;
}

int64_t QuotaAccount::room(size_t group, size_t resource) const {
  const size_t at = group * resources_ + resource;
  int64_t room = granted[at];
  subtract(held[at], room);
  subtract(ended_[at], room);
  return room;
}

void QuotaAccount::move(std::span<const int64_t> task, std::vector<int64_t>* from,
                        std::vector<int64_t>* to) {
  for (const int64_t one : task) {
    const size_t group = group_of(one);
    const int64_t* request = request_of(one);
    for (size_t r = 0; r < resources_; ++r) {
      if (from) subtract(request[r], (*from)[group * resources_ + r]);
      if (to) add(request[r], (*to)[group * resources_ + r]);
    }
  }
}

}  // namespace agora
