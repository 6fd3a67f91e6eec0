#include "fusefs/corruption.h"

#include <algorithm>

namespace savegate::fusefs {

void corrupt(char* bytes, std::uint64_t size, const faults::Decision& decision,
             const ShowPast& show_past) {
  const std::uint64_t at = std::min(decision.corrupt_at, size);
  std::uint64_t length = std::min(decision.corrupt_length, size - at);
  switch (decision.corrupt->kind) {
    case faults::Corruption::kFlip:
      for (std::uint64_t i = at; i < at + length; i++) bytes[i] = static_cast<char>(bytes[i] ^ 1);
      break;
    case faults::Corruption::kZero:
      std::fill_n(bytes + at, length, '\0');
      break;
    case faults::Corruption::kStale:
      show_past(at, bytes + at, length);
      break;
    case faults::Corruption::kSwap: {
      const std::uint64_t with = std::min(decision.corrupt_with, size);
      length = std::min(length, size - with);
      std::swap_ranges(bytes + at, bytes + at + length, bytes + with);
      break;
    }
  }
}

}  // namespace savegate::fusefs
