#include "gpu/directory_store.h"

#include <gloo/common/error.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

namespace savegate::gpu {
namespace {

constexpr std::chrono::microseconds kLookEvery{200};

[[noreturn]] void refuse(const std::string& what, const std::string& path) {
  throw gloo::IoException(what + " " + path);
}

}  // namespace

std::string DirectoryStore::path(const std::string& key) const {
  std::string name = key;
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return directory_ + "/" + name;
}

void DirectoryStore::set(const std::string& key, const std::vector<char>& data) {
  const std::string whole = path(key);
  const std::string part = whole + "." + std::to_string(::getpid());
  std::ofstream file(part, std::ios::binary);
  file.write(data.data(), static_cast<std::streamsize>(data.size()));
  file.close();
  if (!file) refuse("cannot write", part);
  if (std::rename(part.c_str(), whole.c_str()) != 0) refuse("cannot rename to", whole);
}

std::vector<char> DirectoryStore::get(const std::string& key) {
  wait({key});
  std::ifstream file(path(key), std::ios::binary);
  std::vector<char> data{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) refuse("cannot read", path(key));
  return data;
}

void DirectoryStore::wait(const std::vector<std::string>& keys,
                          const std::chrono::milliseconds& timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (const std::string& key : keys) {
    while (::access(path(key).c_str(), R_OK) != 0) {
      if (std::chrono::steady_clock::now() > deadline) refuse("no peer wrote", path(key));
      std::this_thread::sleep_for(kLookEvery);
    }
  }
}

}  // namespace savegate::gpu
