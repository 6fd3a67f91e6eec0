// R6, R7, F10: what a later life finds of an earlier one, where the path or the code is another.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict moved_directory_works(const Evidence& evidence);  // R6
reports::Verdict records_survive(const Evidence& evidence);        // R7
reports::Verdict older_formats_load(const Evidence& evidence);     // F10

// The change with which a subject runs as an older version of itself.
inline constexpr std::string_view kOlderCode = "older-code";

}  // namespace savegate::harness
