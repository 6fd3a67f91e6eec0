#include "harness/cli/acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "faults/plan.h"
#include "harness/oracles.h"
#include "harness/oracles/view.h"
#include "reports/statistics.h"

namespace savegate::cli {
namespace {

using harness::Event;
using harness::EventKind;
using harness::Evidence;
using harness::Life;
using harness::View;
using reports::Measurement;
using reports::Outcome;
using reports::ScenarioResult;
using reports::Signoff;

// Those of docs/requirements.md.
constexpr std::array<std::pair<char, int>, 6> kRequirements = {
    {{'H', 7}, {'F', 10}, {'C', 12}, {'R', 7}, {'M', 6}, {'G', 5}}};

Result<harness::LifeSpec> killed_life(std::uint64_t save, std::vector<std::string> resumed) {
  harness::LifeSpec life;
  life.until = fmt::format("save {}", save);
  SAVEGATE_TRY(life.plan,
               faults::parse_plan(fmt::format("[[rule]]\nname = \"the job is killed within {0}\"\n"
                                              "match = {{ op = \"write\", rank = 0, phase = "
                                              "\"{0}\" }}\naction = {{ kill = \"SIGKILL\", "
                                              "target = \"job\" }}\n",
                                              life.until),
                                  "acceptance"));
  life.expect.outcome = harness::Outcome::kKilled;
  life.expect.resumed = std::move(resumed);
  return life;
}

Measurement seconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  if (from_ns == 0 || to_ns < from_ns) return std::nullopt;
  return static_cast<double>(to_ns - from_ns) / 1e9;
}

Measurement bytes_of(const std::vector<harness::Item>& items) {
  if (items.empty()) return std::nullopt;
  double bytes = 0;
  for (const harness::Item& item : items) bytes += static_cast<double>(item.bytes);
  return bytes;
}

std::uint64_t consecutive_saves(const View& view) {
  std::uint64_t count = 0;
  for (const harness::SaveGroup& group : view.groups())
    if (group.life->record.number == 1 && view.succeeded(group)) ++count;
  return count;
}

// C11 is of the whole sheet: no oracle alone can judge it.
reports::SignedRequirement judge_c11(const View& view, const ScenarioResult& result,
                                     const Signoff& sheet) {
  reports::SignedRequirement row{.id = "C11",
                                 .rule =
                                     "N consecutive saves, kill, resume in new processes, save "
                                     "again.",
                                 .outcome = std::string(outcome_name(result.outcome)),
                                 .summary = "",
                                 .evidence_file = result.directory + "/result.json",
                                 .evidence = {}};
  const std::uint64_t clean = consecutive_saves(view);
  if (result.outcome == Outcome::kPass && clean < sheet.saves) row.outcome = "INVALID";
  row.summary =
      fmt::format("{} of {} consecutive saves succeeded on every rank", clean, sheet.saves);
  if (row.outcome == "PASS")
    row.summary += fmt::format(
        "; two kills and resumes followed. With {:.4g} % confidence a save fails less often than "
        "once in {:.1f}",
        sheet.confidence * 100, 1 / reports::excluded_probability(clean, sheet.confidence));
  return row;
}

void add_requirements(const View& view, const ScenarioResult& result, Signoff& sheet) {
  std::map<std::string, std::string> rules;
  for (const harness::Oracle& oracle : harness::all_oracles())
    rules[std::string(oracle.requirement)] = oracle.rule;
  std::set<std::string> judged = {"C11"};
  sheet.requirements.push_back(judge_c11(view, result, sheet));
  for (const reports::Verdict& verdict : result.verdicts) {
    const bool skipped = verdict.outcome == Outcome::kSkip;
    judged.insert(verdict.requirement);
    sheet.requirements.push_back(
        {.id = verdict.requirement,
         .rule = rules[verdict.requirement],
         .outcome = skipped ? reports::kNotMeasured : std::string(outcome_name(verdict.outcome)),
         .summary = verdict.summary,
         .evidence_file = skipped ? "" : result.directory + "/result.json",
         .evidence = verdict.evidence});
  }
  for (const auto& [letter, count] : kRequirements)
    for (int number = 1; number <= count; ++number) {
      const std::string id = fmt::format("{}{}", letter, number);
      if (!judged.contains(id))
        sheet.requirements.push_back({.id = id,
                                      .rule = rules[id],
                                      .outcome = reports::kNotMeasured,
                                      .summary = "an acceptance does not judge it",
                                      .evidence_file = "",
                                      .evidence = {}});
    }
}

void add_saves(const View& view, Signoff& sheet) {
  for (const harness::SaveGroup& group : view.groups()) {
    for (const harness::SaveCall& call : group.calls) {
      if (call.state != harness::CallState::kSucceeded || call.end == nullptr) continue;
      sheet.save_rows.push_back(
          {.life = group.life->record.number,
           .save = group.save.value_or(0),
           .rank = call.rank,
           .bytes = bytes_of(call.begin->items),
           .call_seconds = seconds(call.begin->time_ns, call.end->time_ns),
           .durable_seconds = call.durable == nullptr
                                  ? std::nullopt
                                  : seconds(call.end->time_ns, call.durable->time_ns)});
    }
  }
}

void add_restores(const Life& life, int world, Signoff& sheet) {
  for (int rank = 0; rank < world; ++rank) {
    const Event* hello = harness::first_event(life, rank, EventKind::kHello);
    const Event* resumed = harness::resumed_event(life, rank);
    if (hello == nullptr || resumed == nullptr || !resumed->ok || !resumed->step) continue;
    const harness::RankProcess* process = harness::process_of(life, rank);
    sheet.restore_rows.push_back(
        {.life = life.record.number,
         .rank = rank,
         .bytes = bytes_of(resumed->items),
         .start_seconds =
             process == nullptr ? std::nullopt : seconds(process->started_ns, hello->time_ns),
         .restore_seconds = seconds(hello->time_ns, resumed->time_ns)});
    sheet.versions.insert(hello->versions.begin(), hello->versions.end());
  }
}

void add_checkpoints(const View& view, const Life& life,
                     std::map<std::int64_t, reports::CheckpointRow>& checkpoints) {
  std::map<std::int64_t, reports::CheckpointRow> found;
  for (const harness::FileEntry& entry : life.record.tree_after) {
    const auto step = view.step_of(entry.path);
    if (entry.type != 'f' || !step || view.classify(entry.path).temporary) continue;
    reports::CheckpointRow& row = found[*step];
    row.step = *step;
    ++row.files;
    row.bytes += entry.size;
  }
  for (const auto& [step, row] : found) checkpoints[step] = row;
}

// What the program said, and what the runner measured from outside.
void add_memory(const Life& life,
                std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t>& most) {
  const std::string segment = life.record.number == 1 ? "consecutive saves" : "kill and resume";
  const auto keep = [&](const std::string& phase, const auto& facts) {
    for (const auto& [name, value] : facts) {
      if (!value) continue;
      std::uint64_t& peak = most[{segment, phase, name}];
      peak = std::max<std::uint64_t>(peak, *value);
    }
  };
  for (const harness::EventLog& log : life.events)
    for (const Event& event : log.events) keep(event.name, event.memory);
  if (life.memory)
    for (const harness::MemoryRecord& record : *life.memory) keep(record.phase, record.facts);
}

void add_unmeasured(const Evidence& evidence, Signoff& sheet) {
  auto& lines = sheet.unmeasured;
  double largest = 0;
  for (const reports::SaveRow& row : sheet.save_rows)
    largest = std::max(largest, row.bytes.value_or(0));
  lines.push_back(
      largest > 0 ? fmt::format("states above {:.1f} MiB a rank", largest / 1048576.0)
                  : std::string("the size of the state is not known: no save_begin names items"));
  lines.push_back(fmt::format("worlds other than {} ranks, and more than one node", sheet.world));
  if (sheet.device != "cuda")
    lines.push_back("a GPU: this ran on " + sheet.device + ", without NCCL and device memory");
  if (sheet.backing.empty())
    lines.push_back("the file system that the run will use: no --backing was given");
  if (sheet.memory.empty())
    lines.push_back("memory: not obtained, as no rank lived to be measured at a phase");
  lines.push_back("training longer than " + evidence.scenario.lives.back().until +
                  ", and other work on the same machines beside it");
  lines.push_back("power loss, and faults other than two kills of the whole job");
}

}  // namespace

