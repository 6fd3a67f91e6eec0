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

// Whether the rule can act on what changes files; what all ranks read stays theirs.
bool acts_on_changes(const faults::Match& match) {
  if (match.phase.starts_with("load")) return false;
  if (match.ops == 0) return true;
  for (int i = 0; i < faults::kOpCount; ++i) {
    const auto op = static_cast<faults::Op>(i);
    const faults::OpClass kind = faults::op_class(op);
    const bool changes = op != faults::Op::kRead && kind != faults::OpClass::kQuery &&
                         kind != faults::OpClass::kPhase;
    if (changes && (match.ops & faults::op_bit(op)) != 0) return true;
  }
  return false;
}

// A rank that writes stays, any other becomes one that does; none twice.
std::vector<int> among(const std::vector<int>& writers, const std::vector<int>& ranks) {
  std::vector<int> found;
  for (const int rank : ranks) {
    const bool writes = std::find(writers.begin(), writers.end(), rank) != writers.end();
    const int writer = writes ? rank : writers[static_cast<std::size_t>(rank) % writers.size()];
    if (std::find(found.begin(), found.end(), writer) == found.end()) found.push_back(writer);
  }
  return found;
}

std::string made_name(const faults::Rule& rule) {
  return fmt::format("{} on {}", to_string(rule.action), to_string(rule.match));
}

void move_to_writers(const std::vector<int>& writers, LifeSpec& life) {
  std::vector<faults::Rule> moved;
  for (faults::Rule rule : life.plan.rules) {
    if (acts_on_changes(rule.match)) {
      const bool was_made = rule.name == made_name(rule);
      rule.match.ranks = among(writers, rule.match.ranks);
      if (was_made) rule.name = made_name(rule);
    }
    const bool is_there = std::any_of(moved.begin(), moved.end(), [&](const faults::Rule& other) {
      return other.match == rule.match && other.action == rule.action;
    });
    if (!is_there) moved.push_back(std::move(rule));
  }
  life.plan.rules = std::move(moved);
  for (faults::BudgetSpec& budget : life.plan.budgets) budget.ranks = among(writers, budget.ranks);
  const int files = static_cast<int>(writers.size());  // a tamper's rank counts them
  for (Tamper& tamper : life.tamper) {
    tamper.rank %= files;
    if (tamper.other_rank) *tamper.other_rank %= files;
  }
}

std::string inapplicable(const LifeSpec& life, const Subject& subject) {
  for (const faults::Rule& rule : life.plan.rules) {
    if (std::holds_alternative<faults::LoseAction>(rule.action) && !subject.claims.durable) {
      return "subject.toml does not claim that what it announces is durable: a power loss may "
             "take it";
    }
    if (rule.required && !rule.match.phase.empty() && !subject.events) {
      return "a fault of it waits for a phase of the save or load, and a program without events "
             "tells "
             "of none: match paths in place of phases";
    }
    if (rule.required && rule.match.role && !has_files_of(subject.layout, *rule.match.role)) {
      return no_such_files(*rule.match.role);
    }
  }
  for (const Tamper& tamper : life.tamper) {
    if (tamper.path.empty() && !has_files_of(subject.layout, tamper.role)) {
      return no_such_files(tamper.role);
    }
    if (tamper.kind == Tamper::Kind::kSwap && subject.writers.size() == 1) {
      return "it exchanges the files of two ranks, and subject.toml says that one rank writes them";
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
  std::vector<int> writers = subject.writers;
  std::erase_if(writers, [&](int rank) { return rank >= scenario.world; });
  for (LifeSpec& life : scenario.lives) {
    if (!writers.empty()) move_to_writers(writers, life);
    const auto change = subject.changes.find(life.change);
    if (life.change.empty() || change == subject.changes.end()) continue;
    const std::size_t equals = change->second.find('=');
    life.env[change->second.substr(0, equals)] = change->second.substr(equals + 1);
  }
  return scenario;
}

}  // namespace savegate::harness
