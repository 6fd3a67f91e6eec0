#include "harness/run/python.h"

#include <cstdlib>
#include <filesystem>

#include "harness/run/process.h"

namespace savegate::harness {

namespace fs = std::filesystem;

constexpr std::uint64_t kLookLimit = 60 * kSecond;

std::string python_program(const std::string& bin) {
  const char* named = std::getenv("SAVEGATE_PYTHON");
  if (named != nullptr && *named != '\0') return named;
  const fs::path made = fs::path(bin).parent_path() / "python/bin/python";
  std::error_code error;
  return fs::exists(made, error) ? made.string() : "python3";
}

namespace {

// "" where it is not there.
std::string python_folder(const std::string& bin) {
  for (const fs::path& place :
       {fs::path(bin) / "../share/savegate/python", fs::path(bin) / "../../python"}) {
    std::error_code error;
    if (fs::exists(place / "savegate_hook.py", error)) {
      return fs::weakly_canonical(place, error).string();
    }
  }
  return "";
}

}  // namespace

std::string python_path(const std::string& bin) {
  const char* inherited = std::getenv("PYTHONPATH");
  std::string path = python_folder(bin);
  if (inherited != nullptr && *inherited != '\0')
    path += (path.empty() ? "" : ":") + std::string(inherited);
  return "PYTHONPATH=" + path;
}

std::string python_file(const std::string& bin, const std::string& name) {
  return python_folder(bin) + "/" + name;
}

Result<void> check_python_packages(const std::string& python,
                                   const std::vector<std::string>& packages) {
  if (packages.empty()) return {};
  // Found, not imported: that would take seconds. The exit status counts to the first missing one.
  SpawnRequest request;
  request.command = {python, "-c",
                     "import importlib.util, sys\n"
                     "found = [importlib.util.find_spec(name) for name in sys.argv[1:]] + [None]\n"
                     "sys.exit(100 + found.index(None))"};
  request.command.insert(request.command.end(), packages.begin(), packages.end());
  request.environment = environment_with({});
  SAVEGATE_TRY(Process process, Process::spawn(request));
  const auto status = process.wait_for(kLookLimit);
  const auto found = static_cast<std::size_t>(status && status->code ? *status->code - 100 : -1);
  if (found == packages.size()) return {};
  if (found > packages.size())
    return fail(unavailable("this Python does not run; name another in SAVEGATE_PYTHON", python));
  return fail(unavailable(packages[found] +
                              " is not importable: run ./dev python, or name a Python that has it "
                              "in SAVEGATE_PYTHON",
                          python));
}

}  // namespace savegate::harness
