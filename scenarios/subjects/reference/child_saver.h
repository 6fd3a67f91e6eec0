// A save whose files a child process writes, as savers do that keep their work out of the trainer.
//
// The child is forked at the save and has the state as of then. It says through a pipe what it has
// written, or why it could not; of a child that dies the save fails, whatever it had done by then.
// A process that has used CUDA cannot be forked: this is for state in the host's memory.
#pragma once

#include <string>
#include <vector>

#include "scenarios/subjects/reference/save.h"

namespace savegate::reference {

class ChildSaver : public Saver {
 public:
  using Saver::Saver;

 protected:
  Result<std::vector<FileRecord>> store_files() override;
  // What the child has done, by what it said and its wait status.
  virtual Result<std::vector<FileRecord>> conclude(const std::string& said, int status);

 private:
  std::string report_of_child();
};

}  // namespace savegate::reference
