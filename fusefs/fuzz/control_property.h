// What holds for any lines that are handed to the control commands of a file system.
//
// Each is answered once, at once or when its peer hangs up, in one line of JSON that says whether
// it was done; a mark that nobody answers is held by a rule.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "fusefs/control_commands.h"
#include "fusefs/file_system.h"

namespace savegate::fusefs {

// A file system that nothing is mounted from, and a process that plays its ranks.
class ControlProperty {
 public:
  // The file system is made anew every few hundred inputs; between two, when none of its threads
  // runs, this is called.
  explicit ControlProperty(std::function<void()> between = [] {});
  ~ControlProperty();
  ControlProperty(const ControlProperty&) = delete;
  ControlProperty& operator=(const ControlProperty&) = delete;

  // What is broken by these lines, "" where all holds. Disarms afterwards.
  std::string broken_by(const std::string& lines);

 private:
  std::string broken_by_line(const std::string& line);
  void renew();

  std::function<void()> between_;
  std::string folder_;
  pid_t peer_ = -1;
  int inputs_ = 0;
  int stops_ = 0;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<FileSystem> fs_;
  std::unique_ptr<ControlCommands> commands_;
};

}  // namespace savegate::fusefs
