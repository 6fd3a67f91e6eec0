// Fsx: one file that is written, mapped, cut, punched and read in random order through several
// handles, against what it must hold by arithmetic alone.
//
// Handles: buffered, appending and, where the file system has it, O_DIRECT; a shared mapping lives
// across operations. Every step reads back what it touched, every hundredth the whole file, here
// and in the plain directory below.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <string>

namespace savegate::fusefs {

class Fsx {
 public:
  // The same file, by its mounted and by its plain path. It must not exist.
  Fsx(std::string mounted, std::string plain, std::uint64_t seed);
  ~Fsx();
  Fsx(const Fsx&) = delete;
  Fsx& operator=(const Fsx&) = delete;

  // Does one random operation. "" or what is wrong, with the operations before it.
  std::string step();
  bool has_direct() const { return direct_ >= 0; }
  std::uint64_t mapped_stores() const { return mapped_stores_; }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::string random_bytes(std::size_t length);
  std::string operate();

  std::string write_through(int fd, std::uint64_t offset, const std::string& bytes);
  std::string write_direct();
  std::string append();
  std::string store_mapped(std::uint64_t offset, std::size_t length);
  std::string cut(std::uint64_t size);
  std::string zero(std::uint64_t offset, std::uint64_t length, int mode);
  std::string reopen();

  std::string compare(std::uint64_t offset, std::uint64_t length);
  std::string compare_whole(const std::string& path);
  void expect(std::uint64_t offset, const std::string& bytes);

  const std::string mounted_;
  const std::string plain_;
  std::mt19937_64 random_;
  std::string expected_;
  int file_ = -1;
  int append_ = -1;
  int direct_ = -1;
  char* map_ = nullptr;
  char* aligned_ = nullptr;
  std::uint64_t steps_ = 0;
  std::uint64_t mapped_stores_ = 0;
  std::deque<std::string> history_;
};

}  // namespace savegate::fusefs
