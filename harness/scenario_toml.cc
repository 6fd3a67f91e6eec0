// A scenario as a suite of its own, in the TOML of docs/scenarios.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "faults/toml.h"
#include "harness/scenario.h"

namespace savegate::harness {
namespace {

using faults::toml_string;

std::string toml_list(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  quoted.reserve(words.size());
  for (const std::string& word : words) quoted.push_back(toml_string(word));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string toml_key(const std::string& name) {
  const bool bare = !name.empty() && name.find_first_not_of(
                                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789-_") == std::string::npos;
  return bare ? name : toml_string(name);
}

std::string toml_map(const std::map<std::string, std::string>& values) {
  std::vector<std::string> entries;
  entries.reserve(values.size());
  for (const auto& [name, value] : values)
    entries.push_back(fmt::format("{} = {}", toml_key(name), toml_string(value)));
  return fmt::format("{{ {} }}", fmt::join(entries, ", "));
}

std::string toml_bytes(std::uint64_t bytes) { return toml_string(faults::print_bytes(bytes)); }

std::string toml_duration(std::uint64_t nanoseconds) {
  return toml_string(faults::print_duration(nanoseconds));
}

std::string toml_tamper(const Tamper& tamper) {
  std::string table = fmt::format("{{ kind = {}, role = {}, rank = {}, at = {}",
                                  toml_string(tamper_name(tamper.kind)),
                                  toml_string(faults::role_name(tamper.role)), tamper.rank,
                                  toml_string(faults::print_amount(tamper.at)));
  if (tamper.other_rank) table += fmt::format(", other_rank = {}", *tamper.other_rank);
  if (!tamper.path.empty()) table += fmt::format(", path = {}", toml_string(tamper.path));
  return table + " }";
}

std::string toml_limits(const Limits& limits) {
  std::vector<std::string> entries;
  if (limits.open_files) entries.push_back(fmt::format("open_files = {}", *limits.open_files));
  if (limits.file_size)
    entries.push_back(fmt::format("file_size = {}", toml_bytes(*limits.file_size)));
  return fmt::format("{{ {} }}", fmt::join(entries, ", "));
}

std::string toml_memory(const MemoryLimit& memory) {
  std::string table = fmt::format("{{ limit = {}, enforced_by = {}", toml_bytes(memory.bytes),
                                  toml_string(enforcer_name(memory.enforced_by)));
  if (memory.enforced_by != MemoryLimit::EnforcedBy::kKernel)
    table += fmt::format(", threshold = {}", memory.threshold);
  return table + " }";
}

std::string toml_expect(const Expect& expect) {
  std::string table =
      fmt::format("{{ outcome = {}, within = {}", toml_string(outcome_name(expect.outcome)),
                  toml_duration(expect.within_ns));
  if (!expect.resumed.empty()) table += fmt::format(", resumed = {}", toml_list(expect.resumed));
  if (!expect.names.empty()) table += fmt::format(", names = {}", toml_string(expect.names));
  if (expect.death) table += fmt::format(", death = {}", toml_string(death_name(*expect.death)));
  return table + " }";
}

std::string toml_life(const LifeSpec& life) {
  std::string text = fmt::format("\n[[scenario.life]]\nuntil = {}\nexpect = {}\nno_progress = {}\n",
                                 toml_string(life.until), toml_expect(life.expect),
                                 toml_duration(life.no_progress_ns));
  if (!life.env.empty()) text += fmt::format("env = {}\n", toml_map(life.env));
  if (life.limits.any()) text += fmt::format("limits = {}\n", toml_limits(life.limits));
  if (life.memory.any()) text += fmt::format("memory = {}\n", toml_memory(life.memory));
  if (!life.change.empty()) text += fmt::format("change = {}\n", toml_string(life.change));
  if (life.wake_probe) text += "wake_probe = true\n";
  if (!life.hog.at.empty())
    text += fmt::format("hog = {{ at = {}, headroom = {} }}\n", toml_string(life.hog.at),
                        toml_bytes(life.hog.headroom));
  if (!life.tamper.empty()) {
    std::vector<std::string> tables;
    tables.reserve(life.tamper.size());
    for (const Tamper& tamper : life.tamper) tables.push_back(toml_tamper(tamper));
    text += fmt::format("tamper = [{}]\n", fmt::join(tables, ", "));
  }
  for (const faults::Rule& rule : life.plan.rules)
    text += "[[scenario.life.rules]]\n" + faults::print_rule(rule);
  for (const faults::BudgetSpec& budget : life.plan.budgets)
    text += "[[scenario.life.budgets]]\n" + faults::print_budget(budget);
  return text;
}

}  // namespace

std::string print_suite_of(const Scenario& scenario) {
  std::string text = fmt::format(
      "name = {}\nsummary = {}\n\n[[scenario]]\nname = {}\nsummary = {}\n"
      "world = {}\nseed = {}\n",
      toml_string(scenario.suite), toml_string(scenario.summary), toml_string(scenario.name),
      toml_string(scenario.summary), scenario.world, scenario.seed);
  if (!scenario.requirements.empty())
    text += fmt::format("requirements = {}\n", toml_list(scenario.requirements));
  if (!scenario.devices.empty()) text += fmt::format("devices = {}\n", toml_list(scenario.devices));
  if (!scenario.variables.empty())
    text += fmt::format("variables = {}\n", toml_map(scenario.variables));
  for (const LifeSpec& life : scenario.lives) text += toml_life(life);
  return text;
}

}  // namespace savegate::harness
