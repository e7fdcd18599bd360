#include "trial.hpp"

namespace agora {

bool Trial::take(int32_t row, const int64_t* request) {
  steps_.push_back({request, row, 0, Change::Took});
  view_.free_.add(row, request, -1);
  if (view_.free_.has_room(row)) return true;
  steps_.back().place = view_.index_.erase(row);
  steps_.back().change = Change::TookLast;
  return false;
}

void Trial::exclude(int32_t row) {
  steps_.push_back({nullptr, row, 0, Change::Excluded});
  steps_.back().place = view_.index_.erase(row);
}

void Trial::readmit(int32_t row) {
  steps_.push_back({nullptr, row, 0, Change::Readmitted});
  view_.index_.insert(row);
}

void Trial::rollback(size_t mark) {
  while (steps_.size() > mark) {
    const Step& step = steps_.back();
    switch (step.change) {
      case Change::TookLast:
        view_.index_.undo_erase(step.row, step.place);
        [[fallthrough]];
      case Change::Took:
        view_.free_.add(step.row, step.request, +1);
        break;
      case Change::Excluded:
        view_.index_.undo_erase(step.row, step.place);
        break;
      case Change::Readmitted:
        view_.index_.undo_insert(step.row);
        break;
    }
    steps_.pop_back();
  }
}

}  // namespace agora
