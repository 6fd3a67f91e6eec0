#include "gpu/cuda/nccl_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

namespace savegate::gpu::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libnccl.so.2";

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    found.push_back(at->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// <prefix>/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2 for each <prefix>/bin in PATH.
std::vector<std::string> in_python_packages() {
  std::vector<std::string> found;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string bin; std::getline(folders, bin, ':');) {
    for (const fs::path& python : folders_in(fs::path(bin).parent_path() / "lib")) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const fs::path& vendor : folders_in(python / packages / "nvidia")) {
          const fs::path file = vendor / "lib" / kName;
          if (fs::exists(file)) found.push_back(file.string());
        }
      }
    }
  }
  return found;
}

template <class Function>
bool bind(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr;
}

Result<NcclLibrary> bind_all(void* handle, const std::string& path) {
  NcclLibrary library;
  library.path = path;
  const bool whole = bind(handle, "ncclGetVersion", library.get_version) &&
                     bind(handle, "ncclGetUniqueId", library.get_unique_id) &&
                     bind(handle, "ncclCommInitRankConfig", library.init_rank) &&
                     bind(handle, "ncclCommGetAsyncError", library.async_error) &&
                     bind(handle, "ncclCommAbort", library.abort) &&
                     bind(handle, "ncclAllGather", library.all_gather) &&
                     bind(handle, "ncclGetErrorString", library.error_string) &&
                     bind(handle, "ncclGetLastError", library.last_error);
  if (!whole) return fail(unavailable("lacks functions of NCCL 2.14 and later", path));
  if (library.get_version(&library.version) != ncclSuccess) {
    return fail(unavailable("does not tell its version", path));
  }
  return library;
}

Result<NcclLibrary> load() {
  std::vector<std::string> places;
  if (const char* chosen = std::getenv("SAVEGATE_NCCL"); chosen != nullptr) {
    places = {chosen};
  } else {
    places = in_python_packages();
    places.insert(places.begin(), kName);
  }
  std::string why;
  for (const std::string& place : places) {
    if (void* handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return bind_all(handle, place);
    }
    const char* reason = ::dlerror();
    why += std::string("; ") + (reason == nullptr ? place : reason);
  }
  return fail(unavailable("NCCL is not there: name its file in SAVEGATE_NCCL" + why));
}

}  // namespace

Result<const NcclLibrary*> nccl_library() {
  static const Result<NcclLibrary> library = load();
  if (!library) return fail(library.error());
  return &*library;
}

}  // namespace savegate::gpu::cuda
