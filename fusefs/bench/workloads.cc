#include "fusefs/bench/workloads.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

#include "fusefs/bench/measure.h"

namespace savegate::fusefs::bench {

namespace {

constexpr std::size_t kBlock = 1u << 20;
constexpr int kBlocks = 256;  // a file
constexpr int kFiles = 4;
constexpr int kRandomWrites = 20'000;
constexpr int kSmallFiles = 500;
constexpr int kNames = 200;
constexpr int kStats = 40'000;

std::string data_file(const std::string& folder, int number) {
  return fmt::format("{}/data-{}", folder, number);
}

const std::vector<char>& block() {
  static const std::vector<char> bytes(kBlock, 'b');
  return bytes;
}

class File {
 public:
  File(const std::string& path, int flags)
      : fd_(checked(::open(path.c_str(), flags | O_CLOEXEC, 0644), path.c_str())) {}
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

void write_file(const std::string& path, bool sync) {
  const File file(path, O_WRONLY | O_CREAT);
  for (int i = 0; i < kBlocks; i++) {
    const auto at = static_cast<off_t>(i) * static_cast<off_t>(kBlock);
    if (::pwrite(file.fd(), block().data(), kBlock, at) != static_cast<ssize_t>(kBlock)) {
      give_up("pwrite");
    }
  }
  if (sync) checked(::fsync(file.fd()), "fsync");
}

double megabytes(int files) { return files * kBlocks * static_cast<double>(kBlock) / 1e6; }

}  // namespace

void prepare(const std::string& folder) {
  for (int i = 0; i < kFiles; i++) write_file(data_file(folder, i), false);
  for (int i = 0; i < kNames; i++) {
    const File made(fmt::format("{}/name-{}", folder, i), O_WRONLY | O_CREAT);
  }
}

double overwrite(const std::string& folder, int writers) {
  const double begin = now();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(writers) - 1);
  for (int i = 1; i < writers; i++) {
    threads.emplace_back([&folder, i] { write_file(data_file(folder, i), false); });
  }
  write_file(data_file(folder, 0), false);
  for (auto& thread : threads) thread.join();
  return megabytes(writers) / (now() - begin);
}

double overwrite_synced(const std::string& folder) {
  const double begin = now();
  write_file(data_file(folder, 0), true);
  return megabytes(1) / (now() - begin);
}

double cold_read(const std::string& folder) {
  // Nothing of the mount is cached at open; what the backing directory keeps in memory, both have.
  std::vector<char> bytes(kBlock);
  const double begin = now();
  const File file(data_file(folder, 0), O_RDONLY);
  ssize_t total = 0;
  while (const ssize_t got = checked(::read(file.fd(), bytes.data(), kBlock), "read")) total += got;
  const double seconds = now() - begin;
  if (total != static_cast<ssize_t>(kBlock) * kBlocks) give_up("read: too few bytes");
  return megabytes(1) / seconds;
}

double random_writes(const std::string& folder) {
  constexpr std::size_t kPage = 4096;
  std::mt19937_64 random(7);
  const File file(data_file(folder, 0), O_WRONLY);
  const double begin = now();
  for (int i = 0; i < kRandomWrites; i++) {
    const auto at = static_cast<off_t>(random() % (kBlocks * kBlock / kPage) * kPage);
    if (::pwrite(file.fd(), block().data(), kPage, at) != static_cast<ssize_t>(kPage)) {
      give_up("pwrite");
    }
  }
  return kRandomWrites / (now() - begin);
}

double small_files(const std::string& folder) {
  static int call = 0;  // other names each time: the mount must not know them from before
  call++;
  const double begin = now();
  for (int i = 0; i < kSmallFiles; i++) {
    const std::string name = fmt::format("{}/small-{}-{}", folder, call, i);
    const std::string temporary = name + ".tmp";
    {
      const File file(temporary, O_WRONLY | O_CREAT | O_EXCL);
      if (::write(file.fd(), block().data(), 4096) != 4096) give_up("write");
      checked(::fsync(file.fd()), "fsync");
    }
    checked(::rename(temporary.c_str(), name.c_str()), "rename");
  }
  return kSmallFiles / (now() - begin);
}

double stats(const std::string& folder) {
  std::vector<std::string> names;
  names.reserve(kNames);
  for (int i = 0; i < kNames; i++) names.push_back(fmt::format("{}/name-{}", folder, i));
  const double begin = now();
  struct stat attributes {};
  for (int i = 0; i < kStats; i++) {
    checked(::stat(names[static_cast<std::size_t>(i % kNames)].c_str(), &attributes), "stat");
  }
  return kStats / (now() - begin);
}

}  // namespace savegate::fusefs::bench
