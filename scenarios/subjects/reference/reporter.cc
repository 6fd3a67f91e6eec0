#include "scenarios/subjects/reference/reporter.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace savegate::reference {

worker::Memory Reporter::memory(gpu::Backend& backend) {
  worker::Memory facts = {{"host_rss", std::nullopt},          {"host_rss_peak", std::nullopt},
                          {"gpu_allocated", std::nullopt},     {"gpu_reserved", std::nullopt},
                          {"gpu_reserved_peak", std::nullopt}, {"gpu_free", std::nullopt},
                          {"gpu_retries", std::nullopt},       {"gpu_refusals", std::nullopt}};
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  if (statm >> size >> resident) {
    facts["host_rss"] = resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    facts["host_rss_peak"] = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  }
  if (const auto device = backend.memory(); device && *device) {
    facts["gpu_allocated"] = (*device)->allocated;
    facts["gpu_reserved"] = (*device)->reserved;
    facts["gpu_reserved_peak"] = (*device)->reserved_peak;
    facts["gpu_free"] = (*device)->free;
    facts["gpu_retries"] = (*device)->retries;
    facts["gpu_refusals"] = (*device)->refusals;
  }
  return facts;
}

}  // namespace savegate::reference
