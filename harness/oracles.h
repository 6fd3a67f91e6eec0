// Oracles: pure functions from evidence to a verdict, each registered under its requirement's id.
//
// INVALID comes before PASS: an oracle first asks whether there was anything to judge.
#pragma once

#include <string_view>
#include <vector>

#include "harness/evidence.h"
#include "reports/result.h"

namespace savegate::harness {

struct Oracle {
  std::string_view requirement;  // "C2"
  std::string_view rule;         // one line: what must hold
  std::string_view name;         // "marker_last"
  std::string_view evidence;     // what it goes by, in the words of docs/requirements.md
  reports::Verdict (*judge)(const Evidence& evidence);
};

const std::vector<Oracle>& all_oracles();

// Every oracle on the evidence. A requirement that the scenario claims but that was skipped becomes
// INVALID: it claims to show what it cannot.
reports::ScenarioResult judge(const Evidence& evidence);

}  // namespace savegate::harness
