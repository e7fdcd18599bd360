// Rows of a view that changed, for whoever keeps something in step with the view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace agora {

struct RowLog {
  std::vector<int32_t> rows;  // in order of their changes; some more than once
  bool all = true;            // any row may have changed, and `rows` is not kept

  void clear() {
    rows.clear();
    all = false;
  }
};

}  // namespace agora
