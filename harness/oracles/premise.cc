#include "harness/oracles/premise.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <csignal>

#include "harness/oracles/death.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

bool mentions(const Event& event, std::string_view errno_name) {
  return event.error && (event.error->errno_name == errno_name ||
                         event.error->text.find(errno_name) != std::string::npos);
}

// "save 3" and "save 3/commit" are of one save; a glob such as "save *" is of any.
std::optional<int> save_of_phase(std::string_view phase) {
  constexpr std::string_view kPrefix = "save ";
  if (!phase.starts_with(kPrefix)) return std::nullopt;
  phase.remove_prefix(kPrefix.size());
  int save = 0;
  const char* end = phase.data() + phase.size();
  const auto parsed = std::from_chars(phase.data(), end, save);
  if (parsed.ec != std::errc() || (parsed.ptr != end && *parsed.ptr != '/')) return std::nullopt;
  return save;
}

const faults::Rule* rule_of(const Life& life, const faults::FiredRecord& fired) {
  const auto& rules = life.spec.plan.rules;
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const faults::Rule& rule) {
    return rule.name == fired.rule;
  });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace

// The kernel refuses what is beyond a limit before the file system hears of it: that a limit acted
// is known from the ranks alone.
std::vector<std::string> unmet_limits(const Life& life) {
  const auto met = [&](std::string_view errno_name) {
    return std::any_of(life.events.begin(), life.events.end(), [&](const EventLog& log) {
      return std::any_of(log.events.begin(), log.events.end(),
                         [&](const Event& event) { return mentions(event, errno_name); });
    });
  };
  const bool ended_by_size =
      std::any_of(life.record.ranks.begin(), life.record.ranks.end(),
                  [](const RankProcess& rank) { return rank.signal == SIGXFSZ; });
  Lines lines;
  if (life.spec.limits.open_files && !met("EMFILE")) {
    lines.push_back(fmt::format("life {}: the limit of {} open files was never met (no EMFILE)",
                                life.record.number, *life.spec.limits.open_files));
  }
  if (life.spec.limits.file_size && !ended_by_size && !met("EFBIG")) {
    lines.push_back(
        fmt::format("life {}: the limit of {} bytes a file was never met (no EFBIG, no SIGXFSZ)",
                    life.record.number, *life.spec.limits.file_size));
  }
  return lines;
}

std::vector<std::string> strayed_hits(const View& view, const Life& life) {
  Lines lines;
  for (const faults::FiredRecord& fired : life.fired) {
    const faults::Rule* rule = rule_of(life, fired);
    const auto save = rule == nullptr ? std::nullopt : save_of_phase(rule->match.phase);
    const auto meant = save ? view.step_of_save(*save) : std::nullopt;
    const auto hit = view.step_of(view.classify(fired.path).final_path);
    if (!meant || !hit || *meant == *hit) continue;
    // What a save does to older checkpoints, as in rotation, is its own doing.
    const SaveGroup* other = view.group_at(life, fired.time_ns, hit);
    if (other == nullptr) continue;
    lines.push_back(fmt::format(
        "life {} rule \"{}\" is for save {} (step {}), but hit {} of {}, which was still under way",
        life.record.number, fired.rule, *save, *meant, fired.path,
        other->save ? fmt::format("save {}", *other->save) : fmt::format("step {}", *hit)));
  }
  return lines;
}

bool was_put_to_the_test(const View& view, const Life& life) {
  return !life.record.ranks.empty() && (!life.spec.memory.kills() || died_by_memory(life)) &&
         std::all_of(
             life.record.rules.begin(), life.record.rules.end(),
             [](const reports::FiredCount& rule) { return !rule.required || rule.hits > 0; }) &&
         std::none_of(
             life.record.tampered.begin(), life.record.tampered.end(),
             [](const std::string& tampered) { return tampered.starts_with("not done"); }) &&
         unmet_limits(life).empty() && strayed_hits(view, life).empty();
}

}  // namespace savegate::harness
