// Gloo's rendezvous in a directory: a key is a file, renamed into place when it is whole.
//
// As Gloo's own FileStore, which looks every 10 ms; this one looks more often, for a job that is
// started again and again. Throws what Gloo throws, at whose boundary it lives.
#pragma once

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <string>
#include <vector>

namespace savegate::gpu {

class DirectoryStore : public gloo::rendezvous::Store {
 public:
  DirectoryStore(std::string directory, std::chrono::milliseconds timeout)
      : directory_(std::move(directory)), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

 private:
  std::string path(const std::string& key) const;

  std::string directory_;
  std::chrono::milliseconds timeout_;
};

}  // namespace savegate::gpu
