// savegate-reference: a sound save path on N ranks, and what it takes to see it at work.

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "gpu/digest.h"
#include "scenarios/subjects/reference/breaks.h"
#include "scenarios/subjects/reference/program.h"
#include "scenarios/subjects/reference/reader.h"

namespace savegate::reference {
namespace {

struct Arguments {
  std::uint64_t state_bytes = 8 << 20;
  std::uint64_t rank_state_bytes = 0;
  double collective_timeout = 5;  // seconds
  int expert_parallel = 1;
  bool asynchronous = false;
  std::size_t most_in_flight = 1;
  bool writer_process = false;
  bool through_copy = false;
  std::uint64_t step_bytes = 0;
  bool step_log = false;
  int format = kNewestFormat;
  std::string read;
  std::string broken;
  bool list_breaks = false;
  std::string code = "savegate-reference 1";
  std::string data = "made-up samples 1";
  std::string recipe = "adam, 0.01, decay 0.98";
  std::uint64_t total_steps = 100000;
};

void declare(CLI::App& app, Arguments& arguments) {
  app.add_option("--state", arguments.state_bytes, "Bytes of state of all ranks, such as 8MiB")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--rank-state", arguments.rank_state_bytes,
                 "Bytes of state of each rank, in place of --state")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option(
         "--collective-timeout", arguments.collective_timeout,
         "Seconds after which a silent peer is an error, and one more for each 64 MiB of a rank")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--expert-parallel", arguments.expert_parallel,
                 "Expert ranks, each with experts of its own; the ranks divided by it share them")
      ->check(CLI::PositiveNumber)
      ->envname("SAVEGATE_REFERENCE_EXPERT_PARALLEL")
      ->capture_default_str();
  app.add_flag("--async", arguments.asynchronous,
               "Take a snapshot at the save call and write it while training goes on");
  app.add_option("--in-flight", arguments.most_in_flight,
                 "Asynchronous saves that may be under way at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--writer-process", arguments.writer_process,
                 "Write the files of a save in a child process, on CPU (true, false)")
      ->capture_default_str();
  app.add_option("--through-copy", arguments.through_copy,
                 "Write from, and load into, a copy of the tensors on their device (true, false)")
      ->capture_default_str();
  app.add_option("--step-memory", arguments.step_bytes,
                 "Bytes of device memory that a training step works in, such as 64MiB")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--step-log", arguments.step_log,
                 "Write a line a step beside the checkpoints (true, false)")
      ->capture_default_str();
  app.add_option("--format", arguments.format,
                 "Be an older version, that writes this format and knows no newer one")
      ->check(CLI::Range(1, kNewestFormat))
      ->envname("SAVEGATE_REFERENCE_FORMAT")
      ->capture_default_str();
  app.add_option("--read", arguments.read, "Print the checkpoints in this directory and leave");
  app.add_option("--break", arguments.broken, "Do one thing wrong on purpose");
  app.add_flag("--list-breaks", arguments.list_breaks, "Print what --break knows");
  app.add_option("--code", arguments.code, "Run contract: the code")
      ->envname("SAVEGATE_REFERENCE_CODE");
  app.add_option("--data", arguments.data, "Run contract: the data")
      ->envname("SAVEGATE_REFERENCE_DATA");
  app.add_option("--recipe", arguments.recipe, "Run contract: the recipe")
      ->envname("SAVEGATE_REFERENCE_RECIPE");
  app.add_option("--total-steps", arguments.total_steps, "Run contract: the steps of the run")
      ->envname("SAVEGATE_REFERENCE_TOTAL_STEPS");
}

Options options_of(const Arguments& arguments) {
  Options options;
  options.state_bytes = arguments.state_bytes;
  if (arguments.rank_state_bytes > 0) {
    const auto world = static_cast<std::uint64_t>(worker::read_environment().world);
    options.state_bytes = arguments.rank_state_bytes * world;
  }
  options.collective_timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(arguments.collective_timeout * 1000));
  options.expert_parallel = arguments.expert_parallel;
  options.asynchronous = arguments.asynchronous;
  options.most_in_flight = arguments.most_in_flight;
  options.writer_process = arguments.writer_process;
  options.through_copy = arguments.through_copy;
  options.step_bytes = arguments.step_bytes;
  options.step_log = arguments.step_log;
  options.format = arguments.format;
  const std::string recipe = arguments.recipe + ", " + std::to_string(options.state_bytes);
  options.contract = {.code = gpu::digest_of(arguments.code).hex(),
                      .data = gpu::digest_of(arguments.data).hex(),
                      .recipe = gpu::digest_of(recipe).hex(),
                      .total_steps = arguments.total_steps};
  return options;
}

int read_and_print(const std::string& root) {
  auto lines = read_checkpoints(root);
  if (!lines) {
    std::fprintf(stderr, "savegate-reference: %s\n", lines.error().to_string().c_str());
    return kFailed;
  }
  std::fputs(lines->c_str(), stdout);
  return std::fflush(stdout) == 0 ? kDone : kFailed;
}

int run(const Arguments& arguments) {
  if (arguments.list_breaks) {
    for (const Break& each : all_breaks()) std::printf("%-28s %s\n", each.name, each.summary);
    return kDone;
  }
  if (!arguments.read.empty()) return read_and_print(arguments.read);
  Options options = options_of(arguments);
  Parts parts = sound_parts();
  if (!arguments.broken.empty() && !apply_break(arguments.broken, options, parts)) {
    std::fprintf(stderr, "savegate-reference: no break `%s`; there are:\n",
                 arguments.broken.c_str());
    for (const Break& each : all_breaks()) std::fprintf(stderr, "  %s\n", each.name);
    return kRefused;
  }
  return run_program(options, parts);
}

}  // namespace
}  // namespace savegate::reference

int main(int argc, char** argv) {
  CLI::App app{"A sound save path: ranks, state, saves, resumes."};
  savegate::reference::Arguments arguments;
  savegate::reference::declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : savegate::reference::kRefused;
  }
  // Gloo writes to a peer's socket as to any other: a peer that died must be an error, not our end.
  std::signal(SIGPIPE, SIG_IGN);
  // So is a file that may not grow: the save fails with EFBIG, on all ranks.
  std::signal(SIGXFSZ, SIG_IGN);
  return savegate::reference::run(arguments);
}
