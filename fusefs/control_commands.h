// The commands of control.h, carried out on a file system.
#pragma once

#include <functional>
#include <string>

#include "fusefs/control_server.h"
#include "fusefs/file_system.h"

namespace savegate::fusefs {

class ControlCommands {
 public:
  ControlCommands(FileSystem& file_system, std::string mount_point, std::function<void()> stop);
  void handle(const ControlRequest& request);

 private:
  FileSystem& fs_;
  const std::string mount_point_;
  const std::function<void()> stop_;
};

}  // namespace savegate::fusefs
