// The store: a directory of runs in which nothing is ever overwritten.
//
//   SAVEGATE_TRY(RunDirectory run, RunDirectory::create("store", "smoke"));
//   … run_scenario() makes a folder below run.path() for each scenario …
//   SAVEGATE_CHECK(run.write("junit.xml", xml));
//   SAVEGATE_CHECK(run.publish());          // store/latest names it
#pragma once

#include <string>
#include <string_view>

#include "faults/status.h"

namespace savegate::harness {

// A new directory, its name made safe and numbered where it is taken: parent/name, parent/name-2 …
// Thread-safe: the file system decides who has a name.
Result<std::string> make_new_directory(const std::string& parent, const std::string& name);

class RunDirectory {
 public:
  // store/<UTC time>-<suite>, with a number behind where the name is taken. Code::kUnavailable
  // where the store cannot be written.
  static Result<RunDirectory> create(const std::string& store, const std::string& suite);

  const std::string& path() const { return path_; }
  const std::string& id() const { return id_; }
  Result<void> write(const std::string& file,
                     std::string_view content) const;  // whole or not at all
  Result<void> publish() const;

 private:
  RunDirectory(std::string store, std::string id)
      : store_(std::move(store)), id_(std::move(id)), path_(store_ + "/" + id_) {}
  std::string store_;
  std::string id_;
  std::string path_;
};

}  // namespace savegate::harness
