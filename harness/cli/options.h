// Options that every command spells the same way, and the exit codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "faults/status.h"

namespace CLI {
class App;
}

namespace savegate::cli {

// 0 all passed · 1 a scenario failed · 2 wrong usage or configuration · 3 the environment cannot ·
// 4 nothing was proven · 5 savegate's own error · 130 interrupted
enum ExitCode : int {
  kPassed = 0,
  kFailed = 1,
  kUsage = 2,
  kEnvironment = 3,
  kNothingProven = 4,
  kOwnError = 5,
  kInterrupted = 130,
};

enum class Verbosity : std::uint8_t { kQuiet, kNormal, kVerbose };

struct Options {
  std::string subject = "reference";
  std::vector<std::string> command;  // after `--`: takes the subject's place
  std::string launcher;              // "": the subject's own, else direct
  std::optional<int> world;
  std::string device = "cpu";
  std::string store = "store";
  std::optional<std::uint64_t> seed;
  std::string backing;          // "": inside the scenario's folder of the store
  std::string keep = "failed";  // failed | all | none: backing trees that stay
  std::string junit;            // "": only the store's junit.xml
  std::string timeout;          // "": as the scenario says
  Verbosity verbosity = Verbosity::kNormal;
  std::optional<int> jobs;  // default: one a core, at most 4; one on a GPU
};

// As on a command line, after what it runs: " --world 4 --subject reference", or " -- COMMAND…".
std::string option_words(const Options& options);

int jobs_of(const Options& options);

// Adds the options above to a subcommand.
void add_options(CLI::App& command, Options& options);

// For what is repeated from a scene, which says the rest: where, and in whose place.
void add_scene_options(CLI::App& command, Options& options);

// Prints "savegate: <status>" to stderr and returns the exit code that the status leads to.
int report_error(const Status& status);

}  // namespace savegate::cli
