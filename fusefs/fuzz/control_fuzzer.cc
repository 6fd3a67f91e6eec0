// libFuzzer's way into control_property.h.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fusefs/fuzz/control_property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Never destroyed: at exit what Boost.Fiber keeps for this thread is gone before it.
  static auto& property = *new savegate::fusefs::ControlProperty;
  const std::string broken = property.broken_by({reinterpret_cast<const char*>(data), size});
  if (broken.empty()) return 0;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}
