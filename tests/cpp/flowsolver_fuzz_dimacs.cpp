// Any bytes as a DIMACS file. Either they are refused, with a line that the file has; or the
// network is sound, is written and read as itself, and all algorithms agree on it, to a
// certificate: whatever the numbers, they end in a status.
#include <algorithm>
#include <string>
#include <string_view>

#include "dimacs.hpp"
#include "fuzz.hpp"
#include "networks.hpp"

using namespace flowsolver;

namespace {

constexpr std::size_t kMostNodes = 10'000;
constexpr std::size_t kMostNodesSolved = 40, kMostArcsSolved = 120;
// Far beyond what any algorithm needs for so few nodes.
constexpr std::int64_t kEndless = 300'000'000;

// Isolated nodes are in order, so that a short line may well ask for gigabytes: that is not what is
// looked for here.
bool announces_many_nodes(const std::string& text) {
  for (std::size_t at = text.find("min"); at != std::string::npos; at = text.find("min", at + 1)) {
    if (std::strtoull(text.c_str() + at + 3, nullptr, 10) > kMostNodes) return true;
  }
  return false;
}

bool same(const Network& a, const Network& b) {
  return a.tail == b.tail && a.head == b.head && a.capacity == b.capacity && a.cost == b.cost &&
         a.supply == b.supply;
}

void check_algorithms(const Network& network) {
  const Status ranges = check_ranges(network);
  Solution first;
  for (const Algorithm& algorithm : algorithms()) {
    Control control;
    control.limit_operations(kEndless);
    const Solution solution = algorithm.solve(network, {}, control);
    if (&algorithm == algorithms().data()) first = solution;
    CHECK(solution.status != Status::kBudget);
    CHECK(ranges == Status::kOptimal || solution.status == ranges);
    CHECK(solution.status == first.status);
    check_solution(network, solution);
    CHECK(solution.status != Status::kOptimal || solution.cost == first.cost);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (announces_many_nodes(std::string(data, data + size))) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t lines =
      static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  DimacsProblem problem;
  try {
    problem = parse_dimacs(text);
  } catch (const DimacsError& error) {
    CHECK(error.line() >= 1 && error.line() <= lines);
    CHECK(error.what()[0] != '\0');
    return 0;
  }
  const Network& network = problem.network;
  CHECK(problem.low.size() == network.num_arcs());
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    CHECK(network.tail[a] < network.num_nodes() && network.head[a] < network.num_nodes());
    CHECK(network.capacity[a] >= 0);
  }
  const DimacsProblem again = parse_dimacs(write_dimacs(network));
  CHECK(same(network, again.network));
  CHECK(again.base_cost == 0);
  CHECK(std::all_of(again.low.begin(), again.low.end(), [](std::int64_t low) { return low == 0; }));
  if (network.num_nodes() <= kMostNodesSolved && network.num_arcs() <= kMostArcsSolved)
    check_algorithms(network);
  return 0;
}

int main(int argc, char** argv) {
  const fuzz::Seeds seeds{
      {
          "",
          "p min 1 0\n",
          "c comment\np min 4 5\nn 1 4\nn 4 -4\na 1 2 0 4 2\na 1 3 0 2 2\na 2 3 -1 2 1\na 2 4 1 3 "
          "3\na 3 4 0 5 -1\n",
          "p min 2 3\nn 1 3\nn 2 -3\na 1 2 2 5 10\na 1 2 0 5 1\na 2 1 -4 9 -3\n",
          "p min 3 3\na 1 2 0 2 -3\na 2 3 0 5 1\na 3 1 0 3 1\n",
          "p min 3 4\nn 1 4611686018427387904\nn 3 -4611686018427387904\na 1 2 0 "
          "4611686018427387904 1\n"
          "a 2 3 0 4611686018427387904 -1\na 2 2 0 1 -5\na 1 3 0 0 9\n",
          "p min 6 9\nn 1 2\nn 2 1\nn 3 1\nn 6 -4\na 1 4 0 1 5\na 1 5 0 1 7\na 2 4 0 1 3\na 2 5 0 "
          "1 3\na 3 5 0 1 0\n"
          "a 3 6 0 1 20\na 4 6 0 2 0\na 5 6 0 1 0\na 1 6 0 9 30\n",
      },
      {"1.5", "+1", "--1", "0x1", "99999999999999999999", " ", "\n", "\r\n", "\t", "a", "n",
       "p min ", "c ", "-", "\na 1 2 0 3 -2\n", "\na 3 1 0 2 1\n", "\nn 2 1\n",
       std::string(1, '\0'), "\xff"},
      {"0", "1", "2", "3", "7", "100", "2147483647", "2147483648", "4294967296", "1099511627776",
       "72057594037927936", "1152921504606846976", "2305843009213693952", "4611686018427387904",
       "9223372036854775807", "9223372036854775808"},
  };
  return fuzz::drive(argc, argv, seeds, tries(25'000));
}
