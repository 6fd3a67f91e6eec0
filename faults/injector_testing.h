// A rank's view of an injector, for tests: operations in one line each.
#pragma once

#include <string>
#include <string_view>

#include "faults/injector.h"

namespace savegate::faults {

inline Layout testing_layout() {
  Layout layout;
  layout.shard = {"**/shard-*"};
  layout.marker = {"**/.metadata"};
  layout.pointer = {"latest"};
  layout.temporary = {"*.tmp"};
  return layout;
}

class TestMount {
 public:
  explicit TestMount(std::string_view toml, int life = 1)
      : injector(parse_plan(toml, "plan.toml").value(), testing_layout(), life) {}
  // One rule, without the ceremony.
  static TestMount with_rule(const std::string& match, const std::string& action) {
    return TestMount("[[rule]]\nname = 'r'\nmatch = { " + match + " }\naction = { " + action +
                     " }\n");
  }

  Decision op(Op op, std::string_view path, int rank = 0, std::uint64_t offset = 0,
              std::uint64_t length = 0, Relation relation = Relation::kProcess) {
    const auto rules = injector.rules_for(path);
    return injector.decide({.op = op,
                            .caller = {.rank = rank, .relation = relation, .pid = 100, .tid = 100},
                            .rules = rules.get(),
                            .path = path,
                            .path2 = "",
                            .file = file_of(path),
                            .offset = offset,
                            .length = length,
                            .available = available,
                            .of_mapping = of_mapping,
                            .now_ns = now_ns});
  }
  Decision write(std::string_view path, std::uint64_t offset, std::uint64_t length, int rank = 0) {
    return op(Op::kWrite, path, rank, offset, length);
  }
  Decision mark(std::string_view name, int rank = 0) {
    const auto rules = injector.rules_for("");
    return injector.decide(
        {.op = Op::kPhase,
         .caller = {.rank = rank, .relation = Relation::kProcess, .pid = 100, .tid = 100},
         .rules = rules.get(),
         .path = "",
         .path2 = name,
         .now_ns = now_ns});
  }
  static FileId file_of(std::string_view path) {
    return 1 + std::hash<std::string_view>()(path) / 2;
  }

  Injector injector;
  std::uint64_t available = UINT64_MAX;  // of the operations to come
  bool of_mapping = false;
  std::uint64_t now_ns = 1;
};

}  // namespace savegate::faults
