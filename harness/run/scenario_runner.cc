#include "harness/run/scenario_runner.h"

#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "harness/applicable.h"
#include "harness/evidence.h"
#include "harness/run/files.h"
#include "harness/run/interrupt.h"
#include "harness/run/life_runner.h"
#include "harness/run/provenance.h"
#include "harness/run/sandbox.h"
#include "harness/run/store.h"

namespace savegate::harness {
namespace {

constexpr const char* kTree = "/work";  // in the scenario's folder: the tree, or a link to it

// A directory with a name of its own, removed with all that is in it.
class ScratchDirectory {
 public:
  static Result<ScratchDirectory> make(const std::string& parent) {
    std::string path = parent + "/s-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return fail(system_error("mkdtemp", path));
    return ScratchDirectory(path);
  }
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;  // on the sandbox's own tmpfs it goes away anyway
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The backing directory, made and looked at before anything starts.
Result<std::string> make_backing(const std::string& base, const std::string& folder) {
  std::string path = folder + kTree;
  if (!base.empty()) {
    std::error_code error;
    path = std::filesystem::absolute(base, error).string() + "/savegate-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return fail(unavailable(
          "the backing directory cannot be written; give another with --backing", base, errno));
    }
    if (::symlink(path.c_str(), (folder + kTree).c_str()) != 0) {
      return fail(system_error("symlink", folder + kTree));
    }
  } else {
    SAVEGATE_CHECK(make_directories(path));
  }
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) != 0) return fail(system_error("statvfs", path));
  if (space.f_bavail == 0) {
    return fail(
        unavailable("the file system of the backing directory is full; free space or give "
                    "another directory with --backing",
                    path, ENOSPC));
  }
  return path;
}

Result<void> write_inputs(const std::string& folder, const Scenario& scenario,
                          const Subject& subject) {
  SAVEGATE_CHECK(write_file(folder + "/scenario.json", print_scenario(scenario)));
  return write_file(folder + "/subject.toml", subject.toml);
}

}  // namespace

Result<std::string> run_scenario(const Scenario& asked, const Subject& subject,
                                 const RunOptions& options) {
  const Scenario scenario = resolved_for(asked, subject);
  SAVEGATE_TRY(const std::string folder,
               make_new_directory(options.store_directory, scenario.name));
  SAVEGATE_TRY(const std::string backing, make_backing(options.backing, folder));
  SAVEGATE_TRY(const ScratchDirectory scratch,
               ScratchDirectory::make(in_sandbox() ? sandbox_directory() : "/tmp"));
  SAVEGATE_CHECK(write_inputs(folder, scenario, subject));
  Provenance provenance(scenario, subject, options, backing);
  for (int number = 1; number <= static_cast<int>(scenario.lives.size()); ++number) {
    if (interrupted()) break;
    const LifeSetup setup{.scenario = scenario,
                          .subject = subject,
                          .options = options,
                          .number = number,
                          .folder = folder + "/life-" + std::to_string(number),
                          .backing = backing,
                          .scratch = scratch.path()};
    SAVEGATE_TRY(const LifeRecord record, run_life(setup));
    if (record.daemon_died) break;
  }
  SAVEGATE_CHECK(write_file(folder + "/provenance.json", provenance.finish()));
  SAVEGATE_CHECK(write_manifest(folder));
  return folder;
}

Result<void> remove_trees(const std::string& scenario_folder) {
  const std::string link = scenario_folder + kTree;
  std::error_code error;
  const std::string tree = std::filesystem::canonical(link, error).string();
  if (error) return fail(system_error("readlink", link, error.value()));
  SAVEGATE_CHECK(remove_tree(tree));
  return remove_tree(link);
}

}  // namespace savegate::harness
