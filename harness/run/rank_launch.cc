#include "harness/run/rank_launch.h"

#include <fcntl.h>
#include <signal.h>

#include "harness/run/fork_server.h"
#include "harness/run/launcher.h"
#include "harness/run/python.h"

namespace savegate::harness {
namespace {

// What all ranks are told alike.
std::vector<std::string> common_environment(const LifeSetup& setup, const RankPlaces& places) {
  const LifeSpec& life = setup.scenario.lives[static_cast<std::size_t>(setup.number - 1)];
  std::vector<std::string> changes = {
      "MASTER_ADDR=127.0.0.1",
      "MASTER_PORT=" + std::to_string(places.port),
      "SAVEGATE_DIR=" + places.mount,
      "SAVEGATE_LIFE=" + std::to_string(setup.number),
      "SAVEGATE_UNTIL=" + life.until,
      "SAVEGATE_DEVICE=" + setup.options.device,
      "SAVEGATE_CONTROL=" + places.control,
      "SAVEGATE_RENDEZVOUS=" + places.rendezvous,
      "SAVEGATE_LIBRARY=" + setup.options.bin + "/../lib/libsavegate_worker.so",
      python_path(setup.options.bin),
  };
  if (life.wake_probe) changes.push_back("SAVEGATE_WAKE_PROBE=" + neighbour_program(setup));
  for (const auto& [name, value] : life.env) changes.push_back(name + "=" + value);
  return changes;
}

std::vector<std::string> environment_of(const LifeSetup& setup, const RankPlaces& places,
                                        int rank) {
  const std::string world = std::to_string(setup.scenario.world);
  std::vector<std::string> changes = common_environment(setup, places);
  changes.insert(
      changes.end(),
      {"RANK=" + std::to_string(rank), "LOCAL_RANK=" + std::to_string(rank), "WORLD_SIZE=" + world,
       "LOCAL_WORLD_SIZE=" + world, "SAVEGATE_EVENTS=" + events_file(places.events, rank)});
  return environment_with(changes);
}

// The command under its limits. prlimit(1) sets them on itself and becomes the program, so that
// nothing of it ever runs without them.
Result<std::vector<std::string>> under_limits(const std::vector<std::string>& command,
                                              const Limits& limits) {
  if (!limits.any()) return command;
  SAVEGATE_TRY(const std::string program, find_executable(command.front()));
  std::vector<std::string> words = {"prlimit"};
  if (limits.open_files) words.push_back("--nofile=" + std::to_string(*limits.open_files));
  if (limits.file_size) words.push_back("--fsize=" + std::to_string(*limits.file_size));
  words.push_back("--");
  words.push_back(program);
  words.insert(words.end(), command.begin() + 1, command.end());
  return words;
}

// `rank` is kLauncher for the launcher of them all.
Result<WatchedRank> launch(const LifeSetup& setup, const RankPlaces& places,
                           const std::vector<std::string>& command,
                           std::vector<std::string> environment, int rank) {
  const std::string name = rank == kLauncher ? "launcher" : "rank-" + std::to_string(rank);
  SAVEGATE_TRY(BoundedLog log, BoundedLog::create(places.logs + "/" + name + ".log"));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("pipe", ""));
  UniqueFd output(ends[0]);
  const UniqueFd rank_end(ends[1]);
  ::fcntl(output.get(), F_SETFL, O_NONBLOCK);
  SpawnRequest request;
  const bool in_cgroup = places.cgroup != nullptr && rank != kLauncher;
  request.command = in_cgroup ? places.cgroup->begun_in(rank, command) : command;
  request.environment = std::move(environment);
  request.output = rank_end.get();
  const LifeSpec& life = setup.scenario.lives[static_cast<std::size_t>(setup.number - 1)];
  const bool needs_program = life.limits.any() || in_cgroup;
  ForkServers* servers = needs_program ? nullptr : setup.options.fork_servers;
  SAVEGATE_TRY(Process process,
               servers != nullptr ? servers->spawn(request) : Process::spawn(request));
  return WatchedRank{.rank = rank,
                     .process = std::move(process),
                     .output = std::move(output),
                     .log = std::move(log)};
}

Result<WatchedRank> launch_launcher(const LifeSetup& setup, const RankPlaces& places,
                                    const std::vector<std::string>& command) {
  const LauncherSetup launcher{.name = setup.subject.launcher,
                               .options = setup.subject.launcher_options,
                               .world = setup.scenario.world,
                               .port = places.port,
                               .python = python_program(setup.options.bin),
                               .bin = setup.options.bin,
                               .logs = places.logs};
  std::vector<std::string> changes = common_environment(setup, places);
  // The runner's own rank, if it has one, is none of theirs.
  changes.insert(changes.end(), {"RANK=", "SAVEGATE_EVENTS_DIRECTORY=" + places.events,
                                 "SAVEGATE_RANKS=" + places.ranks});
  const auto own = launcher_environment(launcher);
  changes.insert(changes.end(), own.begin(), own.end());
  return launch(setup, places, launcher_command(launcher, command), environment_with(changes),
                kLauncher);
}

}  // namespace

Result<std::vector<WatchedRank>> launch_ranks(const LifeSetup& setup, const RankPlaces& places) {
  const auto& words = setup.options.command.empty() ? setup.subject.command : setup.options.command;
  SAVEGATE_TRY(const std::vector<std::string> unlimited,
               expand_command(words, command_values(setup)));
  const LifeSpec& life = setup.scenario.lives[static_cast<std::size_t>(setup.number - 1)];
  SAVEGATE_TRY(const std::vector<std::string> command, under_limits(unlimited, life.limits));
  std::vector<WatchedRank> ranks;
  if (setup.subject.launcher != "direct") {
    SAVEGATE_TRY(WatchedRank launcher, launch_launcher(setup, places, command));
    ranks.push_back(std::move(launcher));
    return ranks;
  }
  for (int rank = 0; rank < setup.scenario.world; ++rank) {
    auto launched = launch(setup, places, command, environment_of(setup, places, rank), rank);
    if (!launched) {
      for (WatchedRank& earlier : ranks) {
        earlier.process.kill_group(SIGKILL);
        earlier.process.wait_for(1'000'000'000);
      }
      launched.error().rank = rank;
      return fail(std::move(launched).error());
    }
    ranks.push_back(std::move(*launched));
  }
  return ranks;
}

}  // namespace savegate::harness
