// libFuzzer's way into control_property.h.
//
// Leaks are looked for where no thread of the file system runs, not after each input as libFuzzer
// does (-detect_leaks=0): LeakSanitizer does not know yet what a thread that is just starting
// holds, and accuses it.
#include <sanitizer/lsan_interface.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fusefs/fuzz/control_property.h"

namespace {

void give_up_on_leaks() {
  if (__lsan_do_recoverable_leak_check() != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Never destroyed: at exit what Boost.Fiber keeps for this thread is gone before it.
  static auto& property = *new savegate::fusefs::ControlProperty(give_up_on_leaks);
  const std::string broken = property.broken_by({reinterpret_cast<const char*>(data), size});
  if (broken.empty()) return 0;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}
