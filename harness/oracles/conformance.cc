#include "harness/oracles/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/oracles/honesty.h"
#include "harness/oracles/outcome.h"
#include "harness/oracles/protocol.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;
using enum EventKind;

// A part of what a rank tells, and what is lost without it.
struct Part {
  const char* name;
  bool asked_for;  // by the contract, of every rank
  bool (*is)(const Event& event);
  Lines requirements;
};

template <EventKind kind>
bool is_of(const Event& event) {
  return event.kind == kind;
}

const std::vector<Part>& parts() {
  static const std::vector<Part> kParts = {
      {"hello", true, &is_of<kHello>, {"G1", "G2", "G3"}},
      {"resumed", true, &is_of<kResumed>, {"C3", "C5", "C7", "C8", "C10", "F2", "R2", "R3", "R5"}},
      {"update", true, &is_of<kUpdate>, {"G5", "R2", "R5"}},
      {"samples of update",
       false,
       [](const Event& event) { return event.kind == kUpdate && !event.samples.empty(); },
       {"R2"}},
      {"save_begin",
       true,
       &is_of<kSaveBegin>,
       {"C1", "C3", "C10", "C12", "F1", "F2", "F3", "F7", "F8", "G5", "R2", "R5", "expect"}},
      {"items of save_begin",
       true,
       [](const Event& event) { return event.kind == kSaveBegin && !event.items.empty(); },
       {"F1", "F2", "F5", "G5", "R2", "R5"}},
      {"save_end", true, &is_of<kSaveEnd>, {"C1", "C3", "C12", "F3", "F7", "F8", "expect"}},
      {"durable", false, &is_of<kDurable>, {}},
      {"done", true, &is_of<kDone>, {"C12", "expect"}},
      {"memory", false, &is_of<kMemory>, {"H6", "M4", "G1", "G2", "G3"}},
      {"collective_enter", false, &is_of<kCollectiveEnter>, {"C6"}},
      {"export", false, &is_of<kExport>, {"R4"}},
      {"phase", false, &is_of<kPhase>, {}},
  };
  return kParts;
}

// An asynchronous save ends with it; one that ends with the call may leave it out.
const Part kDurableOfAsynchronousSaves = {
    "durable", true, &is_of<kDurable>, {"C1", "C3", "C12", "F1", "F2", "F3", "G5", "expect"}};

Finding look_for(const Part& part, const Life& life) {
  Finding finding;
  finding.part = part.name;
  for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
    const auto& events = life.events[rank].events;
    const auto found =
        static_cast<std::size_t>(std::count_if(events.begin(), events.end(), part.is));
    finding.count += found;
    if (found > 0) continue;
    finding.conforms = part.asked_for ? Conforms::kMissing : Conforms::kLeftOut;
    finding.lines.push_back(fmt::format("none of rank {}", rank));
  }
  if (finding.conforms != Conforms::kYes) finding.requirements = part.requirements;
  if (finding.count == 0) finding.lines.clear();  // of no rank
  return finding;
}

// What is broken of the lines that there are: it makes everything INVALID.
Finding look_at_lines(const Life& life) {
  Finding finding;
  finding.part = "event lines";
  for (const EventLog& log : life.events) {
    finding.count += log.events.size();
    finding.lines.insert(finding.lines.end(), log.errors.begin(), log.errors.end());
  }
  const Lines broken = broken_protocol(life);
  finding.lines.insert(finding.lines.end(), broken.begin(), broken.end());
  if (finding.lines.empty()) return finding;
  finding.conforms = Conforms::kWrong;
  finding.requirements = {"all"};
  return finding;
}

void add_verdict(std::vector<Finding>& findings, const char* part,
                 const reports::Verdict& verdict) {
  if (verdict.outcome != reports::Outcome::kFail) return;
  Finding finding;
  finding.part = part;
  finding.conforms = Conforms::kWrong;
  finding.lines = verdict.evidence;
  finding.lines.insert(finding.lines.begin(), verdict.summary);
  finding.requirements = {verdict.requirement};
  findings.push_back(std::move(finding));
}

