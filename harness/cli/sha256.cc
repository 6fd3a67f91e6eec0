#include "harness/cli/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cstdio>
#include <memory>
#include <vector>

namespace savegate::cli {
namespace {

class Hash {
 public:
  Hash() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }
  void add(const void* bytes, std::size_t count) { EVP_DigestUpdate(context_.get(), bytes, count); }
  std::string hex() {
    std::vector<unsigned char> digest(EVP_MAX_MD_SIZE);
    unsigned int length = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
    std::string text;
    for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256(std::string_view bytes) {
  Hash hash;
  hash.add(bytes.data(), bytes.size());
  return hash.hex();
}

Result<reports::SignedFile> sha256_of_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (file == nullptr) return fail(system_error("open", path));
  Hash hash;
  reports::SignedFile result;
  std::vector<char> buffer(std::size_t{1} << 20);
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0;) {
    hash.add(buffer.data(), got);
    result.bytes += got;
  }
  if (std::ferror(file.get()) != 0) return fail(system_error("read", path));
  result.sha256 = hash.hex();
  return result;
}

}  // namespace savegate::cli
