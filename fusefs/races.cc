#include "fusefs/races.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "fusefs/file_system.h"
#include "fusefs/named.h"

namespace savegate::fusefs {

using faults::Op;
using faults::Race;

namespace {

constexpr mode_t kFileMode = 0644;
constexpr mode_t kFolderMode = 0755;

int make_name(const Node& folder, const std::string& name, bool directory) {
  if (directory) return ::mkdirat(folder.fd, name.c_str(), kFolderMode) == 0 ? 0 : errno;
  const int fd =
      ::openat(folder.fd, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

int remove_file(FileSystem& fs, const Node& folder, const std::string& name) {
  const Named named(folder, name.c_str());
  if (::unlinkat(folder.fd, name.c_str(), 0) != 0) return errno;
  if (named.exists()) fs.name_removed(named.fd());
  return 0;
}

std::vector<std::string> names_in(int folder_fd) {
  std::vector<std::string> names;
  const int fd = ::openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = fd < 0 ? nullptr : ::fdopendir(fd);
  if (stream == nullptr) {
    if (fd >= 0) ::close(fd);
    return names;
  }
  while (const dirent* next = ::readdir(stream)) {
    const std::string_view name = next->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(stream);
  return names;
}

// A folder with all that is in it.
int remove_tree(FileSystem& fs, const Node& folder, const std::string& name) {
  const int fd = ::openat(folder.fd, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat attributes {};
  if (fd < 0) return errno;
  if (::fstat(fd, &attributes) != 0) {
    const int error = errno;
    ::close(fd);
    return error;
  }
  const Node node(fd, attributes);  // closes it
  if (!S_ISDIR(attributes.st_mode)) return remove_file(fs, folder, name);
  for (const std::string& inner : names_in(fd)) {
    if (int error = remove_tree(fs, node, inner)) return error;
  }
  return ::unlinkat(folder.fd, name.c_str(), AT_REMOVEDIR) == 0 ? 0 : errno;
}

int move_name(FileSystem& fs, const Subject& subject) {
  const Named victim(*subject.node2, subject.name2.c_str());
  const Named source(*subject.node, subject.name.c_str());
  if (::renameat(subject.node->fd, subject.name.c_str(), subject.node2->fd,
                 subject.name2.c_str()) != 0) {
    return errno;
  }
  if (auto moved = source.node(fs.inodes)) fs.inodes.moved(moved, subject.node2, subject.name2);
  if (victim.exists() && victim.file() != source.file()) fs.name_removed(victim.fd());
  return 0;
}

}  // namespace

int run_race(FileSystem& fs, Race kind, Op op, const Subject& subject) {
  switch (kind) {
    case Race::kMade:
      return op == Op::kLink ? make_name(*subject.node2, subject.name2, /*directory=*/false)
                             : make_name(*subject.node, subject.name, op == Op::kMkdir);
    case Race::kRemoved: {
      if (op != Op::kOpen) return remove_tree(fs, *subject.node, subject.name);
      const auto opened = fs.inodes.entry(*subject.node);
      return opened.parent ? remove_file(fs, *opened.parent, opened.name) : ENOENT;
    }
    case Race::kMoved:
      return move_name(fs, subject);
  }
  return 0;
}

}  // namespace savegate::fusefs
