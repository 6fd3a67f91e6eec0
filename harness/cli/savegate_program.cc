#include "harness/cli/savegate_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

#include "faults/status.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_process(const fs::path& path) {
  return path.filename().string().find_first_not_of("0123456789") == std::string::npos;
}

// The processes below `ancestor`, by following parents in /proc.
bool descends_from(pid_t pid, pid_t ancestor) {
  while (pid > 1 && pid != ancestor) {
    const std::string stat = contents(fmt::format("/proc/{}/stat", pid));
    const std::size_t close = stat.rfind(')');
    if (close == std::string::npos) return false;
    pid = std::atoi(stat.c_str() + close + 4);
  }
  return pid == ancestor;
}

pid_t find_process(pid_t ancestor, const std::string& name) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (!is_process(entry.path()) || contents(entry.path() / "comm") != name + "\n") continue;
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (descends_from(pid, ancestor)) return pid;
  }
  return -1;
}

}  // namespace

SavegateProgram::SavegateProgram() {
  folder_ = fs::temp_directory_path().string() + "/savegate-cli-XXXXXX";
  if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("mkdtemp: " + errno_name(errno));
}

SavegateProgram::~SavegateProgram() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string SavegateProgram::why_not() {
  if (access("/dev/fuse", R_OK | W_OK) == 0) return "";
  return "/dev/fuse: " + errno_name(errno);
}

std::string SavegateProgram::bin() const {
  return fs::read_symlink("/proc/self/exe").parent_path().string();
}

std::string SavegateProgram::command_line(const std::string& arguments) const {
  bool runs = false;
  for (const char* command : {"run", "loop", "replay", "reduce", "signoff", "selftest"})
    runs = runs || arguments.starts_with(command);
  if (!runs || arguments.find("--store") != std::string::npos)
    return bin() + "/savegate " + arguments;
  // Before a `--`, behind which everything is the command under test.
  const std::size_t end = arguments.find(" -- ");
  return fmt::format("{}/savegate {} --store {}{}", bin(), arguments.substr(0, end), store(),
                     end == std::string::npos ? "" : arguments.substr(end));
}

Ran SavegateProgram::run(const std::string& arguments) const {
  return shell(command_line(arguments));
}

Ran SavegateProgram::shell(const std::string& command) const {
  Ran ran;
  FILE* pipe = popen(("exec 2>&1; " + command).c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  for (std::size_t got; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    ran.output.append(buffer, got);
  ran.status = exit_status(pclose(pipe));
  return ran;
}

Ran SavegateProgram::run_and_signal(const std::string& arguments, int signal, std::uint64_t seed,
                                    const std::string& process) const {
  const std::string log = folder_ + "/output";
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", ("exec " + command_line(arguments)).c_str(), nullptr);
    _exit(127);
  }
  // The moment is what is random here: nothing waits for anything.
  std::mt19937_64 random(seed);
  poll(nullptr, 0, 50 + static_cast<int>(random() % 1500));
  pid_t target = child;
  if (process != "savegate")
    while ((target = find_process(child, process)) < 0 && kill(child, 0) == 0 &&
           waitpid(child, nullptr, WNOHANG) == 0) {
    }
  if (target > 0) kill(target, signal);
  int status = 0;
  waitpid(child, &status, 0);
  return {exit_status(status), contents(log)};
}

std::string SavegateProgram::processes() const {
  std::string found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (!is_process(entry.path())) continue;
    if (std::atoi(entry.path().filename().c_str()) == getpid()) continue;
    const bool holds = contents(entry.path() / "cmdline").find(folder_) != std::string::npos ||
                       contents(entry.path() / "environ").find(folder_) != std::string::npos;
    const std::string stat = contents(entry.path() / "stat");
    const std::size_t close = stat.rfind(')');
    const bool zombie = close != std::string::npos && stat.substr(close + 2, 1) == "Z";
    if (holds && !zombie) found += stat.substr(0, close + 3) + "\n";
  }
  return found;
}

std::string SavegateProgram::processes_left() const {
  // An end that was asked for takes its course: seen, not waited for by the clock.
  std::string left;
  for (int look = 0; look < 5000 && !(left = processes()).empty(); ++look) sched_yield();
  return left;
}

}  // namespace savegate::cli
