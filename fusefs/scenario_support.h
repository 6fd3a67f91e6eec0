// A mount for tests: savegate-fs as its users start it, in the test's private mount namespace.
//
//   Mounted mounted(R"([[rule]] …)");
//   if (!mounted.ready()) GTEST_SKIP() << mounted.why_not();
//   … work in mounted.path("file"), compare with mounted.backing("file"), ask mounted.fired() …
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faults/fired.h"
#include "faults/trace.h"
#include "fusefs/control.h"

namespace savegate::fusefs {

// A process; killed and waited for at the end if it still runs.
class Child {
 public:
  // Runs `body` in a fork; its value is the exit status.
  static Child fork(const std::function<int()>& body);
  // Runs savegate-fs-caller with the arguments and RANK set (none: -1).
  static Child caller(int rank, const std::vector<std::string>& arguments);

  // Runs the shell command with RANK set (none: -1).
  static Child shell(int rank, const std::string& command);

  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  void kill(int signal) const;
  // The wait status; waits until the process ends.
  int wait();
  // The same, or nothing if it still runs after so many milliseconds.
  std::optional<int> wait_for(int milliseconds);

 private:
  pid_t pid_;
  std::optional<int> status_;
};

class Mounted {
 public:
  enum class Trace : std::uint8_t { kNo, kYes };
  // A mount with a trace sends everything to the daemon.
  explicit Mounted(const std::string& plan = "", const std::string& layout = "",
                   Trace trace = Trace::kYes, const std::vector<std::string>& more_arguments = {});
  ~Mounted();
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

  bool ready() const { return why_not_.empty(); }
  const std::string& why_not() const { return why_not_; }

  std::string path(const std::string& name = "") const { return top_ + "/mount/" + name; }
  std::string backing(const std::string& name = "") const { return top_ + "/backing/" + name; }
  std::string control_path() const { return top_ + "/control"; }
  Child& daemon() { return *daemon_; }

  // The reply, "" and a test failure if there is none.
  std::string command(const std::string& json);
  // Waits until so many operations are held.
  bool wait_held(std::size_t count);
  std::vector<faults::FiredRecord> fired();
  std::vector<faults::TraceRecord> trace();
  void stop();

 private:
  std::string top_;
  std::string why_not_;
  std::unique_ptr<Child> daemon_;
};

// Why this machine cannot mount, "" if it can. Enters a private mount namespace once.
std::string enter_private_namespace();

std::string read_all(const std::string& path);
void write_all(const std::string& path, const std::string& bytes);

}  // namespace savegate::fusefs
