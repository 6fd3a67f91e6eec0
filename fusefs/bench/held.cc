#include "fusefs/bench/held.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "fusefs/bench/async_write.h"
#include "fusefs/bench/measure.h"
#include "fusefs/control.h"
#include "fusefs/trust/mounted_daemon.h"

namespace savegate::fusefs::bench {

namespace {

constexpr int kHolders = 2;  // processes
constexpr std::size_t kHeldWrite = 4096;

constexpr const char* kPlan = R"(
[[rule]]
match = { op = "write", path = "held-write" }
action = { hang = true }
[[rule]]
match = { op = "fsync", path = "held-fsync" }
action = { hang = true }
[[rule]]
match = { op = "close", path = "held-close" }
action = { hang = true }
)";

int open_file(const std::string& path) {
  return checked(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644), path.c_str());
}

void make_file(const std::string& path, off_t size) {
  const int fd = open_file(path);
  checked(::ftruncate(fd, size), "ftruncate");
  ::close(fd);
}

std::string ask(const MountedDaemon& daemon, const std::string& request) {
  auto client = ControlClient::connect(daemon.control());
  auto reply = client ? client->call(request) : tl::unexpected(client.error());
  if (!reply) give_up(reply.error().to_string().c_str());
  return *reply;
}

void wait_until_held(const MountedDaemon& daemon, int count) {
  const std::string wanted = fmt::format("\"held\":{},", count);
  while (ask(daemon, R"({"cmd":"status"})").find(wanted) == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct Holder {
  int fd;
  off_t offset;
};

void* hold(void* argument) {
  const auto* holder = static_cast<Holder*>(argument);
  static const std::array<char, kHeldWrite> bytes{};
  static_cast<void>(::pwrite(holder->fd, bytes.data(), bytes.size(), holder->offset) < 0);
  return nullptr;
}

// A process whose threads each write a block and are held there. It ends when they are released.
pid_t start_holder(const std::string& path, int first, int threads) {
  const pid_t pid = checked(::fork(), "fork");
  if (pid != 0) return pid;
  const int fd = open_file(path);
  std::vector<Holder> holders(static_cast<std::size_t>(threads));
  std::vector<pthread_t> started(holders.size());
  pthread_attr_t small;
  ::pthread_attr_init(&small);
  ::pthread_attr_setstacksize(&small, 64 * 1024);
  for (std::size_t i = 0; i < holders.size(); i++) {
    holders[i] = {fd, (first + static_cast<off_t>(i)) * static_cast<off_t>(kHeldWrite)};
    if (::pthread_create(&started[i], &small, hold, &holders[i]) != 0) give_up("pthread_create");
  }
  for (pthread_t thread : started) ::pthread_join(thread, nullptr);
  ::_exit(0);
}

double p99_of_writes(const std::string& path) {
  constexpr int kWrites = 4000;
  static const std::array<char, kHeldWrite> bytes{};
  const int fd = open_file(path);
  std::vector<double> times;
  times.reserve(kWrites);
  for (int i = 0; i < kWrites; i++) {
    const double begin = now();
    if (::pwrite(fd, bytes.data(), bytes.size(), (i % 256) * static_cast<off_t>(kHeldWrite)) < 0) {
      give_up("pwrite");
    }
    times.push_back(now() - begin);
  }
  ::close(fd);
  return quantile(std::move(times), 0.99);
}

// The operation that is held; returns when it is over.
void do_held(const std::string& operation, const MountedDaemon& daemon) {
  const std::string rule = operation == "fsync" || operation == "close" ? operation : "write";
  const int fd = open_file(daemon.mount() + "/held-" + rule);
  int result = 0;
  if (operation == "fsync") result = ::fsync(fd);
  if (operation == "libaio") result = write_by_libaio(fd);
  if (operation == "io_uring") result = write_by_io_uring(fd);
  if (operation == "write") result = static_cast<int>(::pwrite(fd, "x", 1, 0));
  if (result < 0) give_up(operation.c_str());
  ::close(fd);
}

}  // namespace

Latency beside_held(int rounds, int held, const std::string& base) {
  MountedDaemon idle(kPlan, {"--no-passthrough"}, base);
  MountedDaemon busy(kPlan, {"--no-passthrough"}, base);
  if (!idle.available()) give_up(idle.why_not().c_str());
  if (!busy.available()) give_up(busy.why_not().c_str());
  const std::string file = busy.mount() + "/held-write";
  make_file(busy.backing() + "/held-write", held * static_cast<off_t>(kHeldWrite));
  std::array<pid_t, kHolders> holders{};
  const int each = held / kHolders;
  for (std::size_t i = 0; i < holders.size(); i++) {
    holders[i] = start_holder(file, static_cast<int>(i) * each, each);
  }
  wait_until_held(busy, held);
  for (const auto* daemon : {&idle, &busy}) {
    make_file(daemon->backing() + "/other", 256 * static_cast<off_t>(kHeldWrite));
  }
  const Compared compared = in_turn(
      rounds, [&] { return p99_of_writes(idle.mount() + "/other"); },
      [&] { return p99_of_writes(busy.mount() + "/other"); });
  ask(busy, R"({"cmd":"release"})");
  for (pid_t pid : holders) ::waitpid(pid, nullptr, 0);
  return {compared.first, compared.second, compared.ratio};
}

double killed_in(const std::string& operation, int rounds, const std::string& base) {
  MountedDaemon daemon(kPlan, {}, base);
  if (!daemon.available()) give_up(daemon.why_not().c_str());
  for (const char* rule : {"write", "fsync", "close"}) {
    make_file(daemon.backing() + "/held-" + rule, kHeldWrite);
  }
  double longest = 0;
  for (int round = 0; round < rounds; round++) {
    const pid_t pid = checked(::fork(), "fork");
    if (pid == 0) {
      do_held(operation, daemon);
      ::_exit(0);
    }
    wait_until_held(daemon, 1);
    const double begin = now();
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    longest = std::max(longest, now() - begin);
    ask(daemon, R"({"cmd":"release"})");  // the close of a killed process is held, too
    wait_until_held(daemon, 0);
  }
  return longest;
}

}  // namespace savegate::fusefs::bench
