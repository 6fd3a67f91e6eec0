// A time within which something must happen. None is 0: everybody would be too late, and what is a
// slip of a configuration would be told as a failure of the program under test.
#pragma once

#include <cstdint>
#include <string_view>

#include "faults/status.h"
#include "faults/toml.h"

namespace savegate::harness {

Result<std::uint64_t> parse_time_limit(std::string_view text);  // "10s", in nanoseconds

std::uint64_t read_time_limit(faults::TomlReader& table, std::string_view key,
                              std::uint64_t otherwise);

}  // namespace savegate::harness
