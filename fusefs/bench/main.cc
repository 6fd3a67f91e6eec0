// fusefs_bench: prints each figure of savegate-fs beside its goal.
#define FUSE_USE_VERSION 314
#include <fmt/format.h>
#include <fuse_lowlevel.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fusefs/bench/rows.h"

namespace {

using savegate::fusefs::bench::Row;

std::string processor() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

void print_machine(int rounds) {
  utsname system{};
  ::uname(&system);
  fmt::print("{}, {} CPUs, Linux {}, libfuse {}; medians of {} rounds in turn\n\n", processor(),
             std::thread::hardware_concurrency(), system.release, fuse_pkgversion(), rounds);
}

void print(const Row& row, const savegate::fusefs::bench::Setting& setting) {
  const auto figure = row.measure(setting);
  const bool reached = row.at_least ? figure.value >= row.goal : figure.value <= row.goal;
  fmt::print("{:<16} {:<60} {:>7.2f}{:<3}  {} {}{:<3}  {:<6}  {}\n", row.name, row.what,
             figure.value, row.unit, row.at_least ? "≥" : "≤", row.goal, row.unit,
             reached ? "ok" : "missed", figure.detail);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  savegate::fusefs::bench::Setting setting{
      .rounds = 5, .memory = "/dev/shm", .disk = std::filesystem::temp_directory_path().string()};
  std::vector<std::string> names;
  CLI::App app("The figures of savegate-fs, each against the plain directory or its like.",
               "fusefs_bench");
  app.add_option("--rounds", setting.rounds, "counted rounds a figure")->capture_default_str();
  app.add_option("--memory", setting.memory, "folder on tmpfs")->capture_default_str();
  app.add_option("--disk", setting.disk, "folder on a disk")->capture_default_str();
  app.add_option("row", names, "rows to measure; all if none is named");
  CLI11_PARSE(app, argc, argv);

  print_machine(setting.rounds);
  for (const Row& row : savegate::fusefs::bench::rows()) {
    if (names.empty() || std::find(names.begin(), names.end(), row.name) != names.end()) {
      print(row, setting);
    }
  }
  return 0;
}
