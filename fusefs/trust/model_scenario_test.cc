// A mount without a fault is the directory below it, whatever file system that is on: a seeded
// random mix of a million operations on both, where every return value, errno and byte must agree.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fusefs/control.h"
#include "fusefs/trust/backing_disk.h"
#include "fusefs/trust/fsx.h"
#include "fusefs/trust/mounted_daemon.h"

namespace savegate::fusefs {
namespace {

constexpr int kSlots = 16;                      // descriptors open at a time
constexpr std::uint64_t kMaxSize = 256 * 1024;  // bytes of a file

// What one operation gave: the same on both sides, or the mount is no mirror.
struct Outcome {
  long value = 0;
  int error = 0;
  std::string bytes;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome(long value) { return {value, value < 0 ? errno : 0, {}}; }

// One directory with descriptors open in it. Both sides get the same calls.
class Side {
 public:
  explicit Side(const std::string& root)
      : root_(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    slots_.fill(-1);
  }
  ~Side() {
    for (int fd : slots_)
      if (fd >= 0) close(fd);
    close(root_);
  }

  int root() const { return root_; }
  int slot(int index) const { return slots_[static_cast<std::size_t>(index)]; }

  Outcome open_slot(int index, const std::string& name, int flags) {
    int& fd = slots_[static_cast<std::size_t>(index)];
    if (fd >= 0) close(fd);
    fd = openat(root_, name.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644);  // a FIFO does not wait
    return outcome(fd >= 0 ? 0 : -1);
  }

  Outcome close_slot(int index) {
    int& fd = slots_[static_cast<std::size_t>(index)];
    Outcome result = outcome(close(fd));
    fd = -1;
    return result;
  }

 private:
  int root_;
  std::array<int, kSlots> slots_{};
};

Outcome attributes(const struct stat& stat) {
  return {0, 0,
          fmt::format("mode {:o} links {} size {}", stat.st_mode,
                      S_ISDIR(stat.st_mode) ? 0 : stat.st_nlink,
                      S_ISDIR(stat.st_mode) ? 0 : stat.st_size)};
}

Outcome list(int root, const std::string& name) {
  const int fd = openat(root, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return outcome(fd);
  DIR* directory = fdopendir(fd);
  std::set<std::string> names;
  while (const dirent* entry = readdir(directory)) names.insert(entry->d_name);
  closedir(directory);
  return {0, 0, fmt::format("{}", fmt::join(names, " "))};
}

Outcome read_at(int fd, std::uint64_t offset, std::size_t length) {
  std::string bytes(length, '\0');
  const ssize_t done = pread(fd, bytes.data(), length, static_cast<off_t>(offset));
  Outcome result = outcome(done);
  if (done >= 0) result.bytes = bytes.substr(0, static_cast<std::size_t>(done));
  return result;
}

// Positions in a directory are each file system's own.
Outcome seek(int fd, off_t offset, int whence) {
  struct stat stat {};
  if (fstat(fd, &stat) != 0) return outcome(-1);
  return S_ISDIR(stat.st_mode) ? Outcome{} : outcome(lseek(fd, offset, whence));
}

// Stores through a shared mapping and reads the same page back through read(2).
Outcome store_mapped(int fd, std::uint64_t offset, char value) {
  struct stat stat {};
  if (fstat(fd, &stat) != 0) return outcome(-1);
  if (static_cast<std::uint64_t>(stat.st_size) <= offset) return {0, 0, "beyond the end"};
  const std::uint64_t page = offset & ~std::uint64_t{4095};
  void* map = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(page));
  if (map == MAP_FAILED) return outcome(-1);
  static_cast<char*>(map)[offset - page] = value;
  if (msync(map, 4096, MS_SYNC) != 0) return outcome(-1);
  munmap(map, 4096);
  return read_at(fd, page, 4096);
}

Outcome text_of(ssize_t length, const std::string& value) {
  Outcome result = outcome(length);
  if (length >= 0) result.bytes = value.substr(0, static_cast<std::size_t>(length));
  return result;
}

Outcome get_xattr(int fd, const std::string& key) {
  std::string value(256, '\0');
  const ssize_t length = fgetxattr(fd, key.c_str(), value.data(), value.size());
  return text_of(length, value);
}

// Sets one time, leaves the other, and reads both back.
Outcome set_time(int fd, std::uint64_t seconds, bool access) {
  const timespec set{static_cast<time_t>(seconds), 5};
  const timespec omit{0, UTIME_OMIT};
  const std::array<timespec, 2> times = {access ? set : omit, access ? omit : set};
  struct stat now {};
  if (futimens(fd, times.data()) != 0 || fstat(fd, &now) != 0) return outcome(-1);
  const timespec& got = access ? now.st_atim : now.st_mtim;
  return {got.tv_sec, 0, fmt::format("{}", got.tv_nsec)};
}

// The file by the descriptor, whatever its name is now.
Outcome reopen(int fd, int flags) {
  const int again =
      open(fmt::format("/proc/self/fd/{}", fd).c_str(), flags | O_CLOEXEC | O_NONBLOCK);
  if (again < 0) return outcome(again);
  Outcome result = read_at(again, 0, 4096);
  close(again);
  return result;
}

class Mirror {
 public:
  Mirror(const std::string& mounted, const std::string& plain, std::uint64_t seed)
      : mounted_(mounted), plain_(plain), random_(seed) {}

