#include "fusefs/scenario_support.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace savegate::fusefs {

namespace {

constexpr int kPatience = 20'000;  // milliseconds

Child spawn(std::vector<std::string> words, int rank) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (rank >= 0) ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  return Child(pid);
}

std::string program(const char* name) { return std::string(SAVEGATE_BIN_DIR) + "/" + name; }

}  // namespace

Child Child::fork(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  return Child(pid);
}

Child Child::caller(int rank, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program("savegate-fs-caller")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return spawn(std::move(words), rank);
}

Child Child::shell(int rank, const std::string& command) {
  return spawn({"/bin/sh", "-c", command}, rank);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

Child::~Child() {
  if (pid_ <= 0 || status_) return;
  kill(SIGKILL);
  wait();
}

void Child::kill(int signal) const { ::kill(pid_, signal); }

int Child::wait() { return *wait_for(-1); }

std::optional<int> Child::wait_for(int milliseconds) {
  if (status_) return status_;
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  pollfd event{pidfd, POLLIN, 0};
  const int ended = ::poll(&event, 1, milliseconds);
  ::close(pidfd);
  if (ended <= 0) return std::nullopt;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  status_ = status;
  return status_;
}

std::string enter_private_namespace() {
  static const std::string why_not = []() -> std::string {
    if (::access("/dev/fuse", R_OK | W_OK) != 0) return "/dev/fuse cannot be used here";
    if (::geteuid() != 0) return "mounting in a private namespace needs root";
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return "no private mount namespace can be made here";
    }
    return "";
  }();
  return why_not;
}

Mounted::Mounted(const std::string& plan, const std::string& layout, Trace trace,
                 const std::vector<std::string>& more_arguments) {
  why_not_ = enter_private_namespace();
  if (!why_not_.empty()) return;
  top_ = testing::TempDir() + "savegate-fs-XXXXXX";
  if (::mkdtemp(top_.data()) == nullptr) {
    why_not_ = "no temporary directory";
    return;
  }
  ::chmod(top_.c_str(), 0755);  // other users of a test pass through
  std::filesystem::create_directory(top_ + "/backing");
  std::filesystem::create_directory(top_ + "/mount");
  std::array<int, 2> ready;
  if (::pipe(ready.data()) != 0) {
    why_not_ = "no pipe";
    return;
  }
  ::fcntl(ready[0], F_SETFD, FD_CLOEXEC);
  std::vector<std::string> words = {program("savegate-fs"),
                                    "--backing",
                                    backing(),
                                    "--mount",
                                    path(),
                                    "--control",
                                    control_path(),
                                    "--fired",
                                    top_ + "/fired.jsonl",
                                    "--ready-fd",
                                    std::to_string(ready[1]),
                                    "--parent-pid",
                                    std::to_string(::getpid())};
  if (trace == Trace::kYes) words.insert(words.end(), {"--trace", top_ + "/trace.bin"});
  words.insert(words.end(), more_arguments.begin(), more_arguments.end());
  if (!plan.empty()) {
    write_all(top_ + "/plan.toml", plan);
    words.insert(words.end(), {"--plan", top_ + "/plan.toml"});
  }
  if (!layout.empty()) {
    write_all(top_ + "/layout.toml", layout);
    words.insert(words.end(), {"--layout", top_ + "/layout.toml"});
  }
  daemon_ = std::make_unique<Child>(spawn(std::move(words), -1));
  ::close(ready[1]);
  std::array<char, 8> word{};
  const ssize_t got = ::read(ready[0], word.data(), word.size());
  ::close(ready[0]);
  EXPECT_EQ(got, 6) << "savegate-fs did not start";
}

Mounted::~Mounted() {
  if (top_.empty()) return;
  stop();
  ::umount2(path().c_str(), MNT_DETACH);
  std::error_code ignored;
  std::filesystem::remove_all(top_, ignored);
}

void Mounted::stop() {
  if (!daemon_) return;
  daemon_->kill(SIGTERM);
  EXPECT_TRUE(daemon_->wait_for(kPatience)) << "savegate-fs did not end";
}

std::string Mounted::command(const std::string& json) {
  auto client = ControlClient::connect(control_path());
  if (!client) {
    ADD_FAILURE() << client.error().to_string();
    return "";
  }
  auto reply = client->call(json);
  if (!reply) ADD_FAILURE() << reply.error().to_string();
  return reply ? *reply : "";
}

bool Mounted::wait_held(std::size_t count) {
  const std::string wanted = "\"held\":" + std::to_string(count) + ",";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
  while (command(R"({"cmd":"status"})").find(wanted) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

std::vector<faults::FiredRecord> Mounted::fired() {
  std::vector<faults::FiredRecord> records;
  std::ifstream in(top_ + "/fired.jsonl");
  for (std::string line; std::getline(in, line);) {
    auto record = faults::fired_from_json_line(line);
    if (record) {
      records.push_back(*record);
    } else {
      ADD_FAILURE() << record.error().to_string();
    }
  }
  return records;
}

std::vector<faults::TraceRecord> Mounted::trace() {
  command(R"({"cmd":"flush"})");
  auto trace = faults::read_trace(top_ + "/trace.bin");
  if (!trace) {
    ADD_FAILURE() << trace.error().to_string();
    return {};
  }
  return trace->records;
}

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_all(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace savegate::fusefs
