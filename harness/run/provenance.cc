#include "harness/run/provenance.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "faults/json_text.h"
#include "harness/evidence.h"
#include "harness/run/files.h"
#include "harness/run/life_runner.h"
#include "harness/run/output_of.h"
#include "harness/run/python.h"
#include "harness/run/tree_listing.h"

namespace savegate::harness {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNotObtained = "not obtained";
constexpr std::string_view kBinding[] = {"command",         "command.digest",  "executable.digest",
                                         "files.digest",    "git.revision",    "launcher",
                                         "scenario.digest", "savegate.version"};
constexpr std::string_view kEnvironmentPrefixes[] = {"NCCL_", "CUDA_",     "TORCH_",   "OMP_",
                                                     "GLOO_", "SAVEGATE_", "PYTORCH_", "PYTHON"};

std::string or_not_obtained(const Result<std::string>& value) {
  return value && !value->empty() ? *value : kNotObtained;
}

// "" where the tool is missing or fails.
std::string printed_by(const std::vector<std::string>& command, const std::string& directory = "") {
  return output_of(command, directory).value_or("");
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// One digest over names and digests of all files of a subject's folder.
std::string digest_of_files(const Subject& subject, const RunOptions& options) {
  const auto paths = files_of_subject(subject, options);
  if (!paths || paths->empty()) return kNotObtained;
  std::string all;
  for (const std::string& path : *paths) {
    const auto digest = digest_file(subject.directory + "/" + path);
    if (!digest) return kNotObtained;
    all.append(path).append(1, ' ').append(*digest).append(1, '\n');
  }
  return digest_bytes(all);
}

// "shard: step_*/shard-*; marker: step_*/complete"
std::string layout_words(const faults::Layout& layout) {
  std::string words;
  for (const auto& [role, patterns] :
       {std::pair("shard", &layout.shard), std::pair("marker", &layout.marker),
        std::pair("pointer", &layout.pointer), std::pair("auxiliary", &layout.auxiliary),
        std::pair("temporary", &layout.temporary)}) {
    if (patterns->empty()) continue;
    words.append(words.empty() ? "" : "; ").append(role).append(": ").append(join(*patterns));
  }
  return words.empty() ? kNotObtained : words;
}

// The words of the command that are files: the executable, and a script where it is an interpreter.
std::string digest_of_command(const std::vector<std::string>& command) {
  std::string all;
  for (const std::string& word : command) {
    all += word + '\n';
    std::error_code error;
    if (!fs::is_regular_file(word, error)) continue;
    if (const auto digest = digest_file(word)) all += *digest + '\n';
  }
  return digest_bytes(all);
}

std::string relevant_environment() {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    for (const std::string_view prefix : kEnvironmentPrefixes) {
      if (text.substr(0, prefix.size()) == prefix) found.emplace_back(text);
    }
  }
  std::sort(found.begin(), found.end());
  return found.empty() ? "none set" : join(found);
}

struct MountEntry {
  std::string type = kNotObtained;
  std::string options = kNotObtained;
};

// The line of /proc/self/mountinfo with the longest mount point above the path.
MountEntry mount_of(const std::string& path) {
  MountEntry best;
  const auto text = read_file("/proc/self/mountinfo");
  if (!text) return best;
  std::istringstream lines(*text);
  std::size_t best_length = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point, options, word, type, source, super;
    words >> id >> parent >> device >> root >> point >> options;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> super;
    const bool above = point == "/" || path == point || path.rfind(point + "/", 0) == 0;
    if (above && point.size() >= best_length) {
      best_length = point.size();
      best = {type, options + "," + super};
    }
  }
  return best;
}

// The version of a loadable library, through its own function; "not obtained" where it is not
// there.
std::string library_version(const char* library, const char* function) {
  void* handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return kNotObtained;
  using VersionFunction = int (*)(int*);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
  const auto ask = reinterpret_cast<VersionFunction>(::dlsym(handle, function));
  int version = 0;
  std::string text = ask != nullptr && ask(&version) == 0 ? std::to_string(version) : kNotObtained;
  ::dlclose(handle);
  return text;
}

