// A rule costs nothing on files that it cannot match, and little on those that it could.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "faults/injector_testing.h"

namespace {
thread_local std::uint64_t allocations = 0;
}  // namespace

// Not inlined, or the compiler sees a `new` that is freed by free().
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace savegate::faults {
namespace {

template <class Body>
std::uint64_t allocations_of(Body body) {
  const std::uint64_t before = allocations;
  body();
  return allocations - before;
}

TEST(AllocationTest, CounterCounts) {
  EXPECT_GE(allocations_of([] { std::string(100, 'x').swap(*std::make_unique<std::string>()); }),
            1U);
}

TEST(AllocationTest, FileThatNoRuleCanMatchHasNoRulesAndAllocatesNothing) {
  std::string plan;
  for (int i = 0; i < 1000; ++i) {
    plan += "[[rule]]\nmatch = { path = 'other-" + std::to_string(i) +
            "' }\naction = { errno = 'EIO' }\n";
  }
  TestMount mount(plan);
  const auto rules = mount.injector.rules_for("step_1/shard-0");
  ASSERT_EQ(rules, nullptr);
  Operation operation{.op = Op::kWrite, .rules = rules.get(), .path = "step_1/shard-0"};
  EXPECT_EQ(allocations_of([&] {
              for (int i = 0; i < 100; ++i) mount.injector.decide(operation);
            }),
            0U);
}

TEST(AllocationTest, RulesThatDoNotFireAllocateNothingOnceTheRankIsKnown) {
  TestMount mount(
      "[[rule]]\nmatch = { op = 'write', rank = 1 }\naction = { errno = 'EIO' }\n"
      "[[rule]]\nmatch = { op = 'write', phase = 'save 2' }\naction = { errno = 'EIO' }\n"
      "[[rule]]\nmatch = { op = 'write', since = { mark = 'save 1', from = '1s' } }\n"
      "action = { errno = 'EIO' }\n"
      "[[rule]]\nmatch = { op = 'write', offset = ['1GiB'] }\naction = { errno = 'EIO' }\n"
      "[[rule]]\nmatch = { op = 'write', nth = 1000, probability = 0.5 }\n"
      "action = { errno = 'EIO' }\n"
      "[[budget]]\nlimit = '1GiB'\n");
  mount.injector.enter(0, "save 1", 1);
  const auto rules = mount.injector.rules_for("a");
  Operation operation{.op = Op::kWrite,
                      .caller = {.rank = 0, .relation = Relation::kProcess, .pid = 1, .tid = 1},
                      .rules = rules.get(),
                      .path = "a",
                      .file = 7,
                      .length = 4096,
                      .now_ns = 2};
  mount.injector.decide(operation);
  EXPECT_EQ(allocations_of([&] {
              for (int i = 0; i < 10; ++i) {
                mount.injector.decide(operation);
                operation.offset += operation.length;
                operation.now_ns += 1000;
              }
            }),
            0U);
}

}  // namespace
}  // namespace savegate::faults
