// The DIMACS parser under the sanitizers: every truncation and every one-byte change of a good file
// is read or refused, with a line number within the file.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "dimacs.hpp"

using namespace flowsolver;

namespace {

const std::string kGood =
    "c comment\np min 4 5\nn 1 4\nn 4 -4\na 1 2 0 4 2\na 1 3 0 2 2\na 2 3 -1 2 1\na 2 4 1 3 3\na 3 "
    "4 0 5 -1\n";

void read_or_refuse(const std::string& text) {
  // A copy of exact size on the heap: reading beyond the end is seen.
  const std::vector<char> exact(text.begin(), text.end());
  const std::size_t lines =
      static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  try {
    const DimacsProblem problem = parse_dimacs({exact.data(), exact.size()});
    const DimacsProblem again = parse_dimacs(write_dimacs(problem.network));
    if (again.network.cost != problem.network.cost ||
        again.network.supply != problem.network.supply) {
      std::fprintf(stderr, "what was written does not read back\n");
      std::exit(1);
    }
  } catch (const DimacsError& error) {
    if (error.line() < 1 || error.line() > lines) {
      std::fprintf(stderr, "line %zu of %zu: %s\n", error.line(), lines, error.what());
      std::exit(1);
    }
  }
}

}  // namespace

int main() {
  for (std::size_t end = 0; end <= kGood.size(); ++end) read_or_refuse(kGood.substr(0, end));
  for (std::size_t at = 0; at < kGood.size(); ++at) {
    for (const char replacement : {'\0', '\n', ' ', '-', '0', '9', 'a', 'n', 'p', 'c', '\xff'}) {
      std::string text = kGood;
      if (kGood.compare(at, 1, &replacement, 1) == 0) continue;
      text[at] = replacement;
      read_or_refuse(text);
    }
  }
  return 0;
}
