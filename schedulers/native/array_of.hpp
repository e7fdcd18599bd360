// Values from native code as a numpy array.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "shared_state/native/new_array.hpp"

namespace agora {

// width: 0, or how many values a row has.
template <class T>
nanobind::object array_of(const std::vector<T>& column, size_t width = 0) {
  const NewArray<T> array(width ? column.size() / width : column.size(), width);
  std::copy(column.begin(), column.end(), array.data());
  return array.object();
}

}  // namespace agora
