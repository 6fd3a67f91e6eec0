// `savegate mount`: the file system by hand.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <vector>

#include "faults/presets.h"
#include "harness/cli/catalog.h"
#include "harness/cli/commands.h"
#include "harness/cli/control_socket.h"
#include "harness/run/files.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;

struct Mounting {
  std::vector<std::string> words;  // the daemon's command
  std::string mount_point;
  std::string socket;
  std::string log;   // the daemon's output goes there; "": to ours
  std::string made;  // the plan of a preset; "": none was written
};

// What stands beside the socket is of use only for a mount that ended otherwise.
void clean_up(const Mounting& mounting) {
  for (const std::string& file : {mounting.log, mounting.made})
    if (!file.empty()) unlink(file.c_str());
}

Result<Mounting> prepare(const MountWords& asked) {
  SAVEGATE_TRY(Catalog catalog, find_catalog());
  std::string plan = asked.plan;
  if (!plan.empty()) {
    auto text = harness::read_file(plan);
    if (!text) return fail(invalid("cannot read the fault plan", plan));
    SAVEGATE_CHECK(faults::parse_plan(*text, plan));
  }
  faults::Plan preset;
  if (!asked.preset.empty()) {
    SAVEGATE_TRY(preset, faults::preset_from_words(asked.preset));
  }
  const std::string socket =
      asked.control.empty() ? default_control_socket(asked.mount_point) : asked.control;
  // A folder that the user names may be anybody's: the socket itself answers its owner alone.
  if (const fs::path folder = fs::absolute(socket).parent_path();
      asked.control.empty() || !fs::exists(folder)) {
    SAVEGATE_CHECK(make_private(folder.string()));
  }
  if (!asked.preset.empty()) {
    plan = socket + ".toml";
    SAVEGATE_CHECK(harness::replace_file(plan, faults::print_plan(preset)));
  }
  Mounting mounting{{catalog.bin + "/savegate-fs", "--backing", asked.backing, "--mount",
                     asked.mount_point, "--control", socket},
                    asked.mount_point,
                    socket,
                    "",
                    asked.preset.empty() ? "" : plan};
  if (!plan.empty()) mounting.words.insert(mounting.words.end(), {"--plan", plan});
  if (asked.hold_limit > 0) {
    mounting.words.insert(mounting.words.end(),
                          {"--hold-limit", fmt::format("{}", asked.hold_limit)});
  }
  return mounting;
}

// The daemon runs as a child, so that whoever dies, nothing stays mounted: the daemon ends with
// this process (--parent-pid), and this process takes a mount away that a killed daemon has left.
Result<pid_t> start_daemon(const Mounting& mounting, const int (&ready_pipe)[2]) {
  const std::string parent = std::to_string(getpid());
  const std::string ready = std::to_string(ready_pipe[1]);
  std::vector<std::string> words = mounting.words;
  words.insert(words.end(), {"--parent-pid", parent, "--ready-fd", ready});
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t daemon = fork();
  if (daemon < 0) return fail(system_error("fork", ""));
  if (daemon == 0) {
    close(ready_pipe[0]);
    if (!mounting.log.empty()) {
      const int log = open(mounting.log.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
      for (int fd : {STDOUT_FILENO, STDERR_FILENO}) dup2(log, fd);
    }
    setpgid(0, 0);  // Ctrl-C is for the parent, which tells it
    execv(argv[0], argv.data());
    _exit(report_error(unavailable("cannot start the file system daemon", argv[0], errno)));
  }
  return daemon;
}

// Hands SIGINT and SIGTERM on to the daemon until it has ended; its exit status.
Result<int> watch_daemon(pid_t daemon, const std::string& mount_point, const sigset_t& signals) {
  int status = 0;
  for (;;) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGCHLD) {
      kill(daemon, SIGTERM);
      continue;
    }
    const pid_t ended = waitpid(daemon, &status, WNOHANG);
    if (ended < 0) return fail(system_error("waitpid", ""));
    if (ended == daemon) break;
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  umount2(mount_point.c_str(), MNT_DETACH);  // fails where the kernel has done it
  return fail(
      internal_error(fmt::format("the file system daemon was ended by signal {}; {} is unmounted",
                                 WTERMSIG(status), mount_point)));
}

// One that blocks what watch_daemon() waits for.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// `announce` writes on success; the descriptor is closed in any case.
Result<int> mount_and_watch(const Mounting& mounting, const std::function<void()>& announce) {
  const sigset_t signals = block_signals();
  int ready[2];
  if (pipe(ready) != 0) return fail(system_error("pipe", ""));
  SAVEGATE_TRY(const pid_t daemon, start_daemon(mounting, ready));
  close(ready[1]);
  char word[6];
  const ssize_t got = read(ready[0], word, sizeof(word));  // 0: it ended, and has said why
  close(ready[0]);
  if (got > 0) announce();
  SAVEGATE_TRY(const int code, watch_daemon(daemon, mounting.mount_point, signals));
  if (code == kPassed) clean_up(mounting);
  return code;
}

Result<int> in_foreground(const Mounting& mounting) {
  return mount_and_watch(mounting, [&] {
    fmt::print("mounted on {} until Ctrl-C; `savegate ctl {} status` asks it\n",
               mounting.mount_point, mounting.mount_point);
    std::fflush(stdout);
  });
}

// Returns once it is mounted, or has failed to; a process of its own session goes on watching.
Result<int> in_background(Mounting& mounting) {
  mounting.log = mounting.socket + ".log";
  int mounted[2];
  if (pipe2(mounted, O_CLOEXEC) != 0) return fail(system_error("pipe", ""));
  const pid_t watcher = fork();
  if (watcher < 0) return fail(system_error("fork", ""));
  if (watcher == 0) {
    setsid();
    close(mounted[0]);
    Result<int> code = mount_and_watch(mounting, [&] {
      const int null = open("/dev/null", O_RDWR);
      for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
      if (write(mounted[1], "m", 1) == 1) close(mounted[1]);
    });
    _exit(code ? *code : report_error(code.error()));
  }
  close(mounted[1]);
  char word = 0;
  const ssize_t got = read(mounted[0], &word, 1);
  close(mounted[0]);
  if (got == 1) {
    fmt::print("mounted on {}; `savegate ctl {} stop` unmounts\n", mounting.mount_point,
               mounting.mount_point);
    return static_cast<int>(kPassed);
  }
  int status = 0;
  if (waitpid(watcher, &status, 0) != watcher) return fail(system_error("waitpid", ""));
  SAVEGATE_TRY(const std::string log, harness::read_file(mounting.log));
  fmt::print(stderr, "{}", log);
  clean_up(mounting);
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(kOwnError);
}

}  // namespace

int mount_command(const MountWords& words) {
  auto mounting = prepare(words);
  if (!mounting) return report_error(mounting.error());
  Result<int> code = words.background ? in_background(*mounting) : in_foreground(*mounting);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