  // Does one random operation on both sides; false where they differ.
  bool step() {
    const int kind = pick(32);
    const int index = pick(kSlots);
    const std::string name = random_name();
    const std::string other = random_name();
    const std::uint64_t offset = static_cast<std::uint64_t>(pick(static_cast<int>(kMaxSize)));
    const auto length = static_cast<std::size_t>(pick(pick(8) == 0 ? 65536 : 2048)) + 1;
    const std::string payload = random_bytes(length);
    const int flags = random_flags();
    const int from = pick(kSlots);
    const std::string key = fmt::format("user.k{}", pick(3));
    const bool open_slot = mounted_.slot(index) >= 0;
    if (open_slot != (plain_.slot(index) >= 0)) return false;

    const auto on = [&](Side& side) -> Outcome {
      const int root = side.root();
      const int fd = side.slot(index);
      const auto at = static_cast<off_t>(offset);
      switch (open_slot ? kind : 100 + kind) {
        case 0:
        case 1:
        case 2:
          return outcome(pwrite(fd, payload.data(), length, at));
        case 3:
        case 4:
          return read_at(fd, offset, length);
        case 5:
          return outcome(write(fd, payload.data(), length));
        case 6:
          return outcome(ftruncate(fd, at));
        case 7:
          return outcome(fsync(fd));
        case 8:
          return side.close_slot(index);
        case 9:
          return seek(fd, at, pick_whence(offset));
        case 10:
          return outcome(fallocate(fd, FALLOC_FL_KEEP_SIZE, at, static_cast<off_t>(length)));
        case 11:
          return outcome(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
                                   static_cast<off_t>(length)));
        case 12:
          return store_mapped(fd, offset, payload[0]);
        case 13: {
          struct stat stat {};
          return fstat(fd, &stat) != 0 ? outcome(-1) : attributes(stat);
        }
        case 22:
          return outcome(fsetxattr(fd, key.c_str(), payload.data(), length % 64, 0));
        case 23:
          return get_xattr(fd, key);
        case 24:
          return outcome(fremovexattr(fd, key.c_str()));
        case 25:
          return set_time(fd, offset, (length & 1) != 0);
        case 26: {
          off_t in = at / 2;
          off_t out = at;
          return outcome(copy_file_range(side.slot(from), &in, fd, &out, length, 0));
        }
        case 27:
          return outcome(fallocate(fd, FALLOC_FL_ZERO_RANGE, at, static_cast<off_t>(length)));
        case 28:
          return reopen(fd, (length & 1) != 0 ? O_RDONLY : O_RDWR);
        case 29:
          return outcome(fdatasync(fd));
        case 30:
          return outcome(fchmod(fd, 0400 + (offset & 0377)));
        default:
          break;
      }
      switch (kind) {
        case 22:
          return outcome(fchownat(root, name.c_str(), static_cast<uid_t>(offset % 3),
                                  static_cast<gid_t>(offset % 5), AT_SYMLINK_NOFOLLOW));
        case 23:
          return outcome(mknodat(root, name.c_str(), S_IFIFO | 0600, 0));
        case 0:
        case 1:
        case 2:
        case 3:
          return side.open_slot(index, name, flags);
        case 4:
          return outcome(unlinkat(root, name.c_str(), 0));
        case 5:
        case 6:
          return outcome(renameat(root, name.c_str(), root, other.c_str()));
        case 7:
          return outcome(linkat(root, name.c_str(), root, other.c_str(), 0));
        case 8:
          return outcome(symlinkat(other.c_str(), root, name.c_str()));
        case 9:
          return outcome(mkdirat(root, name.c_str(), 0755));
        case 10:
          return outcome(unlinkat(root, name.c_str(), AT_REMOVEDIR));
        case 11:
          return outcome(fchmodat(root, name.c_str(), 0400 + (offset & 0377), 0));
        case 12:
          return list(root, (offset & 1) != 0 ? "." : name);
        case 13: {
          std::string target(256, '\0');
          const ssize_t done = readlinkat(root, name.c_str(), target.data(), target.size());
          Outcome result = outcome(done);
          if (done >= 0) result.bytes = target.substr(0, static_cast<std::size_t>(done));
          return result;
        }
        case 14:
          return outcome(renameat2(root, name.c_str(), root, other.c_str(), RENAME_NOREPLACE));
        case 15:
          return outcome(renameat2(root, name.c_str(), root, other.c_str(), RENAME_EXCHANGE));
        case 16:
          return outcome(faccessat(root, name.c_str(), F_OK, 0));
        default: {
          struct stat stat {};
          return fstatat(root, name.c_str(), &stat, AT_SYMLINK_NOFOLLOW) != 0 ? outcome(-1)
                                                                              : attributes(stat);
        }
      }
    };
    const Outcome mounted = on(mounted_);
    const Outcome plain = on(plain_);
    remember(
        fmt::format("{} open {} slot {} `{}` `{}` flags {:o} offset {} length {}: mount {} {} "
                    "plain {} {}",
                    kind, open_slot, index, name, other, flags, offset, length, mounted.value,
                    mounted.error, plain.value, plain.error));
    return mounted == plain;
  }

