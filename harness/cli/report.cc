#include "harness/cli/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include "harness/oracles.h"
#include "reports/terminal.h"

namespace savegate::cli {

void print_report(const reports::RunRecord& record, const std::string& run_directory,
                  bool scenario_lines) {
  reports::TerminalOptions options;
  options.colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  options.scenario_lines = scenario_lines;
  options.store = run_directory;
  for (const harness::Oracle& oracle : harness::all_oracles())
    options.rules[std::string(oracle.requirement)] = oracle.rule;
  fmt::print("{}", reports::render_run(record, options));
}

}  // namespace savegate::cli
