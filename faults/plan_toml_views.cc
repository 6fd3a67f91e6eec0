// Actions about what a file system can do and what it lets each caller see.
#include "faults/plan_toml.h"

namespace savegate::faults {
namespace {

constexpr std::array<std::pair<std::string_view, Aspect>, 5> kAspects = {
    {{"name", Aspect::kName},
     {"size", Aspect::kSize},
     {"listing", Aspect::kListing},
     {"attributes", Aspect::kAttributes},
     {"negative", Aspect::kNegative}}};

// "-90s" → nanoseconds
Result<std::int64_t> parse_signed_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  SAVEGATE_TRY(const std::uint64_t length, parse_duration(text.substr(negative ? 1 : 0)));
  if (length > INT64_MAX) return fail(invalid(fmt::format("`{}` is too long", text)));
  const auto nanoseconds = static_cast<std::int64_t>(length);
  return negative ? -nanoseconds : nanoseconds;
}

}  // namespace

MissingAction read_missing_action(TomlReader& table) {
  MissingAction action;
  for (const std::string& word : table.strings("missing")) {
    if (auto feature = feature_from_name(word)) {
      action.features.add(*feature);
    } else {
      unknown_word(table, "missing", word, feature_names());
    }
  }
  return action;
}

RaceAction read_race_action(TomlReader& table) {
  constexpr std::array<std::pair<std::string_view, Race>, 3> kRaces = {
      {{"made", Race::kMade}, {"removed", Race::kRemoved}, {"moved", Race::kMoved}}};
  return RaceAction{read_word(table, "race", kRaces, Race::kMade)};
}

TimestampsAction read_timestamps_action(TomlReader& table) {
  TimestampsAction action;
  auto times = table.table("timestamps");
  if (!times) return action;
  action.skew_ns = read_text<std::int64_t>(*times, "skew", 0, parse_signed_duration);
  action.granularity_ns = read_text<std::uint64_t>(*times, "granularity", 1, parse_duration);
  if (action.granularity_ns == 0) times->error_at("granularity", "`granularity` cannot be 0");
  if (action == TimestampsAction{}) {
    times->error_missing("`timestamps` needs `skew` or `granularity`, such as { skew = \"-90s\" }");
  }
  return action;
}

StaleAction read_stale_action(TomlReader& table) {
  StaleAction action;
  std::vector<std::string> valid;
  valid.reserve(kAspects.size());
  for (const auto& [word, aspect] : kAspects) valid.emplace_back(word);
  for (const std::string& found : table.strings("stale")) {
    bool known = false;
    for (const auto& [word, aspect] : kAspects) {
      if (word != found) continue;
      action.aspects |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(aspect));
      known = true;
    }
    if (!known) unknown_word(table, "stale", found, valid);
  }
  const auto window = read_text<std::uint64_t>(table, "for", 0, parse_duration);
  if (table.has("for")) action.window_ns = window;
  return action;
}

}  // namespace savegate::faults
