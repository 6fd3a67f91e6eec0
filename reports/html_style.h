// The style sheet of a report: light and dark, phone and paper.
#pragma once

#include <string_view>

namespace savegate::reports {

std::string_view html_style();

}  // namespace savegate::reports
