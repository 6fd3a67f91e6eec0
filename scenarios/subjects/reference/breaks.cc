#include "scenarios/subjects/reference/breaks.h"

namespace savegate::reference {

const std::vector<Break>& all_breaks() {
  static const std::vector<Break> breaks = {};
  return breaks;
}

bool apply_break(const std::string& name, Options& options, Parts& parts) {
  for (const Break& each : all_breaks()) {
    if (name != each.name) continue;
    each.apply(options, parts);
    return true;
  }
  return false;
}

}  // namespace savegate::reference
