// `savegate loop`: a scenario repeated until it fails, or with one factor changed at a time (C11,
// H3).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "faults/json_text.h"
#include "faults/toml.h"
#include "harness/cli/commands.h"
#include "harness/cli/experiment.h"
#include "harness/cli/session.h"
#include "harness/run/interrupt.h"
#include "harness/run/sandbox.h"
#include "reports/statistics.h"
#include "reports/terminal.h"

namespace savegate::cli {
namespace {

using harness::Scenario;
using harness::Subject;
using reports::Outcome;
using reports::ScenarioResult;
using reports::Tally;

constexpr std::string_view kEnvironmentPrefix = "env.";

struct Plan {
  Scenario scenario;
  Subject subject;
  std::vector<Arm> arms;
  std::uint64_t rounds = 0;
  double confidence = 0;
  std::vector<Trial> trials;
};

std::string command_line(const std::string& name, const LoopWords& words, std::uint64_t rounds,
                         const Options& options) {
  std::string line =
      fmt::format("savegate loop {} --rounds {} --confidence {}", name, rounds, words.confidence);
  for (const std::string& factor : words.vary) line += " --vary " + factor;
  return line + option_words(options);
}

// `env.NAME` besides: a variable of the ranks' environment.
std::vector<std::string> factors_of(const Subject& subject) {
  std::vector<std::string> names = {"backing", "world"};
  for (const auto& [name, value] : subject.variables) names.push_back(name);
  return names;
}

Result<void> set(Job& job, const std::string& name, const std::string& value) {
  if (name == "backing") {
    job.backing = value;
  } else if (name == "world") {
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, job.scenario.world);
    if (error != std::errc{} || stop != end || job.scenario.world < 1)
      return fail(invalid(fmt::format("--vary world: `{}` is no number of ranks", value)));
  } else if (name.starts_with(kEnvironmentPrefix)) {
    for (harness::LifeSpec& life : job.scenario.lives)
      life.env[name.substr(kEnvironmentPrefix.size())] = value;
  } else {
    job.scenario.variables[name] = value;
  }
  return {};
}

Result<std::vector<Factor>> read_factors(const std::vector<std::string>& texts,
                                         const Subject& subject) {
  std::vector<Factor> factors;
  for (const std::string& text : texts) {
    SAVEGATE_TRY(Factor factor, parse_factor(text));
    const std::vector<std::string> known = factors_of(subject);
    if (!factor.name.starts_with(kEnvironmentPrefix) &&
        std::find(known.begin(), known.end(), factor.name) == known.end())
      return fail(
          invalid(fmt::format("--vary {}: the subject `{}` has no variable of this name{}; "
                              "it has: {}, env.NAME",
                              factor.name, subject.name, faults::did_you_mean(factor.name, known),
                              fmt::join(known, ", "))));
    for (const Factor& earlier : factors)
      if (earlier.name == factor.name)
        return fail(invalid(fmt::format("--vary {} is there twice", factor.name)));
    factors.push_back(std::move(factor));
  }
  return factors;
}

// Of one trial; the baseline's values of all factors but the arm's own.
Result<Job> job_of(const Plan& plan, const std::vector<Factor>& factors, const Trial& trial) {
  Job job{plan.scenario, plan.subject};
  const Arm& arm = plan.arms[trial.arm];
  for (const Factor& factor : factors) SAVEGATE_CHECK(set(job, factor.name, factor.values.front()));
  if (!arm.factor.empty()) SAVEGATE_CHECK(set(job, arm.factor, arm.value));
  job.scenario.seed += trial.round;
  for (harness::LifeSpec& life : job.scenario.lives) life.plan.seed += trial.round;
  job.scenario.name += fmt::format("-round-{}", trial.round + 1);
  if (!arm.factor.empty()) job.scenario.name += fmt::format("-{}-{}", arm.factor, trial.arm);
  return job;
}

class Loop {
 public:
  Loop(Session& session, const Plan& plan, std::vector<Job> jobs)
      : session_(session), plan_(plan), jobs_(std::move(jobs)), tallies_(plan.arms.size()) {}

  Result<void> run() {
    return session_.run_jobs(jobs_,
                             [&](std::size_t i, const ScenarioResult& result) { note(i, result); });
  }

