#include "harness/memory/guard.h"

#include <algorithm>

namespace savegate::harness {
namespace {

constexpr std::uint64_t kEvery = 5'000'000;  // ns; reading one file

}  // namespace

std::optional<std::uint64_t> MemoryGuard::run(std::uint64_t now_ns) {
  if (now_ns < next_ns_) return std::nullopt;
  next_ns_ = now_ns + kEvery;
  auto held = memory_held(job_);
  if (!held || *held <= allowed_) return std::nullopt;
  *held -= std::min(*held, anonymous_held(file_system_).value_or(0));
  if (*held <= allowed_) return std::nullopt;
  next_ns_ = UINT64_MAX;
  return held;
}

}  // namespace savegate::harness
