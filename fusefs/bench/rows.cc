#include "fusefs/bench/rows.h"

#include <fmt/format.h>

#include "fusefs/bench/held.h"
#include "fusefs/bench/measure.h"
#include "fusefs/bench/workloads.h"
#include "fusefs/trust/mounted_daemon.h"

namespace savegate::fusefs::bench {

namespace {

constexpr int kHeld = 10'000;

using Workload = double (*)(const std::string&);

double one_writer(const std::string& folder) { return overwrite(folder, 1); }
double four_writers(const std::string& folder) { return overwrite(folder, 4); }

// Of every write of every file, and never acts.
constexpr const char* kNeverFires = R"(
[[rule]]
match = { op = "write", nth = 1000000000000 }
action = { errno = "EIO" }
)";

std::string rules_of_other_files(int count) {
  std::string plan;
  for (int i = 0; i < count; i++) {
    plan += fmt::format(
        "[[rule]]\nmatch = {{ op = \"write\", path = \"step_{}/**/shard-*\" }}\n"
        "action = {{ errno = \"EIO\" }}\n",
        i);
  }
  return plan;
}

Figure figure(const Compared& compared, const char* unit) {
  return {compared.ratio, fmt::format("{:.0f} → {:.0f} {}", compared.first, compared.second, unit)};
}

void need(const MountedDaemon& daemon) {
  if (!daemon.available()) give_up(daemon.why_not().c_str());
}

// The very same files, so that both have the same pages of memory.
Figure against_plain(const Setting& setting, const std::string& base, const std::string& plan,
                     Workload workload, const char* unit) {
  const MountedDaemon daemon(plan, {}, base);
  need(daemon);
  prepare(daemon.backing());
  return figure(in_turn(
                    setting.rounds, [&] { return workload(daemon.backing()); },
                    [&] { return workload(daemon.mount()); }),
                unit);
}

Row on_tmpfs(const char* name, const char* what, double goal, const std::string& plan,
             Workload workload, const char* unit) {
  return {name, what, goal, true, "", [plan, workload, unit](const Setting& setting) {
            return against_plain(setting, setting.memory, plan, workload, unit);
          }};
}

Figure rules_against_none(const Setting& setting) {
  const MountedDaemon none("", {"--no-passthrough"}, setting.memory);
  const MountedDaemon many(rules_of_other_files(1000), {"--no-passthrough"}, setting.memory);
  need(none);
  need(many);
  prepare(none.backing());
  prepare(many.backing());
  return figure(in_turn(
                    setting.rounds, [&] { return random_writes(none.mount()); },
                    [&] { return random_writes(many.mount()); }),
                "/s");
}

Figure latency(const Setting& setting) {
  const Latency found = beside_held(setting.rounds, kHeld, setting.memory);
  return {found.ratio, fmt::format("{:.0f} → {:.0f} us", found.alone * 1e6, found.beside * 1e6)};
}

Row kill_row(const std::string& operation) {
  return {"kill-" + operation,
          "SIGKILL of a process held in " + operation,
          100,
          false,
          " ms",
          [operation](const Setting& setting) {
            return Figure{killed_in(operation, setting.rounds, setting.memory) * 1e3, "longest"};
          }};
}

}  // namespace

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      on_tmpfs("overwrite", "nothing armed: 1 MiB overwrite", 0.95, "", one_writer, "MB/s"),
      on_tmpfs("read", "nothing armed: cold read", 0.95, "", cold_read, "MB/s"),
      on_tmpfs("random", "nothing armed: random 4 KiB writes", 0.75, "", random_writes, "/s"),
      on_tmpfs("writers", "nothing armed: 4 writers", 0.95, "", four_writers, "MB/s"),
      on_tmpfs("armed-overwrite", "armed on the file: 1 MiB overwrite", 0.42, kNeverFires,
               one_writer, "MB/s"),
      on_tmpfs("armed-writers", "armed on the files: 4 writers", 0.45, kNeverFires, four_writers,
               "MB/s"),
      on_tmpfs("armed-read", "armed on the file's writes: cold read", 0.90, kNeverFires, cold_read,
               "MB/s"),
      on_tmpfs("small-files", "create, 4 KiB, fsync, close, rename", 0.12, "", small_files, "/s"),
      on_tmpfs("stat", "stat", 0.70, "", stats, "/s"),
      {"rules", "1,000 rules of other files against none, daemon path", 0.97, true, "",
       rules_against_none},
      {"held", "another file's write, p99, beside 10,000 held against none", 1.2, false, "",
       latency},
      kill_row("write"),
      kill_row("fsync"),
      kill_row("close"),
      kill_row("libaio"),
      kill_row("io_uring"),
      {"disk", "armed, on a disk: 1 MiB overwrite, fsync", 0.80, true, "",
       [](const Setting& setting) {
         return against_plain(setting, setting.disk, kNeverFires, overwrite_synced, "MB/s");
       }},
  };
  return all;
}

}  // namespace savegate::fusefs::bench
