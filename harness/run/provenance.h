// What a verdict is bound to (H4): the program, its files, the plan, the machine.
//
// Every name of kProvenanceNames gets a value; what could not be had is "not obtained".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/run/scenario_runner.h"

namespace savegate::harness {

// Of `processes`: no rank was forked from a program that had started before.
inline constexpr const char* kFreshPrograms = "programs started afresh";

class Provenance {
 public:
  // Looks at everything now, before the first life.
  Provenance(const Scenario& scenario, const Subject& subject, const RunOptions& options,
             const std::string& backing);
  // Looks at the executable once more (it may have been rebuilt meanwhile); JSON for
  // provenance.json.
  std::string finish();
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
  std::string executable_;
};

// All files of a subject's folder, by their paths below it, in the order of names: hidden ones and
// build caches apart, and without the store of the run, if that is there.
Result<std::vector<std::string>> files_of_subject(const Subject& subject,
                                                  const RunOptions& options);

// One digest of what decides a result: the program, its files and command, the scenario and
// savegate. "" where the program's is not known.
std::string bound_to(const std::map<std::string, std::string>& provenance);

// The machine and savegate alone, for the record of a whole run.
std::map<std::string, std::string> machine_provenance(const std::string& backing);

}  // namespace savegate::harness
