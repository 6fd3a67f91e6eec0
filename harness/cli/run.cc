// `savegate run`: suites and scenarios against a save path.
#include <fmt/format.h>

#include <optional>
#include <random>

#include "harness/cli/commands.h"
#include "harness/cli/gate.h"
#include "harness/cli/random_plans.h"
#include "harness/cli/session.h"
#include "harness/run/sandbox.h"
#include "harness/time_limit.h"

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

// Of the random plans: another one each night, unless it is given.
std::uint64_t seed_of(const Options& options) {
  return options.seed ? *options.seed : std::random_device()();
}

Result<int> run(const RunWords& words, const Options& options) {
  const std::vector<std::string>& names = words.names;
  SAVEGATE_TRY(Catalog catalog, find_catalog());
  SAVEGATE_TRY(harness::Subject subject, catalog.subject(options));
  SAVEGATE_TRY(std::vector<harness::Scenario> scenarios, select_scenarios(catalog, names, options));
  if (scenarios.empty()) return fail(invalid("these suites hold no scenario"));
  SAVEGATE_CHECK(check_fits(catalog, subject, scenarios, options));
  std::optional<std::uint64_t> budget_ns;
  if (!words.budget.empty()) {
    auto budget = harness::parse_time_limit(words.budget);
    if (!budget) return fail(invalid("--budget: " + budget.error().text));
    budget_ns = *budget;
  }
  SAVEGATE_TRY(const Quarantines quarantines, read_quarantines(words.quarantine));
  return harness::run_in_sandbox([&]() -> int {
    const auto inside = [&]() -> Result<int> {
      SAVEGATE_TRY(auto session,
                   Session::begin(catalog, options, run_name(scenarios),
                                  fmt::format("savegate run {}{}", fmt::join(names, " "),
                                              option_words(options))));
      Gate gate(options.store, quarantines);
      std::optional<Budget> budget;
      if (budget_ns) {
        budget.emplace(words.budget, *budget_ns, gate.latest(), session->subject_name(subject),
                       options.device);
        session->within(*budget);
      }
      Result<void> ran = session->run(scenarios, subject);
      if (ran && budget)
        ran = run_random_plans(
            *session, *budget, subject,
            {.world = scenarios.front().world, .seed = seed_of(options), .jobs = jobs_of(options)});
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
