#include "harness/applicable.h"

#include <fmt/format.h>

#include <algorithm>

namespace savegate::harness {
namespace {

bool has_files_of(const faults::Layout& layout, faults::Role role) {
  switch (role) {
    case faults::Role::kShard:
      return !layout.shard.empty();
    case faults::Role::kMarker:
      return !layout.marker.empty();
    case faults::Role::kPointer:
      return !layout.pointer.empty();
    case faults::Role::kAuxiliary:
      return !layout.auxiliary.empty();
    case faults::Role::kNone:
      break;
  }
  return true;
}

std::string no_such_files(faults::Role role) {
  return fmt::format("the layout in subject.toml names no {} files", faults::role_name(role));
}

std::string inapplicable(const LifeSpec& life, const Subject& subject) {
  for (const faults::Rule& rule : life.plan.rules) {
    if (std::holds_alternative<faults::LoseAction>(rule.action) && !subject.claims.durable) {
      return "subject.toml does not claim that what it announces is durable: a power loss may "
             "take it";
    }
    if (rule.required && rule.match.role && !has_files_of(subject.layout, *rule.match.role)) {
      return no_such_files(*rule.match.role);
    }
  }
  for (const Tamper& tamper : life.tamper) {
    if (tamper.path.empty() && !has_files_of(subject.layout, tamper.role)) {
      return no_such_files(tamper.role);
    }
  }
  if (!life.change.empty() && !subject.changes.contains(life.change)) {
    return fmt::format("subject.toml says under [changes] of no way to change its {}", life.change);
  }
  return "";
}

}  // namespace

std::string inapplicable(const Scenario& scenario, const Subject& subject,
                         const std::string& device) {
  const auto& devices = scenario.devices;
  if (!devices.empty() && std::find(devices.begin(), devices.end(), device) == devices.end()) {
    return fmt::format("it is written for --device {}", fmt::join(devices, " or "));
  }
  if (scenario.has_neighbour() && device == "cpu") {
    return "it needs a device with memory of its own: --device cuda, or simulated";
  }
  if (scenario.limits_memory() && subject.launcher != "direct") {
    return "memory is limited for ranks that savegate starts itself, not through a launcher";
  }
  for (const auto& [name, value] : scenario.variables) {
    if (scenario.limits_memory() && !subject.variables.contains(name)) {
      return fmt::format("its limit of memory is written for a subject with the variable {}", name);
    }
  }
  for (const LifeSpec& life : scenario.lives) {
    std::string reason = inapplicable(life, subject);
    if (!reason.empty()) return reason;
  }
  return "";
}

reports::ScenarioResult not_run(const Scenario& scenario, reports::Outcome outcome,
                                const std::string& reason) {
  reports::ScenarioResult result;
  result.suite = scenario.suite;
  result.scenario = scenario.name;
  result.point = scenario.point;
  result.summary = scenario.summary;
  result.requirements = scenario.requirements;
  result.seed = scenario.seed;
  result.world = scenario.world;
  result.outcome = outcome;
  result.verdicts.push_back(
      {.requirement = "H1", .outcome = outcome, .summary = "not run: " + reason, .evidence = {}});
  return result;
}

Scenario resolved_for(Scenario scenario, const Subject& subject) {
  for (LifeSpec& life : scenario.lives) {
    const auto change = subject.changes.find(life.change);
    if (life.change.empty() || change == subject.changes.end()) continue;
    const std::size_t equals = change->second.find('=');
    life.env[change->second.substr(0, equals)] = change->second.substr(equals + 1);
  }
  return scenario;
}

}  // namespace savegate::harness
