#include "harness/time_limit.h"

#include <fmt/format.h>

#include "faults/plan.h"

namespace savegate::harness {

Result<std::uint64_t> parse_time_limit(std::string_view text) {
  SAVEGATE_TRY(const std::uint64_t duration, faults::parse_duration(text));
  if (duration == 0) return fail(invalid(fmt::format("`{}` leaves no time at all", text)));
  return duration;
}

std::uint64_t read_time_limit(faults::TomlReader& table, std::string_view key,
                              std::uint64_t otherwise) {
  const std::string text = table.text(key);
  if (!table.has(key)) return otherwise;
  const auto limit = parse_time_limit(text);
  if (limit) return *limit;
  table.error_at(key, fmt::format("`{}`: {}", key, limit.error().text));
  return otherwise;
}

}  // namespace savegate::harness
