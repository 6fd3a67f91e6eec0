// savegate-fs: one mount, from the command line.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "fusefs/options.h"

int main(int argc, char** argv) {
  savegate::fusefs::DaemonOptions options;
  CLI::App app(
      "A file system that passes a directory through and lies on command.\n\n"
      "  savegate-fs --backing /data/real --mount /data/faulty --control /run/sg.sock "
      "--plan enospc.toml",
      "savegate-fs");
  app.add_option("--backing", options.backing, "directory whose content is shown")->required();
  app.add_option("--mount", options.mount, "directory to mount at")->required();
  app.add_option("--control", options.control, "control socket to make")->required();
  app.add_option("--plan", options.plan, "fault plan (TOML) to arm at start");
  app.add_option("--layout", options.layout, "TOML file with a [layout] table: roles of files");
  app.add_option("--life", options.life, "number of this life, for rules and records");
  app.add_option("--trace", options.trace, "file to record all operations in");
  app.add_option("--fired", options.fired, "file to append fired records to");
  app.add_option("--ready-fd", options.ready_fd, "descriptor that gets \"ready\" once mounted");
  app.add_option("--parent-pid", options.parent_pid, "unmount when this process ends");
  app.add_flag("!--no-passthrough", options.passthrough,
               "reads and writes of all files reach this program");
  double hold_limit = 0;
  app.add_option("--hold-limit", hold_limit,
                 "seconds for which an operation may be held; then the mount is aborted")
      ->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  options.hold_limit = std::chrono::milliseconds(static_cast<std::int64_t>(hold_limit * 1e3));
  const auto ended = savegate::fusefs::run_daemon(options);
  if (ended) return 0;
  std::fprintf(stderr, "savegate-fs: %s\n", ended.error().to_string().c_str());
  return ended.error().code == savegate::Code::kInvalid ? 2 : 3;
}