void add_gpu_facts(std::map<std::string, std::string>& values) {
  values["gpu"] = values["driver"] = values["cuda"] = values["nccl"] = kNotObtained;
  std::error_code error;
  if (!fs::exists("/proc/driver/nvidia/version", error)) return;
  const auto query = [](const std::string& what) {
    std::string text = printed_by({"nvidia-smi", "--query-gpu=" + what, "--format=csv,noheader"});
    std::replace(text.begin(), text.end(), '\n', ';');
    return text;
  };
  values["gpu"] = or_not_obtained(query("name"));
  const std::string drivers = query("driver_version");
  values["driver"] = or_not_obtained(drivers.substr(0, drivers.find(';')));
  values["cuda"] = library_version("libcuda.so.1", "cuDriverGetVersion");
  values["nccl"] = library_version("libnccl.so.2", "ncclGetVersion");
}

// The image's name and version, as its maker gives them.
Result<std::string> system_name() {
  SAVEGATE_TRY(const std::string text, read_file("/etc/os-release"));
  std::istringstream lines(text);
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    for (const std::string_view key :
         {"PRETTY_NAME=", "VERSION_ID=", "BUILD_ID=", "IMAGE_VERSION="})
      if (line.starts_with(key)) name += (name.empty() ? "" : " ") + line;
  }
  return name;
}

// Facts of the machine do not change within a run; tools are asked once.
const std::map<std::string, std::string>& facts_of_machine() {
  static const std::map<std::string, std::string> facts = [] {
    std::map<std::string, std::string> values;
    utsname name{};
    values["kernel"] = ::uname(&name) == 0 ? std::string(name.sysname) + " " + name.release + " " +
                                                 name.version + " " + name.machine
                                           : kNotObtained;
    values["system"] = or_not_obtained(system_name());
    values["cpus"] = std::to_string(::sysconf(_SC_NPROCESSORS_ONLN));
    values["savegate.version"] = SAVEGATE_VERSION;
    values["environment"] = relevant_environment();
    add_gpu_facts(values);
    return values;
  }();
  return facts;
}

// The revision of a directory does not change within a run either.
std::pair<std::string, std::string> git_facts(const std::string& directory) {
  const std::string revision = printed_by({"git", "rev-parse", "HEAD"}, directory);
  if (revision.empty()) return {kNotObtained, kNotObtained};
  return {revision, printed_by({"git", "status", "--porcelain", "--", "."}, directory).empty()
                        ? "no"
                        : "yes"};
}

// "Python 3.11.7 torch==2.11.0": of what the subject says that it needs.
std::string python_versions(const std::string& python, const std::vector<std::string>& packages) {
  std::vector<std::string> command = {
      python, "-c",
      "import importlib.metadata as m, platform, sys\n"
      "owners = m.packages_distributions()\n"
      "names = sorted({d for p in sys.argv[1:] for d in owners.get(p, [])})\n"
      "print('Python', platform.python_version(), *(f'{n}=={m.version(n)}' for n in names))"};
  command.insert(command.end(), packages.begin(), packages.end());
  const std::string versions = printed_by(command);
  return versions.empty() ? kNotObtained : versions;
}

struct SubjectFacts {
  std::string files;
  std::pair<std::string, std::string> git;
  std::string packages;
};

const SubjectFacts& facts_of_subject(const Subject& subject, const RunOptions& options) {
  const std::string& directory = subject.directory;
  static std::mutex mutex;
  static std::map<std::string, SubjectFacts> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(directory);
  if (found != known.end()) return found->second;
  SubjectFacts facts{digest_of_files(subject, options), git_facts(directory), kNotObtained};
  if (!subject.needs_python.empty())
    facts.packages = python_versions(python_program(options.bin), subject.needs_python);
  return known.emplace(directory, std::move(facts)).first->second;
}

}  // namespace

