// `savegate run`: suites and scenarios against a save path.
#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/cli/gate.h"
#include "harness/cli/session.h"
#include "harness/run/sandbox.h"

namespace savegate::cli {
namespace {

// "smoke", "smoke-and-2-more": part of a folder's name in the store.
std::string run_name(const std::vector<harness::Scenario>& scenarios) {
  std::vector<std::string> suites;
  for (const harness::Scenario& scenario : scenarios)
    if (suites.empty() || suites.back() != scenario.suite) suites.push_back(scenario.suite);
  return suites.size() == 1 ? suites.front()
                            : fmt::format("{}-and-{}-more", suites.front(), suites.size() - 1);
}

Result<int> run(const RunWords& words, const Options& options) {
  const std::vector<std::string>& names = words.names;
  SAVEGATE_TRY(Catalog catalog, find_catalog());
  SAVEGATE_TRY(harness::Subject subject, catalog.subject(options));
  SAVEGATE_TRY(std::vector<harness::Scenario> scenarios, select_scenarios(catalog, names, options));
  if (scenarios.empty()) return fail(invalid("these suites hold no scenario"));
  SAVEGATE_CHECK(check_fits(catalog, subject, scenarios, options));
  SAVEGATE_TRY(const Quarantines quarantines, read_quarantines(words.quarantine));
  return harness::run_in_sandbox([&]() -> int {
    const auto inside = [&]() -> Result<int> {
      SAVEGATE_TRY(auto session,
                   Session::begin(catalog, options, run_name(scenarios),
                                  fmt::format("savegate run {}{}", fmt::join(names, " "),
                                              option_words(options))));
      Gate gate(options.store, quarantines);
      Result<void> ran = session->run(scenarios, subject);
      SAVEGATE_TRY(int code, session->finish(&gate));
      if (!ran) return fail(ran.error());  // what was done before it is in the store all the same
      return code;
    };
    Result<int> code = inside();
    return code ? *code : report_error(code.error());
  });
}

}  // namespace

int run_command(const RunWords& words, const Options& options) {
  Result<int> code = run(words, options);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
