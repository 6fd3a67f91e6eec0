// libFuzzer's way into plan_property.h.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "faults/fuzz/plan_property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string broken =
      savegate::faults::broken_by_plan({reinterpret_cast<const char*>(data), size});
  if (broken.empty()) return 0;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}