std::map<std::string, std::string> machine_provenance(const std::string& backing) {
  std::map<std::string, std::string> values = facts_of_machine();
  std::error_code error;
  const std::string path = fs::weakly_canonical(backing, error).string();
  const MountEntry mount = mount_of(path);
  values["backing.filesystem"] = mount.type;
  values["backing.options"] = mount.options;
  return values;
}

Result<std::vector<std::string>> files_of_subject(const Subject& subject,
                                                  const RunOptions& options) {
  const fs::path store = fs::path(options.store_directory).parent_path();
  std::vector<std::string> paths;
  std::error_code error;
  auto at = fs::recursive_directory_iterator(subject.directory, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code absent;  // a store that is not there is no folder of the subject either
    if (name[0] == '.' || name == "__pycache__" ||
        (at->is_directory() && fs::equivalent(at->path(), store, absent))) {
      at.disable_recursion_pending();
      continue;
    }
    if (at->is_regular_file())
      paths.push_back(at->path().lexically_relative(subject.directory).string());
  }
  if (error) return fail(system_error("list", subject.directory, error.value()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string bound_to(const std::map<std::string, std::string>& provenance) {
  const auto command = provenance.find("command.digest");
  if (command == provenance.end() || command->second == kNotObtained) return "";
  std::string all;
  for (const std::string_view name : kBinding) {
    const auto found = provenance.find(std::string(name));
    all.append(name).append(1, '=');
    all.append(found == provenance.end() ? kNotObtained : found->second).append(1, '\n');
  }
  return digest_bytes(all);
}

Provenance::Provenance(const Scenario& scenario, const Subject& subject, const RunOptions& options,
                       const std::string& backing)
    : values_(machine_provenance(backing)) {
  const LifeSetup setup{.scenario = scenario,
                        .subject = subject,
                        .options = options,
                        .number = 1,
                        .folder = "",
                        .backing = backing,
                        .scratch = ""};
  auto command = expand_command(options.command.empty() ? subject.command : options.command,
                                command_values(setup));
  for (const std::string_view name : kProvenanceNames) values_.emplace(name, kNotObtained);
  if (command && !command->empty()) {
    values_["command"] = join(*command);
    if (auto executable = find_executable(command->front())) {
      executable_ = *executable;
      command->front() = executable_;
      values_["executable"] = executable_;
      values_["executable.digest"] = or_not_obtained(digest_file(executable_));
    }
    values_["command.digest"] = digest_of_command(*command);
  }
  if (!subject.directory.empty()) {
    const SubjectFacts& facts = facts_of_subject(subject, options);
    values_["files.digest"] = facts.files;
    values_["python.packages"] = facts.packages;
    values_["git.revision"] = facts.git.first;
    values_["git.dirty"] = facts.git.second;
  }
  std::string plans;
  for (const LifeSpec& life : scenario.lives) plans += faults::print_plan(life.plan) + '\0';
  values_["plan.digest"] = digest_bytes(plans);
  values_["scenario.digest"] = digest_bytes(print_scenario(scenario));
  values_["device"] = options.device;
  values_["world"] = std::to_string(scenario.world);
  values_["backing.directory"] = options.backing.empty() ? "in the store" : options.backing;
  values_["subject.digest"] = digest_bytes(subject.toml);
  values_["subject.directory"] = subject.directory.empty() ? kNotObtained : subject.directory;
  values_["layout"] = layout_words(subject.layout);
  values_["launcher"] = subject.launcher;
  values_["processes"] =
      options.fork_servers != nullptr ? "forked at the program's fork point" : kFreshPrograms;
  values_["seed"] = std::to_string(scenario.seed);
}

std::string Provenance::finish() {
  if (!executable_.empty()) {
    values_["executable.digest.end"] = or_not_obtained(digest_file(executable_));
  }
  return faults::json_text(nlohmann::json(values_), 2) + "\n";
}

}  // namespace savegate::harness
