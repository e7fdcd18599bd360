// DIMACS minimum-cost flow files.
//
//   c <comment>                          anywhere
//   p min <nodes> <arcs>                 first line that is not a comment
//   n <node> <supply>                    at most once per node, before the arcs; nodes count from 1
//   a <tail> <head> <low> <cap> <cost>   exactly <arcs> of them; low <= cap, of any sign
//
// An arc with a lower bound becomes one with bound 0: flow `low` is taken as sent, supplies and the
// base cost follow. Numbers are 64-bit integers. Anything else is an error with its line; so is a
// number of nodes over four million beyond what a file of this size can name.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "network.hpp"

namespace flowsolver {

struct DimacsProblem {
  Network network;                // lower bounds taken out
  std::vector<std::int64_t> low;  // per arc; add to the flow
  std::int64_t base_cost = 0;     // add to the cost
};

class DimacsError : public std::runtime_error {
 public:
  DimacsError(std::size_t line, const std::string& what) : std::runtime_error(what), line_(line) {}
  std::size_t line() const { return line_; }  // counts from 1

 private:
  std::size_t line_;
};

DimacsProblem parse_dimacs(std::string_view text);  // throws DimacsError
std::string write_dimacs(const Network& network);
// The lines "f <tail> <head> <flow>" of a solution, for arcs with flow, in arc order.
std::string write_dimacs_flow(const Network& network, std::span<const std::int64_t> flow);

}  // namespace flowsolver
