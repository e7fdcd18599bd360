#include "trial.hpp"

namespace agora {

bool Trial::take(int32_t row, const int64_t* request) {
  steps_.push_back({request, row, Change::Took});
  view_.free_.add(row, request, -1);
  if (view_.free_.has_room(row)) return true;
  view_.index_.erase(row);
  steps_.back().change = Change::TookLast;
  return false;
}

void Trial::exclude(int32_t row) {
  steps_.push_back({nullptr, row, Change::Excluded});
  view_.index_.erase(row);
}

void Trial::readmit(int32_t row) {
  steps_.push_back({nullptr, row, Change::Readmitted});
  view_.index_.insert(row);
}

void Trial::rollback(size_t mark) {
  while (steps_.size() > mark) {
    const Step& step = steps_.back();
    switch (step.change) {
      case Change::TookLast:
        view_.index_.insert(step.row);
        [[fallthrough]];
      case Change::Took:
        view_.free_.add(step.row, step.request, +1);
        break;
      case Change::Excluded:
        view_.index_.insert(step.row);
        break;
      case Change::Readmitted:
        view_.index_.erase(step.row);
        break;
    }
    steps_.pop_back();
  }
}

}  // namespace agora
