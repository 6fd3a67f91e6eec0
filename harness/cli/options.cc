#include "harness/cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "harness/cli/validators.h"
#include "harness/subject.h"

namespace savegate::cli {

namespace {

constexpr std::uint64_t kMostSeed = INT64_MAX;  // as in a suite

// What the machine refuses, not what savegate did wrong.
bool is_of_the_environment(int error) {
  constexpr std::array kErrors = {ENOSPC, EDQUOT, EROFS,  EACCES, EPERM,
                                  EIO,    EMFILE, ENFILE, ENOMEM};
  return std::find(kErrors.begin(), kErrors.end(), error) != kErrors.end();
}

}  // namespace

void add_options(CLI::App& command, Options& options) {
  command.add_option("--subject", options.subject, "the save path under test")
      ->capture_default_str();
  command.add_option("--launcher", options.launcher, "what starts the ranks")
      ->check(CLI::IsMember({"direct", "torchrun", "mpirun", "srun"}));
  command.add_option("--world", options.world, "ranks, in place of the scenario's own number")
      ->check(CLI::Range(1, 4096));
  command.add_option("--device", options.device, "where tensors live")
      ->check(CLI::IsMember(harness::device_names()))
      ->capture_default_str();
  command.add_option("--store", options.store, "folder of all runs")->capture_default_str();
  command.add_option("--seed", options.seed, "seed of every random choice")
      ->check(whole_number(0, kMostSeed));
  command.add_option("--backing", options.backing,
                     "folder, on the file system to be tested, that the faulty mount stores into");
  command.add_option("--keep", options.keep, "checkpoint trees that stay in the store")
      ->check(CLI::IsMember({"failed", "all", "none"}))
      ->capture_default_str();
  command.add_option("--junit", options.junit, "also write the JUnit report here");
  command.add_option("--timeout", options.timeout,
                     "end a life after so long without progress of any rank, such as 60s");
  CLI::Option* quiet = command.add_flag_callback(
      "--quiet", [&options] { options.verbosity = Verbosity::kQuiet; },
      "no progress, and of the verdicts what did not pass");
  command
      .add_flag_callback(
          "--verbose", [&options] { options.verbosity = Verbosity::kVerbose; },
          "a line for each life and each point of a sweep too")
      ->excludes(quiet);
  command
      .add_option("--jobs", options.jobs,
                  "scenarios at the same time; default: one a core, at most 4, one on a GPU")
      ->check(CLI::Range(1, 64));
}

void add_scene_options(CLI::App& command, Options& options) {
  command.add_option("--subject", options.subject,
                     "in place of the scene's own; as is a command after --");
  command.add_option("--store", options.store, "folder of all runs")->capture_default_str();
  command.add_option("--backing", options.backing,
                     "folder, on the file system to be tested, that the faulty mount stores into");
  command.add_option("--keep", options.keep, "checkpoint trees that stay in the store")
      ->check(CLI::IsMember({"failed", "all", "none"}))
      ->capture_default_str();
}

std::string option_words(const Options& options) {
  std::string line;
  if (options.world) line += fmt::format(" --world {}", *options.world);
  if (!options.launcher.empty()) line += " --launcher " + options.launcher;
  if (options.seed) line += fmt::format(" --seed {}", *options.seed);
  if (options.device != "cpu") line += " --device " + options.device;
  if (!options.backing.empty()) line += " --backing " + options.backing;
  if (!options.timeout.empty()) line += " --timeout " + options.timeout;
  if (options.command.empty()) return line + " --subject " + options.subject;
  return line + fmt::format(" -- {}", fmt::join(options.command, " "));
}

int jobs_of(const Options& options) {
  if (options.jobs) return *options.jobs;
  if (options.device == "cuda") return 1;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 4);
}

int report_error(const Status& status) {
  fmt::print(stderr, "savegate: {}\n", status.to_string());
  switch (status.code) {
    case Code::kInvalid:
      return kUsage;
    case Code::kUnavailable:
      return kEnvironment;
    case Code::kSystem:
      return is_of_the_environment(status.error) ? kEnvironment : kOwnError;
    case Code::kInternal:
      return kOwnError;
  }
  return kOwnError;
}

}  // namespace savegate::cli
