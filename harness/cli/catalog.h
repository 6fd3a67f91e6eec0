// The catalog: suites, subjects and negative controls that come with savegate, found beside the
// program, or a file named by path.
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"
#include "harness/cli/options.h"
#include "harness/scenario.h"
#include "harness/subject.h"

namespace savegate::cli {

struct Catalog {
  std::string bin;   // folder of savegate, savegate-fs and the reference subject
  std::string data;  // folder with suites/, subjects/, controls/

  std::vector<std::string> suite_names() const;
  std::vector<std::string> subject_names() const;

  Result<harness::Suite> suite(const std::string& name_or_path) const;
  Result<harness::Subject> subject(const Options& options) const;  // or a bare command

 private:
  Result<harness::Subject> own_subject(const Options& options) const;  // with its own launcher
};

Result<Catalog> find_catalog();

// --world, --seed and --timeout.
Result<void> apply_options(harness::Scenario& scenario, const Options& options);

// "smoke", "smoke/clean", "clean", "my-suite.toml" or a scenario.json from a store, each in turn;
// --world, --seed and --timeout applied.
Result<std::vector<harness::Scenario>> select_scenarios(const Catalog& catalog,
                                                        const std::vector<std::string>& names,
                                                        const Options& options);

// The one scenario of that name, which can be run again and again: no sweep, and applicable.
Result<harness::Scenario> select_one_scenario(const Catalog& catalog, const std::string& name,
                                              const harness::Subject& subject,
                                              const Options& options);

// The subject runs on the device and with the world sizes that are asked of it, and has what it
// needs.
Result<void> check_fits(const Catalog& catalog, const harness::Subject& subject,
                        const std::vector<harness::Scenario>& scenarios, const Options& options);

}  // namespace savegate::cli