Result<harness::Scenario> acceptance_scenario(const harness::Subject& subject, int world,
                                              std::uint64_t saves, std::uint64_t seed) {
  const auto save = [](std::uint64_t number) { return fmt::format("save {}", number); };
  // An asynchronous save may still be under way as the next one begins.
  const auto resumed = [&](std::uint64_t number) {
    std::vector<std::string> allowed = {save(number)};
    if (subject.claims.async) allowed.push_back(number > 1 ? save(number - 1) : "none");
    return allowed;
  };
  harness::Scenario scenario;
  scenario.suite = "signoff";
  scenario.name = "acceptance";
  scenario.summary = fmt::format(
      "{} consecutive saves, a kill, a resume in new processes, another save, a second kill and "
      "resume.",
      saves);
  scenario.requirements = {"H1", "H4", "H5",  "H7",  "F1", "F2", "F3",
                           "C2", "C8", "C10", "C12", "R1", "R2", "R5"};
  scenario.world = world;
  scenario.seed = seed;
  SAVEGATE_TRY(harness::LifeSpec first, killed_life(saves + 1, {"none"}));
  SAVEGATE_TRY(harness::LifeSpec second, killed_life(saves + 2, resumed(saves)));
  harness::LifeSpec last;
  last.until = save(saves + 2);
  last.expect.resumed = resumed(saves + 1);
  scenario.lives = {std::move(first), std::move(second), std::move(last)};
  for (harness::LifeSpec& life : scenario.lives) life.plan.seed = seed;
  return scenario;
}

void fill_sheet(const Evidence& evidence, const ScenarioResult& result, Signoff& sheet) {
  const View view(evidence);
  sheet.outcome = result.outcome;
  sheet.provenance = evidence.provenance;
  add_requirements(view, result, sheet);
  add_saves(view, sheet);
  std::map<std::int64_t, reports::CheckpointRow> checkpoints;
  std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> most;
  for (const Life& life : evidence.lives) {
    add_restores(life, view.world(), sheet);
    add_checkpoints(view, life, checkpoints);
    add_memory(life, most);
  }
  for (const auto& [step, row] : checkpoints) sheet.checkpoints.push_back(row);
  for (const auto& [key, bytes] : most)
    sheet.memory.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), bytes});
  add_unmeasured(evidence, sheet);
}

}  // namespace savegate::cli
