#include "gpu/device_account.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace savegate::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = "lock";

class Locked {
 public:
  explicit Locked(int fd) : fd_(fd) {
    if (fd_ < 0) return;
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() {
    if (fd_ >= 0) ::flock(fd_, LOCK_UN);
  }

 private:
  int fd_;
};

// What a living holder has; a dead one's file is removed.
std::uint64_t held_by(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::uint64_t bytes = 0;
  if (::flock(fd, LOCK_SH | LOCK_NB) == 0) {
    ::unlink(path.c_str());
  } else if (::pread(fd, &bytes, sizeof(bytes), 0) != sizeof(bytes)) {
    bytes = 0;
  }
  ::close(fd);
  return bytes;
}

}  // namespace

Result<DeviceAccount> DeviceAccount::open(const std::string& folder, std::uint64_t capacity) {
  DeviceAccount account(folder, capacity);
  if (!folder.empty()) SAVEGATE_CHECK(account.join());
  return account;
}

DeviceAccount::DeviceAccount(DeviceAccount&& other) noexcept
    : folder_(std::move(other.folder_)),
      capacity_(other.capacity_),
      own_(std::exchange(other.own_, 0)),
      own_path_(std::exchange(other.own_path_, "")),
      own_file_(std::exchange(other.own_file_, -1)),
      lock_(std::exchange(other.lock_, -1)) {}

DeviceAccount::~DeviceAccount() {
  if (!own_path_.empty()) ::unlink(own_path_.c_str());
  if (own_file_ >= 0) ::close(own_file_);
  if (lock_ >= 0) ::close(lock_);
}

Result<void> DeviceAccount::join() {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return fail(system_error("mkdir", folder_, error.value()));
  const std::string lock = folder_ + "/" + kLock;
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) return fail(system_error("open", lock));
  const Locked locked(lock_);
  std::string path = folder_ + "/holder-XXXXXX";
  own_file_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (own_file_ < 0) return fail(system_error("create", path));
  own_path_ = path;
  if (::flock(own_file_, LOCK_EX) != 0) return fail(system_error("flock", path));
  return write_own(0);
}

Result<void> DeviceAccount::write_own(std::uint64_t bytes) {
  if (own_file_ >= 0 && ::pwrite(own_file_, &bytes, sizeof(bytes), 0) != sizeof(bytes)) {
    return fail(system_error("write", own_path_));
  }
  own_ = bytes;
  return {};
}

Result<std::uint64_t> DeviceAccount::held_by_all() const {
  std::uint64_t sum = own_;
  if (folder_.empty()) return sum;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.filename() != kLock && path != own_path_) sum += held_by(path);
  }
  if (error) return fail(system_error("readdir", folder_, error.value()));
  return sum;
}

Result<bool> DeviceAccount::take(std::uint64_t bytes) {
  const Locked locked(lock_);
  SAVEGATE_TRY(const std::uint64_t held, held_by_all());
  if (bytes > capacity_ - held) return false;
  SAVEGATE_CHECK(write_own(own_ + bytes));
  return true;
}

Result<void> DeviceAccount::give_back(std::uint64_t bytes) {
  const Locked locked(lock_);
  return write_own(own_ - bytes);
}

Result<std::uint64_t> DeviceAccount::free_bytes() const {
  const Locked locked(lock_);
  SAVEGATE_TRY(const std::uint64_t held, held_by_all());
  return capacity_ - held;
}

}  // namespace savegate::gpu
