// Presets: fault plans by name, each of a real system that behaves so.
//
//   preset = "nfs"                                        # in a plan, or in a scenario's life
//   preset = { name = "full-disk", limit = "64MiB", path = "step_*/**" }
//
// A preset is a plan in TOML with parameters in it; `path` and `rank` narrow all of its rules.
// docs/presets.md shows each.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "faults/plan.h"

namespace savegate::faults {

struct PresetParameter {
  std::string_view name;
  std::string_view otherwise;  // its default
  std::string_view meaning;
};

struct Preset {
  std::string_view name;
  std::string_view summary;
  std::string_view system;  // what behaves so
  std::vector<PresetParameter> parameters;
  std::string_view toml;  // ${parameter} stands for its value
};

const std::vector<Preset>& all_presets();

using PresetValues = std::map<std::string, std::string, std::less<>>;

// The plan in TOML, with the values given and the defaults of the rest.
Result<std::string> preset_toml(std::string_view name, const PresetValues& values);
// The same read, narrowed by `path` (a glob) and `rank` among the values.
Result<Plan> preset_plan(std::string_view name, const PresetValues& values);
// "full-disk:limit=64MiB,path=step_*"
Result<Plan> preset_from_words(std::string_view words);

}  // namespace savegate::faults
