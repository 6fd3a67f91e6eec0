// `savegate mount`: the file system by hand.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "faults/plan.h"
#include "harness/cli/catalog.h"
#include "harness/cli/commands.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;

struct Mounting {
  std::vector<std::string> words;  // the daemon's command
  std::string mount_point;
};

Result<Mounting> prepare(const std::string& backing, const std::string& mount_point,
                         const std::string& plan, const std::string& control) {
  SAVEGATE_TRY(Catalog catalog, find_catalog());
  if (!plan.empty()) {
    auto text = read_file(plan);
    if (!text) return fail(invalid("cannot read the fault plan", plan));
    SAVEGATE_CHECK(faults::parse_plan(*text, plan));
  }
  const std::string socket = control.empty() ? default_control_socket(mount_point) : control;
  std::error_code error;
  const fs::path folder = fs::absolute(socket).parent_path();
  if (!fs::exists(folder)) {
    fs::create_directories(folder, error);
    if (!error) fs::permissions(folder, fs::perms::owner_all, error);
    if (error) return fail(system_error("mkdir", folder.string(), error.value()));
  }
  Mounting mounting{{catalog.bin + "/savegate-fs", "--backing", backing, "--mount", mount_point,
                     "--control", socket},
                    mount_point};
  if (!plan.empty()) mounting.words.insert(mounting.words.end(), {"--plan", plan});
  return mounting;
}

Status cannot_start(const Mounting& mounting) {
  return unavailable("cannot start the file system daemon", mounting.words.front(), errno);
}

[[nodiscard]] Status become(Mounting& mounting) {
  std::vector<char*> argv;
  for (std::string& word : mounting.words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  return cannot_start(mounting);
}

// In the foreground the daemon takes this process's place, so that Ctrl-C and the exit status are
// its own.
Result<int> in_foreground(Mounting& mounting) {
  fmt::print("mounted on {} until Ctrl-C; `savegate ctl {} status` asks it\n", mounting.mount_point,
             mounting.mount_point);
  std::fflush(stdout);
  return fail(become(mounting));
}

// In the background: returns once it is mounted, or has failed to.
Result<int> in_background(Mounting& mounting) {
  int ready[2];
  if (pipe(ready) != 0) return fail(system_error("pipe", ""));
  const pid_t daemon = fork();
  if (daemon < 0) return fail(system_error("fork", ""));
  if (daemon == 0) {
    close(ready[0]);
    setsid();
    mounting.words.insert(mounting.words.end(), {"--ready-fd", std::to_string(ready[1])});
    _exit(report_error(become(mounting)));
  }
  close(ready[1]);
  char word[6];
  const ssize_t got = read(ready[0], word, sizeof(word));  // 0: it ended, and has said why
  close(ready[0]);
  if (got > 0) {
    fmt::print("mounted on {}; `savegate ctl {} stop` unmounts\n", mounting.mount_point,
               mounting.mount_point);
    return static_cast<int>(kPassed);
  }
  int status = 0;
  if (waitpid(daemon, &status, 0) != daemon) return fail(system_error("waitpid", ""));
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(kOwnError);
}

}  // namespace

std::string default_control_socket(const std::string& mount_point) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime != nullptr && *runtime != '\0'
                                 ? std::string(runtime) + "/savegate"
                                 : fmt::format("/tmp/savegate-{}", getuid());
  std::error_code ignored;
  const std::string absolute = fs::absolute(mount_point, ignored).lexically_normal().string();
  return fmt::format("{}/mount-{:016x}.sock", folder, std::hash<std::string>{}(absolute));
}

int mount_command(const std::string& backing, const std::string& mount_point,
                  const std::string& plan, const std::string& control, bool background) {
  auto mounting = prepare(backing, mount_point, plan, control);
  if (!mounting) return report_error(mounting.error());
  Result<int> code = background ? in_background(*mounting) : in_foreground(*mounting);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
