// Names, numbers and users at the edge of what a file system may meet.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "faults/status.h"
#include "fusefs/trust/backing_disk.h"
#include "fusefs/trust/mounted_daemon.h"

namespace savegate::fusefs {
namespace {

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) names.insert(entry->d_name);
  closedir(directory);
  return names;
}

std::uint64_t listed_number(const std::string& folder, const std::string& name) {
  std::uint64_t number = 0;
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return number;
  while (const dirent* entry = readdir(directory))
    if (name == entry->d_name) number = entry->d_ino;
  closedir(directory);
  return number;
}

// The longest name that begins like this; cut, it need not be UTF-8 any more.
std::string longest(std::string text) {
  while (text.size() < 255) text += text;
  return text.substr(0, 255);
}

std::string every_byte() {
  std::string name;
  for (int byte = 1; byte < 256; ++byte)
    if (byte != '/') name += static_cast<char>(byte);
  return name;
}

constexpr const char* kNever =
    "[[rule]]\nmatch = { path = \"**/x*y\", nth = 1000000 }\naction = { errno = \"EIO\" }\n";

TEST(ExtremesTest, NamesOf255BytesInAnyEncoding) {
  const MountedDaemon daemon(kNever);  // globs look at every name
  if (!daemon.available()) GTEST_SKIP() << daemon.why_not();
  const std::string folder = daemon.mount() + "/" + longest("\xe8\xb7\xaf");
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  for (const std::string& name : {longest("a"), longest("\xc3\xa9"), longest("\xff\xfe"),
                                  every_byte(), longest("\n\t *?[\\"), std::string(1, '\x80')}) {
    const std::string path = folder + "/" + name;
    const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644);
    ASSERT_GE(fd, 0) << name;
    close(fd);
    EXPECT_TRUE(names_in(folder).contains(name)) << name;
    EXPECT_EQ(rename(path.c_str(), (daemon.mount() + "/" + name).c_str()), 0) << name;
    EXPECT_TRUE(names_in(daemon.backing()).contains(name)) << name;
    EXPECT_EQ(unlink((daemon.mount() + "/" + name).c_str()), 0) << name;
  }
  EXPECT_EQ(open((daemon.mount() + "/" + std::string(256, 'a')).c_str(), O_CREAT, 0644), -1);
  EXPECT_EQ(errno, ENAMETOOLONG);
}

// XFS spreads folders over a large disk, and numbers inodes by their place on it.
TEST(ExtremesTest, InodeNumbersOf64Bits) {
  const BackingDisk disk("xfs");
  if (!disk.available()) GTEST_SKIP() << disk.why_not();
  const MountedDaemon daemon("", {}, disk.folder());
  if (!daemon.available()) GTEST_SKIP() << daemon.why_not();
  std::uint64_t largest = 0;
  for (int i = 0; i < 32; ++i) {
    const std::string name = fmt::format("folder-{}", i);
    ASSERT_EQ(mkdir((daemon.mount() + "/" + name).c_str(), 0755), 0);
    struct stat seen {};
    struct stat real {};
    ASSERT_EQ(stat((daemon.mount() + "/" + name).c_str(), &seen), 0);
    ASSERT_EQ(stat((daemon.backing() + "/" + name).c_str(), &real), 0);
    EXPECT_EQ(seen.st_ino, real.st_ino);
    EXPECT_EQ(listed_number(daemon.mount(), name), real.st_ino);
    largest = std::max<std::uint64_t>(largest, seen.st_ino);
  }
  EXPECT_GT(largest, std::uint64_t{UINT32_MAX}) << "this disk is too small to tell";
}

TEST(ExtremesTest, AFileBeyondFourGiBIsReadWhereItWasWritten) {
  const MountedDaemon daemon;
  if (!daemon.available()) GTEST_SKIP() << daemon.why_not();
  constexpr off_t kFar = (off_t{1} << 40) - 5;
  const std::string path = daemon.mount() + "/sparse";
  const int fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(pwrite(fd, "0123456789", 10, kFar), 10) << errno_name(errno);
  char bytes[10];
  ASSERT_EQ(pread(fd, bytes, 10, kFar), 10);
  EXPECT_EQ(std::string(bytes, 10), "0123456789");
  ASSERT_EQ(pread(fd, bytes, 10, kFar - (off_t{1} << 32)), 10);
  EXPECT_EQ(std::string(bytes, 10), std::string(10, '\0')) << "32 bits of the offset were lost";
  struct stat seen {};
  ASSERT_EQ(fstat(fd, &seen), 0);
  EXPECT_EQ(seen.st_size, kFar + 10);
  close(fd);
}

// As a user whom nothing is installed for: no root, no fusermount3.
TEST(ExtremesTest, AUserMountsInANamespaceOfHisOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  const BackingDisk disk("tmpfs");
  if (!disk.available()) GTEST_SKIP() << disk.why_not();
  // As on a machine for users: the device is everybody's.
  const std::string device = disk.folder() + "/fuse";
  if (mknod(device.c_str(), S_IFCHR | 0666, makedev(10, 229)) != 0 ||
      chmod(device.c_str(), 0666) != 0 ||
      mount(device.c_str(), "/dev/fuse", nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "no device for everybody: " << errno_name(errno);
  }
  const std::string as_nobody =
      "setpriv --reuid 65534 --regid 65534 --clear-groups unshare --user --map-root-user --mount ";
  if (std::system((as_nobody + "true 2>/dev/null").c_str()) != 0) {
    umount2("/dev/fuse", MNT_DETACH);
    GTEST_SKIP() << "user namespaces are disabled";
  }
  std::string top = std::filesystem::temp_directory_path().string() + "/userns-XXXXXX";
  ASSERT_NE(mkdtemp(top.data()), nullptr);
  const std::string daemon = SAVEGATE_BIN_DIR "/savegate-fs";
  // Outside of the build, which may be in a folder that is closed to others.
  std::filesystem::copy_file(daemon, top + "/savegate-fs");
  for (const char* folder : {"", "/backing", "/mount"}) {
    std::filesystem::create_directories(top + folder);
    ASSERT_EQ(chown((top + folder).c_str(), 65534, 65534), 0);
  }
  std::ofstream(top + "/script") << R"(set -e; cd "$1"; export PATH=/bin:/usr/bin; mkfifo ready
./savegate-fs --backing backing --mount mount --control control --ready-fd 9 9>ready & daemon=$!
read word < ready
echo content > mount/file; mv mount/file mount/renamed
grep -qx content backing/renamed; grep -q " $1/mount fuse.savegate " /proc/self/mounts
kill $daemon; wait $daemon
! grep -q " $1/mount " /proc/self/mounts
)";
  EXPECT_EQ(std::system((as_nobody + "sh " + top + "/script " + top).c_str()), 0);
  std::filesystem::remove_all(top);
  umount2("/dev/fuse", MNT_DETACH);
}

}  // namespace
}  // namespace savegate::fusefs
