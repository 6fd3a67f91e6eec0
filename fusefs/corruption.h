// Corruption: damage to the bytes of one operation, as a decision says.
#pragma once

#include <cstdint>
#include <functional>

#include "faults/injector.h"

namespace savegate::fusefs {

// Puts into [bytes + at, bytes + at + length) what the file held there before.
using ShowPast = std::function<void(std::uint64_t at, char* bytes, std::uint64_t length)>;

void corrupt(char* bytes, std::uint64_t size, const faults::Decision& decision,
             const ShowPast& show_past);

}  // namespace savegate::fusefs
