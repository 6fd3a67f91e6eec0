#include "harness/worker/neighbour_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

namespace savegate::worker {
namespace {

constexpr int kAnswerMilliseconds = 60000;  // a context, and a device's memory piece by piece
constexpr int kEndMilliseconds = 5000;

// It is savegate's own and ends by itself: nothing that a rank left behind. So it has a session of
// its own, and not the rank's event file, by which such processes are known.
std::vector<std::string> environment_without_events(const std::string& more) {
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("SAVEGATE_EVENTS=")) environment.emplace_back(*each);
  }
  if (!more.empty()) environment.push_back(more);
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

int spawn(pid_t& pid, std::vector<std::string>& command, std::vector<std::string>& environment,
          int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  int error = ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions, input, 0);
  if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions, output, 1);
  if (error == 0) {
    error = ::posix_spawn(&pid, command.front().c_str(), &actions, &attributes,
                          pointers(command).data(), pointers(environment).data());
  }
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

Result<NeighbourProcess> NeighbourProcess::start(const std::string& program,
                                                 const std::string& device, int rank,
                                                 const std::string& more_environment) {
  int input[2];
  int output[2];
  if (::pipe2(input, O_CLOEXEC) != 0) return fail(system_error("pipe", ""));
  if (::pipe2(output, O_CLOEXEC) != 0) {
    const Status status = system_error("pipe", "");
    ::close(input[0]);
    ::close(input[1]);
    return fail(status);
  }
  std::vector<std::string> command = {program, device, std::to_string(rank)};
  std::vector<std::string> environment = environment_without_events(more_environment);
  pid_t pid = 0;
  const int error = spawn(pid, command, environment, input[0], output[1]);
  ::close(input[0]);
  ::close(output[1]);
  if (error == 0) return NeighbourProcess(pid, input[1], output[0]);
  ::close(input[1]);
  ::close(output[0]);
  return fail(system_error("spawn", program, error));
}

NeighbourProcess::NeighbourProcess(NeighbourProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)) {}

NeighbourProcess::~NeighbourProcess() {
  if (pid_ == 0) return;
  ::close(input_);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  pollfd ended{.fd = pidfd, .events = POLLIN, .revents = 0};
  if (pidfd < 0 || ::poll(&ended, 1, kEndMilliseconds) <= 0) ::kill(pid_, SIGKILL);
  if (pidfd >= 0) ::close(pidfd);
  ::waitpid(pid_, nullptr, 0);
  ::close(output_);
}

Result<std::uint64_t> NeighbourProcess::ask(const std::string& command) {
  const std::string line = command + "\n";
  if (::write(input_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return fail(system_error("write", "the neighbour's input"));
  }
  SAVEGATE_TRY(const std::string answer, read_line());
  std::uint64_t bytes = 0;
  const char* end = answer.data() + answer.size();
  const auto parsed = std::from_chars(answer.data(), end, bytes);
  if (parsed.ec == std::errc() && parsed.ptr == end) return bytes;
  return fail(unavailable("the neighbour on the device, asked to `" + command + "`: " + answer));
}

Result<std::string> NeighbourProcess::read_line() {
  std::string line;
  char buffer[512];
  while (line.empty() || line.back() != '\n') {
    pollfd news{.fd = output_, .events = POLLIN, .revents = 0};
    const int woken = ::poll(&news, 1, kAnswerMilliseconds);
    if (woken < 0 && errno == EINTR) continue;
    if (woken < 0) return fail(system_error("poll", "the neighbour's output"));
    if (woken == 0) return fail(unavailable("the neighbour on the device does not answer"));
    const ssize_t part = ::read(output_, buffer, sizeof(buffer));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return fail(system_error("read", "the neighbour's output"));
    if (part == 0) return fail(unavailable("the neighbour on the device has ended"));
    line.append(buffer, static_cast<std::size_t>(part));
  }
  line.pop_back();
  return line;
}

}  // namespace savegate::worker
