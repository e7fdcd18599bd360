// LEMON's algorithms as a peer of bench_flowsolver.py, for those who have LEMON (1.3.1, Boost
// licence): c++ -O3 -DNDEBUG -o lemon_peer lemon_peer.cpp, with LEMON's headers in the include
// path.
//
// lemon_peer FILE reads a DIMACS problem and writes a line per algorithm: its name, the process
// time it took in seconds, and the cost. The time includes the copy that an algorithm makes of the
// graph, as those of the others do, and not the reading.
#include <lemon/cost_scaling.h>
#include <lemon/dimacs.h>
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

#include <ctime>
#include <fstream>
#include <iostream>

namespace {

using Graph = lemon::SmartDigraph;
using Number = long long;

struct Problem {
  Graph graph;
  Graph::ArcMap<Number> lower{graph}, capacity{graph}, cost{graph};
  Graph::NodeMap<Number> supply{graph};
};

template <class Algorithm>
void run(const char* name, const Problem& problem) {
  const std::clock_t began = std::clock();
  Algorithm algorithm(problem.graph);
  algorithm.upperMap(problem.capacity).costMap(problem.cost).supplyMap(problem.supply);
  const bool optimal = algorithm.run() == Algorithm::OPTIMAL;
  const double seconds = double(std::clock() - began) / CLOCKS_PER_SEC;
  if (optimal)
    std::cout << name << ' ' << seconds << ' ' << algorithm.template totalCost<Number>() << '\n';
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::ifstream file(arguments[1]);
  Problem problem;
  lemon::readDimacsMin(file, problem.graph, problem.lower, problem.capacity, problem.cost,
                       problem.supply);
  run<lemon::NetworkSimplex<Graph, int, int>>("LEMON_network_simplex", problem);
  run<lemon::CostScaling<Graph, int, int>>("LEMON_cost_scaling", problem);
}
