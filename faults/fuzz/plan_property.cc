#include "faults/fuzz/plan_property.h"

#include <fmt/format.h>

#include <array>

#include "faults/injector.h"
#include "faults/injector_testing.h"
#include "faults/plan.h"

namespace savegate::faults {
namespace {

constexpr std::string_view kSource = "plan.toml";
constexpr std::uint64_t kLargest = INT64_MAX;  // no offset of a file is beyond

std::string broken_by_refusal(const Status& status) {
  const std::string text = status.to_string();
  if (status.code != Code::kInvalid) return "refused with another code: " + text;
  if (text.find('\n') != std::string::npos) return "the refusal has several lines: " + text;
  if (text.find(kSource) == std::string::npos) return "the refusal names no source: " + text;
  return "";
}

std::string broken_by_decision(const Operation& operation, const Decision& decision) {
  if (decision.allowed != UINT64_MAX && decision.allowed > operation.length)
    return fmt::format("{}: {} of {} bytes allowed", op_name(operation.op), decision.allowed,
                       operation.length);
  if (decision.corrupt && (decision.corrupt_at > operation.length ||
                           decision.corrupt_length > operation.length - decision.corrupt_at))
    return fmt::format("{}: {} bytes corrupted from {} of {}", op_name(operation.op),
                       decision.corrupt_length, decision.corrupt_at, operation.length);
  if (decision.error < 0) return fmt::format("{}: errno {}", op_name(operation.op), decision.error);
  return "";
}

std::string broken_by_operations(Injector& injector, int rank) {
  constexpr std::array<std::string_view, 5> kPaths = {"", "latest", "step_2/shard-1",
                                                      "step_2/.metadata.tmp", "a"};
  constexpr std::array<std::array<std::uint64_t, 2>, 4> kExtents = {
      {{0, 0}, {0, 4096}, {4095, 70000}, {kLargest - 4096, 4096}}};
  for (std::size_t file = 0; file < kPaths.size(); ++file) {
    const auto rules = injector.rules_for(kPaths[file]);
    for (int i = 0; i < kOpCount; ++i) {
      const auto& [offset, length] = kExtents[static_cast<std::size_t>(i) % kExtents.size()];
      const Operation operation{
          .op = static_cast<Op>(i),
          .caller = {.rank = rank, .relation = Relation::kProcess, .pid = 100, .tid = 100},
          .rules = rules.get(),
          .path = kPaths[file],
          .path2 = "save 2",
          .file = file,
          .offset = offset,
          .length = length,
          .available = offset < 4096 ? 4096 - offset : 0};
      const Decision decision = injector.decide(operation);
      if (std::string broken = broken_by_decision(operation, decision); !broken.empty())
        return broken;
    }
    injector.space(kPaths[file]);
  }
  injector.truncated(3, 0);
  injector.punched(2, 0, kLargest);
  injector.released(2);
  return "";
}

}  // namespace

std::string broken_by_plan(std::string_view text) {
  const auto plan = parse_plan(text, kSource);
  if (!plan) return broken_by_refusal(plan.error());
  const std::string printed = print_plan(*plan);
  const auto again = parse_plan(printed, kSource);
  if (!again) return "what it prints is refused: " + again.error().to_string() + "\n" + printed;
  if (*again != *plan) return "what it prints reads as another plan:\n" + printed;

  Injector injector(*plan, testing_layout(), 1);
  injector.adopt(1, "latest", kLargest);
  injector.adopt(2, "step_2/shard-1", 12345);
  for (int rank = -1; rank < 2; ++rank) {
    injector.enter(rank, "save 2");
    injector.point(rank, "commit");
    if (std::string broken = broken_by_operations(injector, rank); !broken.empty()) return broken;
    injector.leave(rank, "save 2");
  }
  return "";
}

}  // namespace savegate::faults
