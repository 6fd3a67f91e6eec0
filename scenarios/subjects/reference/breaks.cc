#include "scenarios/subjects/reference/breaks.h"

#include <cstdlib>
#include <thread>

#include "scenarios/subjects/reference/breaks_parts.h"

namespace savegate::reference {

const std::vector<Break>& all_breaks() {
  static const std::vector<Break> breaks = [] {
    std::vector<Break> all;
    for (const auto& some :
         {file_breaks(), save_breaks(), child_breaks(), restore_breaks(), report_breaks(),
          async_breaks(), device_breaks(), memory_breaks(), directory_breaks()}) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
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

void linger() {
  std::this_thread::sleep_for(kPatience);
  std::_Exit(kFailed);
}

}  // namespace savegate::reference
