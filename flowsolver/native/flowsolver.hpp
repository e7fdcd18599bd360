// The header of the library for other C++ code. It includes all public headers.
//
//   #include <flowsolver/flowsolver.hpp>
//
//   flowsolver::Network network;
//   network.supply = {4, 0, -4};                    // per node
//   network.tail = {0, 0, 1};                       // per arc, like the three below
//   network.head = {1, 2, 2};
//   network.capacity = {4, 2, 5};
//   network.cost = {2, 5, 1};
//   const flowsolver::Solution answer =
//       flowsolver::find_algorithm("incremental_ssp")->solve(network, {}, flowsolver::Control());
//   // answer.status == flowsolver::Status::kOptimal, answer.cost == 12, answer.flow == {4, 0, 4}
//
// The caller must ensure that arrays have equal lengths, node ids are below supply.size(), and
// capacities are >= 0: nothing checks them. Numbers out of range and networks without an answer
// give a status.
//
// In CMake: find_package(flowsolver) after `cmake --install`, or
// add_subdirectory(flowsolver/native); then link flowsolver::flowsolver.
//
//   network.hpp             the problem, its answer, statuses, counted work
//   solve.hpp               the algorithms by name, and what each of them guarantees
//   control.hpp             budgets of operations and of time, cancellation from another thread
//   race.hpp                several algorithms at once, the first answer wins
//   incremental_solver.hpp  changes, and re-optimisation after them
//   certificate.hpp         proofs of optimality and of infeasibility, independent of the solver
//   dimacs.hpp              files
#pragma once

#include "certificate.hpp"
#include "control.hpp"
#include "dimacs.hpp"
#include "incremental_solver.hpp"
#include "solve.hpp"
#include "network.hpp"
#include "race.hpp"
