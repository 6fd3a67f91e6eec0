#include "harness/run/store.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "harness/run/files.h"

namespace savegate::harness {
namespace {

constexpr int kMostOfOneName = 10'000;

std::string utc_now() {
  const time_t now = ::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  ::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return text.data();
}

}  // namespace

Result<std::string> make_new_directory(const std::string& parent, const std::string& name) {
  const std::string wanted = parent + "/" + safe_file_name(name);
  for (int number = 1; number <= kMostOfOneName; ++number) {
    const std::string path = number == 1 ? wanted : wanted + "-" + std::to_string(number);
    if (::mkdir(path.c_str(), 0755) == 0) return path;
    if (errno != EEXIST) return fail(system_error("mkdir", path));
  }
  return fail(internal_error("no free name for " + wanted));
}

Result<RunDirectory> RunDirectory::create(const std::string& store, const std::string& suite) {
  const auto unwritable = [&](const Status& why) {
    return fail(unavailable(
        "the store cannot be written (" + why.to_string() + "); give another with --store", store,
        why.error));
  };
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(store, error).lexically_normal().string();
  if (error) return unwritable(system_error("getcwd", store, error.value()));
  if (auto made = make_directories(absolute); !made) return unwritable(made.error());
  auto path = make_new_directory(absolute, utc_now() + "-" + suite);
  if (!path) return unwritable(path.error());
  return RunDirectory(absolute, path->substr(path->rfind('/') + 1));
}

Result<void> RunDirectory::write(const std::string& file, std::string_view content) const {
  return replace_file(path_ + "/" + file, content);
}

Result<void> RunDirectory::publish() const {
  const std::string link = store_ + "/latest";
  const std::string temporary = link + "." + id_;
  if (::symlink(id_.c_str(), temporary.c_str()) != 0)
    return fail(system_error("symlink", temporary));
  if (::rename(temporary.c_str(), link.c_str()) != 0) return fail(system_error("rename", link));
  return {};
}

}  // namespace savegate::harness
