// `savegate mount`: the file system by hand. The daemon program takes this process's place, so that
// Ctrl-C and the exit status are its own.
#include <fmt/format.h>
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

Result<void> become_daemon(const std::string& backing, const std::string& mount_point,
                           const std::string& plan, const std::string& control) {
  SAVEGATE_TRY(Catalog catalog, find_catalog());
  if (!plan.empty()) {
    SAVEGATE_TRY(std::string text, read_file(plan));
    SAVEGATE_CHECK(faults::parse_plan(text, plan));
  }
  const std::string socket = control.empty() ? default_control_socket(mount_point) : control;
  std::error_code error;
  fs::create_directories(fs::path(socket).parent_path(), error);
  if (error) return fail(system_error("mkdir", socket, error.value()));
  fs::permissions(fs::path(socket).parent_path(), fs::perms::owner_all, error);

  std::vector<std::string> words = {catalog.bin + "/savegate-fs",
                                    "--backing",
                                    backing,
                                    "--mount",
                                    mount_point,
                                    "--control",
                                    socket};
  if (!plan.empty()) words.insert(words.end(), {"--plan", plan});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  fmt::print("mounted on {} until Ctrl-C; `savegate ctl {} status` asks it\n", mount_point,
             mount_point);
  std::fflush(stdout);
  execv(argv[0], argv.data());
  return fail(unavailable("cannot start the file system daemon", argv[0], errno));
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
                  const std::string& plan, const std::string& control) {
  auto became = become_daemon(backing, mount_point, plan, control);
  return report_error(became.error());
}

}  // namespace savegate::cli
