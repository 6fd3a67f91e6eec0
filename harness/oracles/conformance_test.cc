#include "harness/oracles/conformance.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "harness/oracles.h"
#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// As sound_job(), with all that the contract lets a subject leave out.
JobBuilder telling_job() {
  JobBuilder job = sound_job();
  job.evidence.subject.claims.exports = true;
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) {
      const Event first = log.events.front();
      const auto add = [&](EventKind kind, const std::string& name) -> Event& {
        Event made;
        made.kind = kind;
        made.rank = first.rank;
        made.time_ns = first.time_ns + 1;
        made.step = 1;
        made.name = name;
        return *log.events.insert(log.events.end() - 1, made);
      };
      add(EventKind::kDurable, "").save = 1;
      add(EventKind::kExport, "").digest = std::string(32, 'a');
      add(EventKind::kMemory, "save").memory["host_rss"] = 4096;
      add(EventKind::kCollectiveEnter, "world").collective = "barrier";
      add(EventKind::kPhase, "commit");
    }
  }
  return job;
}

const Finding& find(const std::vector<Finding>& findings, const std::string& part) {
  static const Finding kNone;
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& each) { return each.part == part; });
  return found == findings.end() ? kNone : *found;
}

void strip(JobBuilder& job, const std::function<bool(Event&)>& drop) {
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) std::erase_if(log.events, drop);
  }
}

std::set<std::string> passing(const Evidence& evidence) {
  std::set<std::string> ids;
  for (const reports::Verdict& verdict : judge(evidence).verdicts) {
    if (verdict.outcome == Outcome::kPass) ids.insert(verdict.requirement);
  }
  return ids;
}

TEST(ConformanceTest, ASoundJobLeavesNothingOutThatIsAskedFor) {
  for (const Finding& finding : check_conformance(sound_job().evidence)) {
    EXPECT_THAT(finding.conforms, AnyOf(Conforms::kYes, Conforms::kLeftOut)) << finding.part;
  }
  for (const Finding& finding : check_conformance(telling_job().evidence)) {
    EXPECT_EQ(finding.conforms, Conforms::kYes) << finding.part;
    EXPECT_THAT(finding.requirements, IsEmpty()) << finding.part;
  }
}

// What a missing part is said to cost holds all that the oracles then no longer pass.
TEST(ConformanceTest, TheCostOfAPartIsWhatTheOraclesLose) {
  const auto kind = [](EventKind of) { return [of](Event& event) { return event.kind == of; }; };
  using enum EventKind;
  const std::map<std::string, std::function<bool(Event&)>> parts = {
      {"hello", kind(kHello)},
      {"resumed", kind(kResumed)},
      {"update", kind(kUpdate)},
      {"save_begin", kind(kSaveBegin)},
      {"items of save_begin",
       [](Event& event) {
         if (event.kind == kSaveBegin) event.items.clear();
         return false;
       }},
      {"save_end", [](Event& event) { return event.kind == kSaveEnd || event.kind == kDurable; }},
      {"durable", kind(kDurable)},
      {"done", kind(kDone)},
      {"memory", kind(kMemory)},
      {"collective_enter", kind(kCollectiveEnter)},
      {"export", kind(kExport)},
      {"phase", kind(kPhase)}};
  const std::set<std::string> before = passing(telling_job().evidence);
  for (const auto& [part, drop] : parts) {
    JobBuilder job = telling_job();
    strip(job, drop);
    const std::set<std::string> after = passing(job.evidence);
    const std::vector<Finding> findings = check_conformance(job.evidence);
    const Finding& finding = find(findings, part);
    EXPECT_NE(finding.conforms, Conforms::kYes) << part;
    for (const std::string& id : before) {
      if (id == "H1" || after.contains(id)) continue;
      EXPECT_THAT(finding.requirements, Contains(id)) << part;
    }
  }
}

TEST(ConformanceTest, TheRankThatTellsLessIsNamed) {
  JobBuilder job = telling_job();
  auto& events = job.at(0).events[1].events;
  std::erase_if(events, [](const Event& event) { return event.kind == EventKind::kUpdate; });
  const std::vector<Finding> findings = check_conformance(job.evidence);
  EXPECT_EQ(find(findings, "update").conforms, Conforms::kMissing);
  EXPECT_THAT(find(findings, "update").lines, ElementsAre("none of rank 1"));
}

TEST(ConformanceTest, AnAsynchronousSaveHasToBecomeDurable) {
  JobBuilder job = sound_job();
  job.evidence.subject.claims.async = true;
  const std::vector<Finding> findings = check_conformance(job.evidence);
  EXPECT_EQ(find(findings, "durable").conforms, Conforms::kMissing);
}

TEST(ConformanceTest, ABrokenLineIsQuotedAndCostsAll) {
  JobBuilder job = telling_job();
  job.at(0).events[0].errors.emplace_back("events/rank-0.jsonl:7: event: no JSON: `oops`");
  const std::vector<Finding> findings = check_conformance(job.evidence);
  EXPECT_EQ(find(findings, "event lines").conforms, Conforms::kWrong);
  EXPECT_THAT(find(findings, "event lines").lines, ElementsAre(HasSubstr("`oops`")));
}

TEST(ConformanceTest, AnItemWithoutANameIsWrong) {
  JobBuilder job = telling_job();
  for (Event& event : job.at(0).events[0].events) {
    if (event.kind == EventKind::kSaveBegin) event.items[0].name.clear();
  }
  const std::vector<Finding> findings = check_conformance(job.evidence);
  EXPECT_EQ(find(findings, "items").conforms, Conforms::kWrong);
  EXPECT_THAT(find(findings, "items").requirements, ElementsAre("H7"));
}

TEST(ConformanceTest, StateThatIsNotSavedAndFilesThatAreNotNamedHaveTheirCost) {
  JobBuilder job = telling_job();
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) {
      for (Event& event : log.events) {
        std::erase_if(event.items, [](const Item& item) { return item.kind == "scheduler"; });
      }
    }
  }
  job.evidence.subject.reader.clear();
  std::vector<Finding> findings = check_conformance(job.evidence);
  EXPECT_EQ(find(findings, "items of kind scheduler").conforms, Conforms::kMissing);
  EXPECT_THAT(find(findings, "items of kind scheduler").requirements, ElementsAre("R2"));
  EXPECT_THAT(find(findings, "subject.toml: reader").requirements, ElementsAre("F1"));
  job.evidence.subject.claims.state.clear();
  findings = check_conformance(job.evidence);
  EXPECT_EQ(find(findings, "items of kind scheduler").conforms, Conforms::kLeftOut);
  EXPECT_THAT(find(findings, "items of kind scheduler").requirements, IsEmpty());
  EXPECT_THAT(find(findings, "items of kind scheduler").lines,
              ElementsAre("R2 judges the state without it"));
}

TEST(ConformanceTest, ARankWithFewerRngStreamsThanClaimedIsNamed) {
  JobBuilder job = telling_job();
  job.evidence.subject.claims.rng_streams = 5;
  const std::vector<Finding> findings = check_conformance(job.evidence);
  EXPECT_EQ(find(findings, "items of kind rng").conforms, Conforms::kMissing);
  EXPECT_THAT(find(findings, "items of kind rng").lines,
              Contains("4 of rank 1, claims.rng_streams = 5"));
}

TEST(ConformanceTest, OfAProgramThatSaysNothingThereIsNothingToSay) {
  JobBuilder job = sound_job();
  strip(job, [](Event&) { return true; });
  EXPECT_THAT(check_conformance(job.evidence), IsEmpty());
}

}  // namespace
}  // namespace savegate::harness