// What an exact resume takes and no event tells of. A kind that `claims.state` names is missing; of
// another R2 judges nothing, and judges the rest.
void add_kinds(std::vector<Finding>& findings, const Claims& claims, const Life& life) {
  std::set<std::string> kinds;
  for (const EventLog& log : life.events) {
    for (const Event& event : log.events) {
      for (const Item& item : event.items) kinds.insert(item.kind);
    }
  }
  if (kinds.empty()) return;  // said already
  for (const std::string& kind : state_kinds()) {
    if (kinds.contains(kind)) continue;
    const bool claimed =
        std::find(claims.state.begin(), claims.state.end(), kind) != claims.state.end();
    findings.push_back(
        {.part = fmt::format("items of kind {}", kind),
         .conforms = claimed ? Conforms::kMissing : Conforms::kLeftOut,
         .count = 0,
         .lines = {claimed ? "claims.state names it" : "R2 judges the state without it"},
         .requirements = claimed ? Lines{"R2"} : Lines{}});
  }
}

// A rank that tells of fewer random streams than it is said to have.
void add_rng_streams(std::vector<Finding>& findings, const Claims& claims, const Life& life) {
  Finding finding{.part = "items of kind rng",
                  .conforms = Conforms::kMissing,
                  .count = 0,
                  .lines = {},
                  .requirements = {"R2"}};
  for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
    const Event* save = first_event(life, static_cast<int>(rank), kSaveBegin);
    if (save == nullptr || save->items.empty()) continue;  // said already
    const auto streams = std::count_if(save->items.begin(), save->items.end(),
                                       [](const Item& item) { return item.kind == "rng"; });
    finding.count += static_cast<std::size_t>(streams);
    if (streams == 0 || streams >= claims.rng_streams) continue;  // none: said already
    finding.lines.push_back(
        fmt::format("{} of rank {}, claims.rng_streams = {}", streams, rank, claims.rng_streams));
  }
  if (!finding.lines.empty()) findings.push_back(std::move(finding));
}

void add_subject(std::vector<Finding>& findings, const Subject& subject) {
  const auto left_out = [&](bool there, const char* part, Lines requirements) {
    if (there) return;
    findings.push_back({.part = std::string("subject.toml: ") + part,
                        .conforms = Conforms::kLeftOut,
                        .count = 0,
                        .lines = {},
                        .requirements = std::move(requirements)});
  };
  left_out(!subject.reader.empty(), "reader", {"F1"});
  left_out(!subject.layout.shard.empty(), "layout.shard", {"F3"});
  left_out(!subject.layout.marker.empty() || !subject.layout.pointer.empty(),
           "layout.marker, .pointer", {"C2"});
  left_out(subject.claims.durable, "claims.durable", {"F6"});
}

}  // namespace

std::string_view conforms_name(Conforms conforms) {
  switch (conforms) {
    case Conforms::kYes:
      return "ok";
    case Conforms::kLeftOut:
      return "left out";
    case Conforms::kMissing:
      return "missing";
    case Conforms::kWrong:
      return "wrong";
  }
  return "";
}

std::vector<Finding> check_conformance(const Evidence& evidence) {
  std::vector<Finding> findings;
  if (evidence.lives.empty() || is_black_box(evidence)) return findings;
  const Life& life = evidence.lives.front();
  findings.push_back(look_at_lines(life));
  for (const Part& part : parts()) {
    const bool must_end = evidence.subject.claims.async && std::string_view(part.name) == "durable";
    findings.push_back(look_for(must_end ? kDurableOfAsynchronousSaves : part, life));
  }
  add_kinds(findings, evidence.subject.claims, life);
  add_rng_streams(findings, evidence.subject.claims, life);
  add_verdict(findings, "items", identified_items(evidence));
  add_verdict(findings, "memory", measured_not_guessed(evidence));
  add_verdict(findings, "the life", expected_outcome(evidence));
  add_subject(findings, evidence.subject);
  return findings;
}

}  // namespace savegate::harness
