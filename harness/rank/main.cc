// savegate-rank: starts a rank's program below a launcher, and writes down how it ended.
//
//   torchrun --no-python … savegate-rank -- PROGRAM ARGUMENT…
//
// What the launcher says of the rank becomes RANK, WORLD_SIZE and so on; the record goes to
// SAVEGATE_RANKS/rank-N, a line at the start and one at the end. The file system knows a rank's
// processes by their environment, and the rank's own process is the program, not this one: it
// starts itself again with the rank among its arguments and not in its environment. It ends as the
// program did, by the same signal if by one; if it is killed, the program is too.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::array kRankVariables = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
constexpr std::array kLocalRankVariables = {"LOCAL_RANK", "SLURM_LOCALID",
                                            "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"};
constexpr std::array kWorldVariables = {"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE"};
constexpr std::array kForwarded = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
constexpr int kUsage = 2;

volatile sig_atomic_t program = 0;      // its pid
volatile sig_atomic_t told_to_end = 0;  // the first signal that the launcher sent

void forward(int signal) {
  if (told_to_end == 0) told_to_end = signal;
  if (program > 0) ::kill(program, signal);
}

template <class Names>
std::string first_of(const Names& names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return "";
}

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Field 22 of /proc/PID/stat: with the pid, the identity of a process.
std::string start_ticks(pid_t pid) {
  std::array<char, 1024> text{};
  const int file = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  const char* at = got > 0 ? std::strrchr(text.data(), ')') : nullptr;
  constexpr int kFieldsAfterTheName = 20;
  for (int field = 0; at != nullptr && field < kFieldsAfterTheName; ++field)
    at = std::strchr(at + 1, ' ');
  return at == nullptr ? "0" : std::to_string(std::strtoull(at, nullptr, 10));
}

void record(int file, const std::string& line) {
  if (::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    std::perror("savegate-rank: cannot write the record");
}

// Again, without the rank in the environment: "--set NAME=value" for each variable taken out.
int start_again(char** arguments) {
  std::vector<std::string> words = {arguments[0]};
  for (const char* name : kRankVariables) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    words.insert(words.end(), {"--set", std::string(name) + "=" + value});
    ::unsetenv(name);
  }
  for (char** word = arguments + 1; *word != nullptr; ++word) words.emplace_back(*word);
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv("/proc/self/exe", pointers.data());
  std::perror("savegate-rank: cannot start again");
  return kUsage;
}

[[noreturn]] void become(char** command, const std::string& rank, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setenv("RANK", rank.c_str(), 1);
  const std::string local = first_of(kLocalRankVariables);
  ::setenv("LOCAL_RANK", local.empty() ? rank.c_str() : local.c_str(), 1);
  ::setenv("WORLD_SIZE", first_of(kWorldVariables).c_str(), 1);
  ::setenv("LOCAL_WORLD_SIZE", first_of(kWorldVariables).c_str(), 0);
  if (const char* events = std::getenv("SAVEGATE_EVENTS_DIRECTORY"); events != nullptr)
    ::setenv("SAVEGATE_EVENTS", (std::string(events) + "/rank-" + rank + ".jsonl").c_str(), 1);
  ::execvp(command[0], command);
  std::fprintf(stderr, "savegate-rank: %s: %s\n", command[0], std::strerror(errno));
  ::_exit(127);
}

int run(char** command) {
  const std::string rank = first_of(kRankVariables);
  const char* folder = std::getenv("SAVEGATE_RANKS");
  if (rank.empty() || folder == nullptr || *command == nullptr) {
    std::fputs("savegate-rank: it is run by savegate, below a launcher that gives a rank\n",
               stderr);
    return kUsage;
  }
  const char* checkpoints = std::getenv("SAVEGATE_DIR");
  if (checkpoints == nullptr || ::access(checkpoints, F_OK) != 0) {
    std::fputs(
        "savegate-rank: SAVEGATE_DIR is not to be seen here: the launcher's ranks are started "
        "by a service outside of savegate's sandbox; run savegate itself in the allocation\n",
        stderr);
    return kUsage;
  }
  const int file = ::open((std::string(folder) + "/rank-" + rank).c_str(),
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) {
    std::perror("savegate-rank: cannot open the record");
    return kUsage;
  }
  for (const int signal : kForwarded) ::signal(signal, forward);
  const pid_t parent = ::getpid();
  const std::uint64_t started_ns = monotonic_ns();
  const pid_t child = ::fork();
  if (child < 0) {
    std::perror("savegate-rank: fork");
    return kUsage;
  }
  if (child == 0) {
    for (const int signal : kForwarded) ::signal(signal, SIG_DFL);
    become(command, rank, parent);
  }
  program = child;
  record(file, "start " + std::to_string(child) + " " + start_ticks(child) + " " +
                   std::to_string(started_ns) + "\n");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (told_to_end != 0) record(file, "told " + std::to_string(told_to_end) + "\n");
  const bool signalled = WIFSIGNALED(status);
  const int value = signalled ? WTERMSIG(status) : WEXITSTATUS(status);
  record(file, std::string(signalled ? "signal " : "exit ") + std::to_string(value) + " " +
                   std::to_string(monotonic_ns()) + "\n");
  if (!signalled) return value;
  ::signal(value, SIG_DFL);
  ::raise(value);
  return 128 + value;
}

}  // namespace

int main(int count, char** arguments) {
  if (!first_of(kRankVariables).empty()) return start_again(arguments);
  int at = 1;
  for (; at + 1 < count && std::strcmp(arguments[at], "--set") == 0; at += 2)
    ::putenv(arguments[at + 1]);
  if (at < count && std::strcmp(arguments[at], "--") == 0) ++at;
  return run(arguments + at);
}
