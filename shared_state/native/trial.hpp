// Planning on a view without changing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "view.hpp"

namespace agora {

// Provisional changes to a view, undone in reverse order when the trial ends: the view is left as
// it was.
class Trial {
 public:
  explicit Trial(ClusterView& view) : view_(view) {}
  ~Trial() { rollback(0); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Takes the request out of an open row. `request` must outlive the trial. Returns whether the row
  // stays open.
  bool take(int32_t row, const int64_t* request);
  // Hides an open row from draws; shows it again.
  void exclude(int32_t row);
  void readmit(int32_t row);

  size_t mark() const { return steps_.size(); }
  void rollback(size_t mark);

 private:
  enum class Change : uint8_t { Took, TookLast, Excluded, Readmitted };
  struct Step {
    const int64_t* request;
    int32_t row;
    Change change;
  };

  ClusterView& view_;
  std::vector<Step> steps_;
};

}  // namespace agora