  std::string history() const { return fmt::format("{}", fmt::join(history_, "\n")); }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint64_t>(below)); }

  static int pick_whence(std::uint64_t offset) {
    constexpr std::array<int, 4> kWhence = {SEEK_SET, SEEK_CUR, SEEK_END, SEEK_SET};
    return kWhence[offset % kWhence.size()];
  }

  std::string random_name() {
    static constexpr std::array<std::string_view, 4> kFolders = {"", "a/", "b/", "a/c/"};
    return fmt::format("{}f{}", kFolders[static_cast<std::size_t>(pick(4))], pick(6));
  }

  int random_flags() {
    static constexpr std::array<int, 6> kFlags = {O_RDWR | O_CREAT,
                                                  O_RDWR,
                                                  O_RDWR | O_CREAT | O_TRUNC,
                                                  O_RDWR | O_CREAT | O_APPEND,
                                                  O_RDONLY,
                                                  O_RDWR | O_CREAT | O_EXCL};
    return kFlags[static_cast<std::size_t>(pick(static_cast<int>(kFlags.size())))];
  }

  std::string random_bytes(std::size_t length) {
    std::string bytes(length, '\0');
    for (std::size_t at = 0; at < length; at += 8) {
      const std::uint64_t word = random_();
      std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, length - at));
    }
    return bytes;
  }

  void remember(std::string line) {
    history_.push_back(std::move(line));
    if (history_.size() > 30) history_.pop_front();
  }

  Side mounted_;
  Side plain_;
  std::mt19937_64 random_;
  std::deque<std::string> history_;
};

// SAVEGATE_MODEL_STEPS asks for another length, SAVEGATE_MODEL_SEED for another mix.
std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Armed on every file, and never fires.
constexpr const char* kNeverFires =
    "[[rule]]\n"
    "match = { op = [\"data\", \"metadata\", \"sync\", \"query\"], nth = 1000000000 }\n"
    "action = { errno = \"EIO\" }\n";

// Nothing is armed in the first two; in kPassthrough the kernel reads and writes by itself.
enum class Way : std::uint8_t { kPassthrough, kDaemon, kArmed };

struct Configuration {
  const char* disk;
  Way way;
  std::uint64_t steps;  // in the CI
};

// The name of a test's parameter in its output.
std::string name_of(const Configuration& configuration) {
  const char* way = configuration.way == Way::kArmed    ? "armed"
                    : configuration.way == Way::kDaemon ? "daemon"
                                                        : "passthrough";
  return fmt::format("{}_{}", configuration.disk, way);
}
void PrintTo(const Configuration& configuration, std::ostream* stream) {
  *stream << name_of(configuration);
}

// In the CI as many as are quick, enough to meet each of them often; a million each with
// SAVEGATE_MODEL_STEPS=1000000.
constexpr std::uint64_t kSteps = 1'000'000;
const std::array<Configuration, 11> kConfigurations = {{
    {"tmpfs", Way::kPassthrough, kSteps / 4},
    {"tmpfs", Way::kDaemon, kSteps / 20},
    {"tmpfs", Way::kArmed, kSteps / 20},
    {"ext4", Way::kPassthrough, kSteps / 100},
    {"ext4", Way::kArmed, kSteps / 100},
    {"xfs", Way::kPassthrough, kSteps / 100},
    {"xfs", Way::kArmed, kSteps / 100},
    {"btrfs", Way::kPassthrough, kSteps / 200},
    {"btrfs", Way::kArmed, kSteps / 200},
    {"overlay", Way::kPassthrough, kSteps / 100},
    {"overlay", Way::kArmed, kSteps / 100},
}};

