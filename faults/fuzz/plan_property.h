// What holds for any text that is read as a fault plan.
//
// It is refused with one line that names the source, or it is a plan that prints and reads back the
// same, and that decides about any operation without a request for more bytes than were asked.
#pragma once

#include <string>
#include <string_view>

namespace savegate::faults {

// What is broken, "" where all holds.
std::string broken_by_plan(std::string_view text);

}  // namespace savegate::faults
