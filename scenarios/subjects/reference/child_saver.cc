#include "scenarios/subjects/reference/child_saver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace savegate::reference {
namespace {

Result<std::string> read_to_the_end(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("read", "the writer's pipe"));
    if (got == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

bool write_whole(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t part = ::write(fd, text.data() + done, text.size() - done);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return false;
    done += static_cast<std::size_t>(part);
  }
  return true;
}

Result<int> wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail(system_error("waitpid", "the writer"));
  }
  return status;
}

}  // namespace

Result<std::vector<FileRecord>> ChildSaver::store_files() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(system_error("pipe", ""));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(write_whole(ends[1], report_of_child()) ? 0 : 1);
  const int not_forked = errno;
  ::close(ends[1]);
  const auto said =
      child < 0 ? fail(system_error("fork", "", not_forked)) : read_to_the_end(ends[0]);
  ::close(ends[0]);
  if (child < 0) return fail(said.error());
  SAVEGATE_TRY(const int status, wait_for(child));
  if (!said) return fail(said.error());
  return conclude(*said, status);
}

std::string ChildSaver::report_of_child() {
  const auto stored = Saver::store_files();
  return stored ? print_vote({}, print_records(*stored)) : print_vote(fail(stored.error()), "");
}

Result<std::vector<FileRecord>> ChildSaver::conclude(const std::string& said, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    SAVEGATE_TRY(const std::string records, parse_vote(said));
    return parse_records(records);
  }
  Status died = internal_error(
      WIFSIGNALED(status) ? fmt::format("the writer was ended by signal {}", WTERMSIG(status))
                          : fmt::format("the writer left with {}", WEXITSTATUS(status)));
  died.operation = "save";
  died.path = directory();
  died.rank = job_.rank;
  return fail(std::move(died));
}

}  // namespace savegate::reference