class EveryDisk : public testing::TestWithParam<Configuration> {
 protected:
  EveryDisk() : disk_(GetParam().disk) {
    if (!disk_.available()) return;
    std::vector<std::string> arguments;
    if (GetParam().way == Way::kDaemon) arguments.emplace_back("--no-passthrough");
    daemon_.emplace(GetParam().way == Way::kArmed ? kNeverFires : "", std::move(arguments),
                    disk_.folder());
  }
  void SetUp() override {
    if (!disk_.available()) GTEST_SKIP() << disk_.why_not();
    if (!daemon_->available()) GTEST_SKIP() << daemon_->why_not();
    if (status().find(R"("passthrough":"yes")") == std::string::npos) {
      if (GetParam().way == Way::kPassthrough) GTEST_SKIP() << status();
    } else {
      files_go_the_way_that_is_meant();
    }
  }
  std::string status() const {
    auto client = ControlClient::connect(daemon_->control());
    auto reply = client ? client->call(R"({"cmd":"status"})") : tl::unexpected(client.error());
    return reply ? *reply : reply.error().to_string();
  }
  void files_go_the_way_that_is_meant() const {
    const int fd = open((daemon_->mount() + "/way").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_GE(fd, 0);
    const bool passthrough = status().find(R"("path":"way","passthrough":1)") != std::string::npos;
    EXPECT_EQ(passthrough, GetParam().way == Way::kPassthrough) << status();
    close(fd);
    ASSERT_EQ(unlink((daemon_->mount() + "/way").c_str()), 0);
  }
  std::uint64_t seed() const { return from_environment("SAVEGATE_MODEL_SEED", 1); }
  std::uint64_t steps() const { return from_environment("SAVEGATE_MODEL_STEPS", GetParam().steps); }

  BackingDisk disk_;
  std::optional<MountedDaemon> daemon_;
};

void agree(const MountedDaemon& daemon, std::uint64_t seed, std::uint64_t steps) {
  for (const std::string& root : {daemon.mount(), daemon.scratch()}) {
    ASSERT_EQ(mkdir((root + "/a").c_str(), 0755), 0) << root;
    ASSERT_EQ(mkdir((root + "/b").c_str(), 0755), 0) << root;
    ASSERT_EQ(mkdir((root + "/a/c").c_str(), 0755), 0) << root;
  }
  Mirror mirror(daemon.mount(), daemon.scratch(), seed);
  for (std::uint64_t i = 0; i < steps; ++i)
    ASSERT_TRUE(mirror.step()) << "seed " << seed << ", operation " << i << "\n"
                               << mirror.history();
}

TEST_P(EveryDisk, RandomOperationsAgreeWithThePlainDirectory) { agree(*daemon_, seed(), steps()); }

TEST_P(EveryDisk, AFileHoldsWhatWasWrittenMappedCutAndPunched) {
  Fsx fsx(daemon_->mount() + "/file", daemon_->backing() + "/file", seed());
  for (std::uint64_t i = 0; i < steps() / 10; ++i) ASSERT_EQ(fsx.step(), "") << "seed " << seed();
  EXPECT_GT(fsx.mapped_stores(), steps() / 200) << "no mapping";
  RecordProperty("direct_io", fsx.has_direct() ? "yes" : "no");
}

INSTANTIATE_TEST_SUITE_P(ModelTest, EveryDisk, testing::ValuesIn(kConfigurations),
                         [](const auto& each) { return name_of(each.param); });

TEST(ModelTest, ATraceChangesNothing) {
  const std::string trace = fmt::format("{}model-trace-{}", testing::TempDir(), getpid());
  // In memory: thousands of operations hold hundreds of fsyncs.
  const MountedDaemon daemon(kNeverFires, {"--trace", trace},
                             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "");
  if (!daemon.available()) GTEST_SKIP() << daemon.why_not();
  agree(daemon, from_environment("SAVEGATE_MODEL_SEED", 1),
        from_environment("SAVEGATE_MODEL_STEPS", kSteps / 50));
  unlink(trace.c_str());
}

}  // namespace
}  // namespace savegate::fusefs
