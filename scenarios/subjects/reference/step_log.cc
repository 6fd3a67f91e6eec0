#include "scenarios/subjects/reference/step_log.h"

#include <fmt/format.h>

namespace savegate::reference {

Result<void> StepLog::add(std::int64_t step) {
  if (!job_.step_log || job_.rank != 0) return {};
  const std::string path = job_.path(kStepLogName);
  const std::string line = fmt::format("{{\"step\":{}}}\n", step);
  SAVEGATE_TRY(const int fd, job_.files.open_to_append(path));
  // A descriptor for appending writes at the end, whatever the offset says.
  auto written =
      job_.files.write(fd, path, reinterpret_cast<const std::byte*>(line.data()), line.size(), 0);
  auto closed = job_.files.close(fd, path);
  return written ? closed : written;
}

}  // namespace savegate::reference
