#include "harness/memory/job_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <memory>

#include "harness/run/files.h"

namespace savegate::harness {
namespace {

constexpr const char* kPrefix = "savegate-";

std::vector<std::string> folders_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::opendir(directory.c_str()), ::closedir);
  if (!listed) return names;
  while (const dirent* entry = ::readdir(listed.get())) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

// The files of a cgroup go with its folder. One with a process in it stays.
void remove_cgroup(const std::string& directory) {
  for (const std::string& name : folders_in(directory)) remove_cgroup(directory + "/" + name);
  ::rmdir(directory.c_str());
}

UniqueFd locked(const std::string& directory, int how) {
  UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::flock(opened.get(), how) != 0) return {};
  return opened;
}

// Of runners that were killed.
void remove_abandoned(const std::string& base) {
  for (const std::string& name : folders_in(base)) {
    const std::string directory = base + "/" + name;
    if (name.starts_with(kPrefix) && locked(directory, LOCK_EX | LOCK_NB)) {
      remove_cgroup(directory);
    }
  }
}

// Version 2 gives a folder the controllers that the folder above hands down.
Result<void> hand_down(CgroupVersion version, const std::string& directory) {
  if (version == CgroupVersion::kOne) return {};
  return write_file(directory + "/cgroup.subtree_control", "+memory");
}

// Where the job's folder goes: below this process's own, or beside it. Of version 2, only the root
// hands controllers down while processes are in it.
Result<CgroupPlace> find_base() {
  const auto own = memory_cgroup_of(::getpid());
  if (!own) return fail(unavailable("no memory controller is mounted", "/sys/fs/cgroup"));
  const std::string above = own->directory.substr(0, own->directory.rfind('/'));
  for (const std::string& directory : {own->directory, above}) {
    if (hand_down(own->version, directory)) return CgroupPlace{own->version, directory};
  }
  return fail(unavailable(
      "neither this cgroup nor the one above may hand the memory controller down: they have "
      "processes of their own, or are not this user's",
      own->directory));
}

Result<void> make_folder(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) == 0) return {};
  return fail(unavailable("no cgroup can be made here", directory, errno));
}

bool exists(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0;
}

}  // namespace

Result<JobCgroup> JobCgroup::create(int ranks) {
  SAVEGATE_TRY(const CgroupPlace base, find_base());
  // Until the new folder has its lock it looks abandoned.
  const UniqueFd alone = locked(base.directory, LOCK_EX);
  if (!alone) return fail(unavailable("the cgroup cannot be locked", base.directory, errno));
  remove_abandoned(base.directory);
  const std::string directory = base.directory + "/" + kPrefix + std::to_string(monotonic_ns());
  SAVEGATE_CHECK(make_folder(directory));
  JobCgroup made(base.version, directory, locked(directory, LOCK_EX | LOCK_NB));
  SAVEGATE_CHECK(hand_down(base.version, directory));
  SAVEGATE_CHECK(make_folder(made.file_system().directory));
  SAVEGATE_CHECK(make_folder(made.ranks()));
  SAVEGATE_CHECK(hand_down(base.version, made.ranks()));
  for (int rank = 0; rank < ranks; ++rank) SAVEGATE_CHECK(make_folder(made.rank(rank).directory));
  return made;
}

JobCgroup::~JobCgroup() {
  if (lock_) remove_cgroup(directory_);
}

CgroupPlace JobCgroup::rank(int rank) const {
  return {version_, ranks() + "/rank-" + std::to_string(rank)};
}

// Swap would let them have more.
Result<void> JobCgroup::limit_ranks(std::uint64_t bytes) const {
  const bool two = version_ == CgroupVersion::kTwo;
  const std::string limit = std::to_string(bytes);
  SAVEGATE_CHECK(write_file(ranks() + (two ? "/memory.max" : "/memory.limit_in_bytes"), limit));
  const std::string swap = ranks() + (two ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes");
  return exists(swap) ? write_file(swap, two ? "0" : limit) : Result<void>();
}

Result<void> JobCgroup::add_file_system(pid_t pid) const {
  return write_file(file_system().directory + "/cgroup.procs", std::to_string(pid));
}

// "0" is the process that writes it, which then becomes the program.
std::vector<std::string> JobCgroup::begun_in(int rank,
                                             const std::vector<std::string>& command) const {
  std::vector<std::string> words = {"/bin/sh", "-c", "echo 0 >\"$0\" && exec \"$@\"",
                                    this->rank(rank).directory + "/cgroup.procs"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace savegate::harness
