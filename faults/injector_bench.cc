// What a decision costs: without rules, with a thousand rules that one key or another keeps from
// acting, and with rules that count.
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

void decide_writes(benchmark::State& state, const std::string& plan, std::uint64_t offset = 0) {
  TestMount mount(plan);
  mount.injector.enter(0, "save 1", 1);
  const auto file = mount.injector.rules_for("step_1/shard-0");
  Operation operation{.op = Op::kWrite,
                      .caller = {.rank = 0, .relation = Relation::kProcess, .pid = 1, .tid = 1},
                      .rules = file.get(),
                      .path = "step_1/shard-0",
                      .file = 7,
                      .offset = offset,
                      .length = 1 << 20,
                      .now_ns = 2};
  // All ranks' rules that act once have acted.
  for (int i = 0; i < 1000; ++i) mount.injector.decide(operation);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(mount.injector.decide(operation));
    operation.offset += 4096;
    operation.now_ns += 100;
  }
}

void BM_NoRule(benchmark::State& state) { decide_writes(state, ""); }
BENCHMARK(BM_NoRule);

// A thousand rules on the very file, of which none matches for the reason of its name.
void BM_Thousand(benchmark::State& state, const std::string& match) {
  decide_writes(state, rules(1000, match));
}
BENCHMARK_CAPTURE(BM_Thousand, of_other_files, "path = '**/other'");
BENCHMARK_CAPTURE(BM_Thousand, of_other_operations, "op = 'fsync'");
BENCHMARK_CAPTURE(BM_Thousand, of_other_ranks, "op = 'write', rank = 1");
BENCHMARK_CAPTURE(BM_Thousand, of_another_life, "op = 'write', life = 2");
BENCHMARK_CAPTURE(BM_Thousand, of_child_processes, "op = 'write', process = 'child'");
BENCHMARK_CAPTURE(BM_Thousand, of_other_phases, "op = 'write', phase = 'save 2'");
BENCHMARK_CAPTURE(BM_Thousand, of_another_attempt, "op = 'write', attempt = 2");
BENCHMARK_CAPTURE(BM_Thousand, of_a_time_not_yet_come,
                  "op = 'write', since = { mark = 'save 1', from = '1h' }");
BENCHMARK_CAPTURE(BM_Thousand, of_larger_writes, "op = 'write', size = ['2MiB']");
BENCHMARK_CAPTURE(BM_Thousand, taken_once, "op = 'write', once = true");
BENCHMARK_CAPTURE(BM_Thousand, past_their_nth, "op = 'write', nth = 1");
BENCHMARK_CAPTURE(BM_Thousand, past_their_nth_of_the_file, "op = 'write', nth = 1, per = 'file'");
BENCHMARK_CAPTURE(BM_Thousand, past_their_nth_of_all, "op = 'write', nth = 1, per = 'rule'");

// Every rule waits at other bytes, half of them before those written.
void BM_ThousandOfOtherOffsets(benchmark::State& state) {
  std::string plan;
  for (int i = 0; i < 1000; ++i) {
    const std::string from = std::to_string(2 * i + 1);
    plan += rules(1, "op = 'write', offset = ['" + from + "TiB', '" + from + ".5TiB']");
    plan.replace(plan.rfind("'r0'"), 4, "'r" + std::to_string(i) + "'");
  }
  decide_writes(state, plan, std::uint64_t{1000} << 40);
}
BENCHMARK(BM_ThousandOfOtherOffsets);

void BM_ThousandOfWhichFiveCount(benchmark::State& state) {
  std::string plan = rules(995, "op = 'write', rank = 1");
  for (int i = 0; i < 5; ++i) {
    plan += "[[rule]]\nname = 'c" + std::to_string(i) +
            "'\nmatch = { op = 'write', nth = 1000000000 }\naction = { errno = 'EIO' }\n";
  }
  decide_writes(state, plan);
}
BENCHMARK(BM_ThousandOfWhichFiveCount);

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
