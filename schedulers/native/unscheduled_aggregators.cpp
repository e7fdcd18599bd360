#include "unscheduled_aggregators.hpp"

#include <algorithm>
#include <stdexcept>

namespace agora {

std::vector<int64_t> UnscheduledAggregators::enter(std::span<const int64_t> job,
                                                   std::span<const int64_t> submitted,
                                                   std::span<int64_t> place) {
  require_named();
  if (submitted.size() != job.size() || place.size() != job.size())
    throw std::invalid_argument("job, submitted, place: expected columns of one length");
  std::vector<int64_t> added;
  for (const int64_t each : job)
    if (!place_of_.contains(each)) added.push_back(each);
  std::sort(added.begin(), added.end());
  added.erase(std::unique(added.begin(), added.end()), added.end());
  if (pool_.reserve(added.size())) places_.resize(pool_.rows());
  for (const int64_t each : added) {
    const int64_t free = pool_.take();
    at(free) = {each, kNoNode, 0, INT64_MAX, 0};
    place_of_.emplace(each, free);
    unnamed_.push_back(free);
  }
  for (size_t i = 0; i < job.size(); ++i) {
    place[i] = place_of_.find(job[i])->second;
    Place& its = at(place[i]);
    ++its.tasks;
    if (its.node == kNoNode) its.first_quantum = std::min(its.first_quantum, submitted[i]);
  }
  std::vector<int64_t> first;
  for (const int64_t each : unnamed_) first.push_back(at(each).first_quantum);
  return first;
}

void UnscheduledAggregators::name(std::span<const int64_t> node, std::span<const int64_t> arc) {
  if (node.size() != unnamed_.size() || arc.size() != unnamed_.size())
    throw std::invalid_argument("node, arc: expected one id for each new job");
  for (size_t i = 0; i < node.size(); ++i)
    if (node[i] < 0 || arc[i] < 0) throw std::invalid_argument("node, arc: expected ids from 0 on");
  for (size_t i = 0; i < unnamed_.size(); ++i) {
    at(unnamed_[i]).node = node[i];
    at(unnamed_[i]).arc = arc[i];
  }
  unnamed_.clear();
}

void UnscheduledAggregators::leave(int64_t place) {
  if (at(place).tasks == 0) throw std::logic_error("more tasks left a job than had entered it");
  --at(place).tasks;
}

std::vector<int64_t> UnscheduledAggregators::close_empty() {
  require_named();
  std::vector<int64_t> closed, nodes;
  for (size_t p = 0; p < places_.size(); ++p) {
    if (places_[p].node == kNoNode || places_[p].tasks > 0) continue;
    closed.push_back(static_cast<int64_t>(p));
    nodes.push_back(places_[p].node);
    place_of_.erase(places_[p].job);
    places_[p].node = kNoNode;
  }
  for (auto place = closed.rbegin(); place != closed.rend(); ++place) pool_.give_back(*place);
  return nodes;
}

UnscheduledAggregators::Open UnscheduledAggregators::open() const {
  Open found;
  for (const Place& each : places_) {
    if (each.node == kNoNode) continue;
    found.node.push_back(each.node);
    found.arc.push_back(each.arc);
    found.first_quantum.push_back(each.first_quantum);
  }
  return found;
}

void UnscheduledAggregators::require_named() const {
  if (!unnamed_.empty()) throw std::logic_error("new jobs have no ids yet");
}

}  // namespace agora
