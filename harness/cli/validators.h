// Numbers as CLI11 is to check them: by their text, before it makes another number of them.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "harness/cli/arguments.h"

namespace savegate::cli {

inline CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return {[=](std::string& text) { return whole_number_error(text, least, most); },
          fmt::format("in [{} - {}]", least, most)};
}

inline CLI::Validator real_number(double least, double most) {
  return {[=](std::string& text) { return number_error(text, least, most); },
          fmt::format("in [{} - {}]", least, most)};
}

}  // namespace savegate::cli
