// JSON as text: the one place where it is written, so that no name of a file, argument or variable
// can end the program. Bytes that are no UTF-8 become U+FFFD.
#pragma once

#include <string>

namespace savegate::faults {

// One line, or indented. `Json` is any of nlohmann's; this header needs none of them.
template <class Json>
std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace savegate::faults
