// What native code found, as a numpy array.
#pragma once

#include <algorithm>
#include <vector>

#include "shared_state/native/new_array.hpp"

namespace agora {

template <class T>
nanobind::object array_of(const std::vector<T>& column) {
  const NewArray<T> array(column.size());
  std::copy(column.begin(), column.end(), array.data());
  return array.object();
}

}  // namespace agora
