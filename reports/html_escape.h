// Text in HTML: what may stand between tags and in quoted attributes.
#pragma once

#include <string>
#include <string_view>

namespace savegate::reports {

inline std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace savegate::reports