  // What the rounds that were run prove.
  std::string conclusion() const {
    const Tally& baseline = tallies_.front();
    std::string text;
    if (unproven_ > 0) text += fmt::format("{} rounds proved nothing\n", unproven_);
    if (plan_.arms.size() > 1) {
      return text + cli::conclusion(baseline, compare_arms(plan_.arms, tallies_), plan_.confidence);
    }
    if (baseline.failures > 0) {
      return text + fmt::format("round {} failed; {} others were clean\n", *failed_round_,
                                baseline.rounds - baseline.failures);
    }
    if (baseline.rounds == 0) return text;
    return text + fmt::format(
                      "{} clean rounds: with {:.4g} % confidence a save fails less often than once "
                      "in {:.1f}\n",
                      baseline.rounds, plan_.confidence * 100,
                      1 / reports::excluded_probability(baseline.rounds, plan_.confidence));
  }

  std::string json() const {
    nlohmann::json arms = nlohmann::json::array();
    for (std::size_t i = 0; i < plan_.arms.size(); ++i) {
      arms.push_back({{"factor", plan_.arms[i].factor},
                      {"value", plan_.arms[i].value},
                      {"rounds", tallies_[i].rounds},
                      {"failures", tallies_[i].failures}});
    }
    return faults::json_text(nlohmann::json{{"schema", 1},
                                            {"rounds", plan_.rounds},
                                            {"confidence", plan_.confidence},
                                            {"unproven", unproven_},
                                            {"arms", arms},
                                            {"conclusion", conclusion()}},
                             1);
  }

 private:
  void note(std::size_t i, const ScenarioResult& result) {
    session_.record(result);
    const bool passed = result.outcome == Outcome::kPass;
    if (!passed) session_.progress().print(reports::render_scenario(result, false));
    if (result.outcome == Outcome::kPass || result.outcome == Outcome::kFail) {
      const Trial& trial = plan_.trials[i];
      ++tallies_[trial.arm].rounds;
      if (!passed) {
        ++tallies_[trial.arm].failures;
        if (!failed_round_) failed_round_ = trial.round + 1;
      }
    } else {
      ++unproven_;
    }
    if (!passed && plan_.arms.size() == 1) session_.stop();
  }

  Session& session_;
  const Plan& plan_;
  std::vector<Job> jobs_;
  std::vector<Tally> tallies_;  // as Plan::arms
  std::uint64_t unproven_ = 0;
  std::optional<std::uint64_t> failed_round_;  // that ended it, from 1
};

Result<int> loop(const std::string& name, const LoopWords& words, const Options& options) {
  SAVEGATE_TRY(Catalog catalog, find_catalog());
  Plan plan;
  SAVEGATE_TRY(plan.subject, catalog.subject(options));
  SAVEGATE_TRY(plan.scenario, select_one_scenario(catalog, name, plan.subject, options));
  SAVEGATE_TRY(const std::vector<Factor> factors, read_factors(words.vary, plan.subject));
  plan.arms = arms_of(factors);
  plan.confidence = words.confidence;
  plan.rounds = words.rounds.value_or(
      reports::rounds_to_exclude(words.failure_probability, words.confidence));
  plan.trials = schedule(plan.arms.size(), plan.rounds, plan.scenario.seed);

  std::vector<Job> jobs;
  std::vector<Scenario> all;
  for (const Trial& trial : plan.trials) {
    SAVEGATE_TRY(Job job, job_of(plan, factors, trial));
    all.push_back(job.scenario);
    jobs.push_back(std::move(job));
  }
  SAVEGATE_CHECK(check_fits(catalog, plan.subject, all, options));
  return harness::run_in_sandbox([&]() -> int {
    const auto inside = [&]() -> Result<int> {
      SAVEGATE_TRY(auto session, Session::begin(catalog, options, "loop",
                                                command_line(name, words, plan.rounds, options)));
      Loop looped(*session, plan, std::move(jobs));
      Result<void> ran = looped.run();
      SAVEGATE_CHECK(session->directory().write("loop.json", looped.json()));
      SAVEGATE_TRY(int code, session->finish());
      if (!ran) return fail(ran.error());
      fmt::print("{}", looped.conclusion());
      return code;
    };
    Result<int> code = inside();
    return code ? *code : report_error(code.error());
  });
}

}  // namespace

int loop_command(const std::string& name, const LoopWords& words, const Options& options) {
  Result<int> code = loop(name, words, options);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
