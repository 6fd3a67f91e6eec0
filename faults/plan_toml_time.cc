// What a plan says about time: windows, delays, bandwidths and freezes.
#include "faults/plan_toml.h"

namespace savegate::faults {

std::optional<Since> read_since(TomlReader& table) {
  auto inside = table.table("since");
  if (!inside) return std::nullopt;
  Since since;
  since.mark = inside->required_string("mark");
  since.from_ns = read_text<std::uint64_t>(*inside, "from", 0, parse_duration);
  since.to_ns = read_text<std::uint64_t>(*inside, "to", UINT64_MAX, parse_duration);
  if (since.from_ns >= since.to_ns) {
    inside->error_at("to", "`since` is empty: it ends before it begins");
  }
  return since;
}

namespace {

std::uint64_t duration(TomlReader& table, std::string_view key) {
  return read_text<std::uint64_t>(table, key, 0, parse_duration);
}

// [least, most], as TOML has no pair.
void read_uniform(TomlReader& table, DelayAction& delay) {
  const std::vector<std::string> ends = table.texts("uniform");
  if (ends.size() != 2) {
    table.error_at("uniform", "`uniform` is [least, most]: uniform = [\"10ms\", \"50ms\"]");
    return;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const auto end = parse_duration(ends[i]);
    if (!end) {
      table.error_at("uniform", fmt::format("`uniform`: {}", end.error().text));
      return;
    }
    (i == 0 ? delay.nanoseconds : delay.to_ns) = *end;
  }
  if (delay.nanoseconds > delay.to_ns) {
    table.error_at("uniform", "`uniform` is empty: it ends before it begins");
  }
}

DelayAction read_distribution(TomlReader& table) {
  DelayAction delay;
  const std::vector<std::string> kinds = {"uniform", "exponential", "normal", "pareto"};
  std::vector<std::string> found;
  for (const std::string& kind : kinds) {
    if (table.has(kind)) found.push_back(kind);
  }
  if (found.size() != 1) {
    for (const std::string& kind : kinds) table.text(kind);  // a misspelt one is told by its name
    table.error_missing(fmt::format("a distribution is one of: {}", fmt::join(kinds, ", ")));
    return delay;
  }
  const std::string& kind = found.front();
  if (kind == "uniform") {
    delay.spread = Spread::kUniform;
    read_uniform(table, delay);
    return delay;
  }
  delay.nanoseconds = duration(table, kind);
  if (kind == "exponential") {
    delay.spread = Spread::kExponential;
  } else if (kind == "normal") {
    delay.spread = Spread::kNormal;
    delay.deviation_ns = duration(table, "deviation");
  } else {
    delay.spread = Spread::kPareto;
    delay.shape = table.number("shape", 1, 1e-3, 1e3);
  }
  return delay;
}

}  // namespace

DelayAction read_delay_action(TomlReader& action) {
  if (!action.is_table("delay")) {
    DelayAction delay;
    delay.nanoseconds = duration(action, "delay");
    return delay;
  }
  auto table = action.table("delay");
  return read_distribution(*table);
}

BandwidthAction read_bandwidth_action(TomlReader& action) {
  return {read_text<std::uint64_t>(action, "bandwidth", 1, parse_rate)};
}

FreezeAction read_freeze_action(TomlReader& action) {
  FreezeAction freeze;
  if (!action.is_boolean("freeze")) {
    freeze.nanoseconds = duration(action, "freeze");
  } else if (!action.boolean("freeze", true)) {
    action.error_at("freeze", "`freeze` is a duration, or true until it is released");
  }
  freeze.target = read_kill_target(action);
  return freeze;
}

}  // namespace savegate::faults
