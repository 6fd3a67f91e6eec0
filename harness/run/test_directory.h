// A temporary directory for one test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace savegate::harness {

class TestDirectory {
 public:
  TestDirectory() {
    std::string path = (std::filesystem::temp_directory_path() / "savegate-test-XXXXXX").string();
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  ~TestDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace savegate::harness
