#include "fusefs/timestamps.h"

#include <algorithm>

namespace savegate::fusefs {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Times before 1970 stay as they are: a skew that leads there shows 1970.
timespec shown(const faults::TimestampsAction& action, const timespec& time) {
  if (time.tv_sec < 0) return time;
  const auto granularity = static_cast<std::int64_t>(action.granularity_ns);
  std::int64_t moved = 0;
  if (__builtin_mul_overflow(static_cast<std::int64_t>(time.tv_sec), kSecond, &moved) ||
      __builtin_add_overflow(moved, time.tv_nsec, &moved) ||
      __builtin_add_overflow(moved, action.skew_ns, &moved)) {
    return time;
  }
  moved = std::max<std::int64_t>(moved, 0);
  moved -= moved % granularity;
  return {.tv_sec = moved / kSecond, .tv_nsec = moved % kSecond};
}

}  // namespace

void apply(const faults::TimestampsAction& action, struct stat& attributes) {
  for (timespec* time : {&attributes.st_atim, &attributes.st_mtim, &attributes.st_ctim}) {
    *time = shown(action, *time);
  }
}

}  // namespace savegate::fusefs
