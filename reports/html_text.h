// Text within a page: escaped, and outcomes with a sign and a word, so that colour is never alone.
#pragma once

#include <string>
#include <string_view>

#include "reports/result.h"

namespace savegate::reports {

// For text and for attributes in double quotes. Control characters, and the ones that turn the
// direction of writing, become U+FFFD.
std::string html(std::string_view text);
// Of a relative link: what is no letter, digit or "-._~/" as %XX.
std::string link_path(std::string_view path);
std::string outcome_badge(Outcome outcome);
std::string_view outcome_sign(Outcome outcome);  // "✗"
std::string seconds_text(double seconds);        // "1.24 s", "310 µs"
std::string bytes_text(double bytes);            // "4.0 KiB"

}  // namespace savegate::reports
