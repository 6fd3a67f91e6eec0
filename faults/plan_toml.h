// What the readers of a plan's parts have in common, and the readers that stand in files of their
// own.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/plan.h"
#include "faults/toml.h"

namespace savegate::faults {

// The value that `parse` makes of a string or number; its error becomes the key's.
template <class T>
T read_text(TomlReader& table, std::string_view key, T otherwise,
            Result<T> (*parse)(std::string_view)) {
  const std::string text = table.text(key);
  if (!table.has(key)) return otherwise;
  auto parsed = parse(text);
  if (parsed) return *parsed;
  table.error_at(key, fmt::format("`{}`: {}", key, parsed.error().text));
  return otherwise;
}

// The value at the position of the word in `words`.
template <class T, std::size_t kCount>
T read_word(TomlReader& table, std::string_view key,
            const std::array<std::pair<std::string_view, T>, kCount>& words, T otherwise) {
  std::vector<std::string> valid;
  valid.reserve(kCount);
  for (const auto& [word, value] : words) valid.emplace_back(word);
  const std::string found = table.word(key, valid, "");
  for (const auto& [word, value] : words) {
    if (word == found) return value;
  }
  return otherwise;
}

KillTarget read_kill_target(TomlReader& table);

// An error that names the nearest of `valid`, or all of them.
void unknown_word(TomlReader& table, std::string_view key, std::string_view found,
                  const std::vector<std::string>& valid);

// plan_toml_views.cc
MissingAction read_missing_action(TomlReader& table);
RaceAction read_race_action(TomlReader& table);
TimestampsAction read_timestamps_action(TomlReader& table);
StaleAction read_stale_action(TomlReader& table);
// plan_toml_time.cc
std::optional<Since> read_since(TomlReader& match);
DelayAction read_delay_action(TomlReader& action);
BandwidthAction read_bandwidth_action(TomlReader& action);
FreezeAction read_freeze_action(TomlReader& action);

}  // namespace savegate::faults
