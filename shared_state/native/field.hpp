// A named member of a struct: from the list of them, encoder and Python class are made, so that a
// struct is described once.
//
//   struct Point { int64_t x, y;
//     static constexpr auto fields() { return std::tuple{Field{"x", &Point::x}, ...}; } };
#pragma once

#include <tuple>
#include <utility>

namespace agora {

template <class Owner, class Value>
struct Field {
  const char* name;
  Value Owner::* member;
};

// Makes what a struct makes only when it is looked at: before any of its fields is read.
template <class T>
void complete(const T& of) {
  if constexpr (requires { of.complete(); }) of.complete();
}

// Calls visit(name, value) for each field, in order.
template <class T, class Visit>
void for_each_field(const T& of, Visit&& visit) {
  complete(of);
  std::apply([&](const auto&... field) { (visit(field.name, of.*field.member), ...); },
             T::fields());
}

template <class T>
constexpr size_t kFieldCount = std::tuple_size_v<decltype(T::fields())>;

}  // namespace agora
