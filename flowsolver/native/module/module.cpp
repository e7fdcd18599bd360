// flowsolver._flowsolver: the Python module.
#include "module/module.hpp"

#include <chrono>

namespace flowsolver {

namespace {

const Algorithm& known_algorithm(const std::string& name) {
  const Algorithm* found = find_algorithm(name);
  if (found != nullptr) return *found;
  std::string known;
  for (const Algorithm& each : algorithms())
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  throw nb::value_error(("no algorithm \"" + name + "\"; known: " + known).c_str());
}

}  // namespace

void set_budget(Control& control, std::int64_t operations, double seconds) {
  control.limit_operations(operations < 0 ? kInfinity : operations);
  using Clock = Control::Clock;
  constexpr double kForEver = 1e9;  // 30 years, which the clock can represent
  control.stop_at(!(seconds >= 0 && seconds < kForEver)
                      ? Clock::time_point::max()
                      : Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds)));
}

void end_at_signals(Control& control) {
  static const unsigned long main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  if (PyThread_get_thread_ident() != main_thread) return control.poll({});
  control.poll([](const Stats&) {
    const nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
  });
}

void end_if_interrupted(Control& control) {
  if (PyErr_Occurred() == nullptr) return;
  control.clear();
  throw nb::python_error();
}

std::vector<const Algorithm*> known_algorithms(const std::vector<std::string>& names) {
  if (names.empty()) throw nb::value_error("no algorithm given");
  std::vector<const Algorithm*> algorithms;
  for (const std::string& name : names) {
    algorithms.push_back(&known_algorithm(name));
    if (std::count(algorithms.begin(), algorithms.end(), algorithms.back()) > 1) {
      throw nb::value_error(("algorithm \"" + name + "\" given twice").c_str());
    }
  }
  return algorithms;
}

}  // namespace flowsolver

NB_MODULE(_flowsolver, m) {
  flowsolver::bind_network(m);
  flowsolver::bind_solve(m);
  flowsolver::bind_incremental(m);
  flowsolver::bind_handover(m);
}
