#include "dimacs.hpp"

#include <charconv>
#include <cstring>

namespace flowsolver {

namespace {

constexpr std::size_t kBytesPerNode = 6;  // "n 1 1\n", or half of "a 1 2 0 1 1\n"
// nodes without a line that any file may have
constexpr std::size_t kIdleNodes = std::size_t{1} << 22;

class Parser {
 public:
  explicit Parser(std::string_view text) : next_(text.data()), end_(text.data() + text.size()) {}

  DimacsProblem parse() {
    while (next_ < end_) {  // bounded: by the input's lines
      ++line_;
      skip_blanks();
      const char kind = at_line_end() ? '\n' : *next_;
      if (kind == 'a') {
        read_arc();
      } else if (kind == 'n') {
        read_node();
      } else if (kind == 'p') {
        read_problem();
      } else if (kind != 'c' && kind != '\n') {
        fail("a line starts with c, p, n or a");
      }
      if (kind == 'c') {
        const void* newline = std::memchr(next_, '\n', static_cast<std::size_t>(end_ - next_));
        next_ = newline == nullptr ? end_ : static_cast<const char*>(newline);
      }
      skip_blanks();
      if (!at_line_end()) fail("more on the line than expected");
      if (next_ < end_) ++next_;
    }
    if (line_ == 0) line_ = 1;
    if (!have_problem_) fail("no problem line (p min <nodes> <arcs>)");
    if (problem_.network.num_arcs() != expected_arcs_) {
      fail("the file ends after " + std::to_string(problem_.network.num_arcs()) + " of " +
           std::to_string(expected_arcs_) + " arcs");
    }
    return std::move(problem_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw DimacsError(line_, what); }
  bool at_line_end() const { return next_ == end_ || *next_ == '\n'; }
  void skip_blanks() {
    while (next_ < end_ && (*next_ == ' ' || *next_ == '\t' || *next_ == '\r')) ++next_;
  }
  void keyword() {  // the letter stands alone
    ++next_;
    if (!at_line_end() && *next_ != ' ' && *next_ != '\t') fail("a line starts with c, p, n or a");
  }

  std::int64_t number(const char* field) {
    skip_blanks();
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(next_, end_, value);
    if (error == std::errc::result_out_of_range) fail(std::string(field) + " does not fit 64 bits");
    const bool clean =
        stop == end_ || *stop == ' ' || *stop == '\t' || *stop == '\n' || *stop == '\r';
    if (error != std::errc{} || !clean) fail(std::string(field) + " is missing or not an integer");
    next_ = stop;
    return value;
  }

  std::size_t count(const char* field, std::size_t limit) {
    const std::int64_t value = number(field);
    if (value < 0 || static_cast<std::uint64_t>(value) > limit) {
      fail(std::string(field) + " " + std::to_string(value) + " is not within 0.." +
           std::to_string(limit));
    }
    return static_cast<std::size_t>(value);
  }

  NodeId node(const char* field) {
    const std::int64_t value = number(field);
    if (value < 1 || static_cast<std::uint64_t>(value) > problem_.network.num_nodes()) {
      fail(std::string(field) + " " + std::to_string(value) + " is not within 1.." +
           std::to_string(problem_.network.num_nodes()));
    }
    return static_cast<NodeId>(value - 1);
  }

  void read_problem() {
    keyword();
    if (have_problem_) fail("a second problem line");
    skip_blanks();
    if (end_ - next_ < 3 || std::memcmp(next_, "min", 3) != 0) fail("the problem is not \"min\"");
    next_ += 3;
    if (!at_line_end() && *next_ != ' ' && *next_ != '\t') fail("the problem is not \"min\"");
    const std::size_t nodes = count("number of nodes", kMaxNodes);
    expected_arcs_ = count("number of arcs", kMaxArcs);
    // A node that matters has a line of its own or is named by an arc's: a wrong count must not
    // make the parser allocate more memory than the file can fill.
    const std::size_t named = static_cast<std::size_t>(end_ - next_) / kBytesPerNode;
    if (nodes > named + kIdleNodes)
      fail("number of nodes " + std::to_string(nodes) + " is far more than the file names");
    have_problem_ = true;
    problem_.network.supply.assign(nodes, 0);
    has_line_.assign(nodes, false);
    // The smallest arc line has 12 characters: a wrong count must not make the parser allocate more
    // memory than the file can fill.
    const std::size_t likely =
        std::min(expected_arcs_, static_cast<std::size_t>(end_ - next_) / 12 + 1);
    problem_.network.tail.reserve(likely);
    problem_.network.head.reserve(likely);
    problem_.network.capacity.reserve(likely);
    problem_.network.cost.reserve(likely);
    problem_.low.reserve(likely);
  }

  void read_node() {
    keyword();
    if (!have_problem_) fail("a node before the problem line");
    if (problem_.network.num_arcs() > 0) fail("a node after the first arc");
    const NodeId v = node("node");
    if (has_line_[v]) fail("node " + std::to_string(v + 1) + " has a second line");
    has_line_[v] = true;
    problem_.network.supply[v] = number("supply");
  }

  void read_arc() {
    keyword();
    if (!have_problem_) fail("an arc before the problem line");
    if (problem_.network.num_arcs() == expected_arcs_) {
      fail("more than the " + std::to_string(expected_arcs_) + " arcs announced");
    }
    const NodeId tail = node("tail"), head = node("head");
    const std::int64_t low = number("lower bound"), high = number("capacity"),
                       cost = number("cost");
    if (low > high)
      fail("capacity " + std::to_string(high) + " is below the lower bound " + std::to_string(low));
    Network& network = problem_.network;
    std::int64_t capacity = 0;
    if (__builtin_sub_overflow(high, low, &capacity))
      fail("capacity - lower bound does not fit 64 bits");
    if (low != 0) take_low(tail, head, low, cost);
    network.tail.push_back(tail);
    network.head.push_back(head);
    network.capacity.push_back(capacity);
    network.cost.push_back(cost);
    problem_.low.push_back(low);
  }

  void take_low(NodeId tail, NodeId head, std::int64_t low, std::int64_t cost) {
    Network& network = problem_.network;
    std::int64_t added = 0;
    if (__builtin_sub_overflow(network.supply[tail], low, &network.supply[tail]) ||
        __builtin_add_overflow(network.supply[head], low, &network.supply[head]) ||
        __builtin_mul_overflow(low, cost, &added) ||
        __builtin_add_overflow(problem_.base_cost, added, &problem_.base_cost)) {
      fail("lower bounds do not fit 64 bits");
    }
  }

  const char* next_;
  const char* end_;
  std::size_t line_ = 0;
  bool have_problem_ = false;
  std::size_t expected_arcs_ = 0;
  std::vector<bool> has_line_;
  DimacsProblem problem_;
};

class Writer {
 public:
  Writer& operator<<(std::string_view text) {
    text_ += text;
    return *this;
  }
  Writer& operator<<(std::int64_t value) {
    char digits[24];
    const auto [stop, error] = std::to_chars(digits, digits + sizeof digits, value);
    text_.append(digits, stop);
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

DimacsProblem parse_dimacs(std::string_view text) { return Parser(text).parse(); }

std::string write_dimacs(const Network& network) {
  Writer out;
  out << "p min " << static_cast<std::int64_t>(network.num_nodes()) << " "
      << static_cast<std::int64_t>(network.num_arcs()) << "\n";
  for (NodeId v = 0; v < network.num_nodes(); ++v) {
    if (network.supply[v] != 0)
      out << "n " << std::int64_t{v} + 1 << " " << network.supply[v] << "\n";
  }
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    out << "a " << std::int64_t{network.tail[a]} + 1 << " " << std::int64_t{network.head[a]} + 1
        << " 0 " << network.capacity[a] << " " << network.cost[a] << "\n";
  }
  return out.take();
}

std::string write_dimacs_flow(const Network& network, std::span<const std::int64_t> flow) {
  Writer out;
  for (ArcId a = 0; a < network.num_arcs(); ++a) {
    if (flow[a] != 0) {
      out << "f " << std::int64_t{network.tail[a]} + 1 << " " << std::int64_t{network.head[a]} + 1
          << " " << flow[a] << "\n";
    }
  }
  return out.take();
}

}  // namespace flowsolver
