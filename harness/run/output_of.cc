#include "harness/run/output_of.h"

#include <fcntl.h>
#include <unistd.h>

#include "harness/run/process.h"
#include "harness/run/unique_fd.h"

namespace savegate::harness {
namespace {

constexpr std::uint64_t kToolLimit = 10 * kSecond;

}  // namespace

Result<std::string> output_of(const std::vector<std::string>& command,
                              const std::string& directory) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("pipe", ""));
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  SpawnRequest request;
  request.command = command;
  request.environment = environment_with({});
  request.directory = directory;
  request.output = writing.get();
  request.errors = nowhere.get();
  SAVEGATE_TRY(Process process, Process::spawn(request));
  writing.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(reading.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto status = process.wait_for(kToolLimit);
  if (status && status->code == 0) return text;
  return fail(unavailable(text.empty() ? "it failed" : text, command.front()));
}

}  // namespace savegate::harness
