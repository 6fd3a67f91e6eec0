// What a decision costs: without rules, with rules of other files, and with rules that look at the
// operation and let it go.
#include <benchmark/benchmark.h>

#include <string>

#include "faults/injector_testing.h"

namespace savegate::faults {
namespace {

std::string rules(std::int64_t count, const std::string& match) {
  std::string plan;
  for (std::int64_t i = 0; i < count; ++i) {
    plan += "[[rule]]\nname = 'r" + std::to_string(i) + "'\nmatch = { " + match +
            " }\naction = { errno = 'EIO' }\n";
  }
  return plan;
}

void decide_writes(benchmark::State& state, const std::string& plan) {
  TestMount mount(plan);
  const auto file = mount.injector.rules_for("step_1/shard-0");
  Operation operation{.op = Op::kWrite,
                      .caller = {.rank = 0, .relation = Relation::kProcess, .pid = 1, .tid = 1},
                      .rules = file.get(),
                      .path = "step_1/shard-0",
                      .file = 7,
                      .length = 1 << 20};
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(mount.injector.decide(operation));
    operation.offset += operation.length;
  }
}

void BM_RulesOfOtherFiles(benchmark::State& state) {
  decide_writes(state, rules(state.range(0), "path = '**/other'"));
}
BENCHMARK(BM_RulesOfOtherFiles)->Arg(0)->Arg(1000);

void BM_RulesOfOtherOperations(benchmark::State& state) {
  decide_writes(state, rules(state.range(0), "op = 'fsync'"));
}
BENCHMARK(BM_RulesOfOtherOperations)->Arg(1)->Arg(1000);

void BM_RulesOfOtherRanks(benchmark::State& state) {
  decide_writes(state, rules(state.range(0), "op = 'write', rank = 1"));
}
BENCHMARK(BM_RulesOfOtherRanks)->Arg(1)->Arg(1000);

void BM_RuleThatCounts(benchmark::State& state) {
  decide_writes(state, rules(1, "op = 'write', nth = 1000000000, probability = 0.5"));
}
BENCHMARK(BM_RuleThatCounts);

void BM_BudgetThatHasRoom(benchmark::State& state) {
  decide_writes(state, "[[budget]]\nlimit = '1000000TiB'\n");
}
BENCHMARK(BM_BudgetThatHasRoom);

void BM_RulesForAName(benchmark::State& state) {
  TestMount mount(rules(state.range(0), "path = '**/other'"));
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(mount.injector.rules_for("step_1/shard-0"));
}
BENCHMARK(BM_RulesForAName)->Arg(0)->Arg(1000);

}  // namespace
}  // namespace savegate::faults
