// Small helpers on files and time that the runner's parts share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "faults/status.h"

namespace savegate::harness {

std::uint64_t monotonic_ns();  // CLOCK_MONOTONIC, as in every record

Result<std::string> read_file(const std::string& path);
Result<void> write_file(const std::string& path, std::string_view content);
// Readers see the old content or the new one, never a part.
Result<void> replace_file(const std::string& path, std::string_view content);
Result<void> make_directories(const std::string& path);
Result<void> remove_tree(const std::string& path);

// Letters, digits, '.', '_', '-' and '+' stay; anything else becomes '-'. Never "", "." or "..".
std::string safe_file_name(std::string_view name);

}  // namespace savegate::harness
