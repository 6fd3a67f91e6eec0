#include "harness/run/random_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "faults/plan.h"
#include "faults/random.h"
#include "harness/run/sweep.h"

namespace savegate::harness {
namespace {

using faults::Op;
using faults::Rule;
using faults::When;

constexpr int kSaves = 5;           // of the clean life
constexpr int kLastFaultySave = 3;  // two more follow it
constexpr std::uint64_t kMillisecond = 1'000'000;

// Numbered: the same on every machine.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t number) : seed_(faults::mix_bits(seed) ^ number) {}
  std::uint64_t below(std::uint64_t end) {
    return faults::mix_bits(faults::mix_bits(seed_) ^ thrown_++) % end;
  }
  template <class T, std::size_t N>
  const T& one_of(const std::array<T, N>& values) {
    return values[below(N)];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t thrown_ = 0;
};

std::string save(int number) { return "save " + std::to_string(number); }

// Marks have the same names in the first life alone: a resumed one has had fewer collectives.
Generator kill_at_random(Dice& dice, int save_number, bool at_marks_too) {
  Generator generator;
  generator.at = at_marks_too && dice.below(4) == 0 ? "every phase" : "every operation";
  generator.phase = save(save_number);
  generator.when = {dice.one_of(std::array{When::kBefore, When::kMiddle, When::kAfter})};
  // Only data operations have a middle.
  if (generator.when.front() == When::kMiddle) generator.at = "every write";
  faults::KillAction kill;
  kill.target = dice.below(3) == 0 ? faults::KillTarget::kJob : faults::KillTarget::kRank;
  generator.action = kill;
  return generator;
}

Generator error_at_random(Dice& dice, int save_number) {
  Generator generator;
  generator.at = dice.below(2) == 0 ? "every operation" : "every write";
  generator.phase = save(save_number);
  generator.action = faults::ErrnoAction{
      .error = dice.one_of(std::array{ENOSPC, EIO, EDQUOT}), .after = {}, .late = {}};
  return generator;
}

std::optional<SweepPoint> point_of(const Generator& generator, const faults::Trace& trace,
                                   Dice& dice) {
  auto points = sweep_points(generator, trace);
  const std::uint64_t chance = dice.below(UINT64_MAX);
  if (!points || points->empty()) return std::nullopt;
  // The order in which the ranks were is not the same in every recording.
  std::sort(points->begin(), points->end(),
            [](const SweepPoint& a, const SweepPoint& b) { return a.text < b.text; });
  return (*points)[chance % points->size()];
}

// What a sound save path does not even notice.
Rule nuisance(Dice& dice, int world, int number) {
  Rule rule;
  rule.required = false;
  rule.match.ranks = {static_cast<int>(dice.below(static_cast<std::uint64_t>(world)))};
  rule.match.probability = 0.25;
  switch (dice.below(3)) {
    case 0:
      rule.match.ops = faults::op_bit(Op::kWrite);
      rule.action = faults::ShortAction{.bytes = {.bytes = 0, .share = 0.5}};
      break;
    case 1:
      rule.match.ops = faults::op_bit(Op::kRead);
      rule.action = faults::ShortAction{.bytes = {.bytes = 0, .share = 0.5}};
      break;
    default:
      rule.match.ops =
          faults::op_bit(Op::kWrite) | faults::op_bit(Op::kFsync) | faults::op_bit(Op::kRename);
      rule.action = faults::DelayAction{.nanoseconds = kMillisecond,
                                        .spread = faults::Spread::kUniform,
                                        .to_ns = 20 * kMillisecond};
  }
  rule.name = fmt::format("nuisance {}: {}", number, faults::to_string(rule.action));
  return rule;
}

LifeSpec faulty_life(const SweepPoint& point, int save_number, std::uint64_t seed) {
  LifeSpec life;
  life.until = save(save_number);
  life.plan.seed = seed;
  life.plan.rules.push_back(point.rule);
  life.plan.rules.back().name = point.text;
  const bool kills = std::holds_alternative<faults::KillAction>(point.rule.action);
  // Not every operation that fails makes a save fail.
  life.expect.outcome = kills ? Outcome::kKilled : Outcome::kAny;
  return life;
}

}  // namespace

Scenario random_clean_scenario(int world) {
  Scenario clean;
  clean.suite = kRandomSuite;
  clean.name = "plan-clean";
  clean.summary = "What random plans are made from: saves in which nothing goes wrong.";
  clean.world = world;
  clean.lives.resize(1);
  clean.lives[0].until = save(kSaves);
  return clean;
}

Result<Scenario> random_scenario(const Scenario& clean, const faults::Trace& trace,
                                 std::uint64_t seed, std::uint64_t number) {
  Dice dice(seed, number);
  Scenario made = clean;
  made.lives.clear();
  made.seed = dice.below(INT64_MAX);
  made.name = fmt::format("plan-{:04}", number);
  int at = 1 + static_cast<int>(dice.below(kLastFaultySave));
  const bool kills = dice.below(2) == 0;
  const Generator first = kills ? kill_at_random(dice, at, true) : error_at_random(dice, at);
  const auto point = point_of(first, trace, dice);
  if (!point)
    return fail(invalid("the clean life shows no operation of a rank within " + save(at)));
  made.point = point->text;
  made.summary =
      fmt::format("By chance: {}, {}", faults::to_string(point->rule.action), point->text);
  made.lives.push_back(faulty_life(*point, at, made.seed));
  for (std::uint64_t i = dice.below(3); i > 0; --i)
    made.lives[0].plan.rules.push_back(nuisance(dice, made.world, static_cast<int>(i)));
  if (dice.below(2) == 0) {
    ++at;
    if (const auto second = point_of(kill_at_random(dice, at, false), trace, dice)) {
      made.lives.push_back(faulty_life(*second, at, made.seed));
      made.summary += fmt::format("; then {}", second->text);
    }
  }
  LifeSpec last;
  last.until = save(at + 1);
  last.plan.seed = made.seed;
  made.lives.push_back(std::move(last));
  return made;
}

}  // namespace savegate::harness
