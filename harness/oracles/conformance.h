// Conformance: what the events of a subject are worth, kind by kind.
//
// A clean life is looked at as the oracles would: which event is missing or wrong, on which rank,
// and which requirements can then not be judged. It says nothing of the save path itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/evidence.h"

namespace savegate::harness {

enum class Conforms : std::uint8_t {
  kYes,
  kLeftOut,  // as the contract allows
  kMissing,
  kWrong,
};
std::string_view conforms_name(Conforms conforms);  // "left out"

struct Finding {
  std::string part;  // "save_begin", "items of save_begin", "subject.toml: reader"
  Conforms conforms = Conforms::kYes;
  std::size_t count = 0;                  // how many there are
  std::vector<std::string> lines;         // what is wrong, quoted
  std::vector<std::string> requirements;  // that cannot be judged because of it
};

// Of the first life. Empty where no rank wrote an event.
std::vector<Finding> check_conformance(const Evidence& evidence);

}  // namespace savegate::harness
