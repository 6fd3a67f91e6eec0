#include "faults/plan.h"

namespace savegate::faults {
namespace {

constexpr std::uint64_t bits(std::initializer_list<Op> ops) {
  std::uint64_t set = 0;
  for (Op op : ops) set |= std::uint64_t{1} << static_cast<int>(op);
  return set;
}

constexpr std::uint64_t kAll = (std::uint64_t{1} << kOpCount) - 1;
constexpr std::uint64_t kUnlessNamed = bits({Op::kLookup, Op::kGetattr, Op::kRelease, Op::kPhase});
constexpr std::uint64_t kData = bits({Op::kRead, Op::kWrite, Op::kFallocate, Op::kCopyFileRange});
constexpr std::uint64_t kDirtying =
    bits({Op::kWrite, Op::kFallocate, Op::kCopyFileRange, Op::kTruncate});
// What can be answered with success though nothing was done: no reply that needs a new inode or
// bytes to return.
constexpr std::uint64_t kDeniable =
    bits({Op::kWrite, Op::kTruncate, Op::kFallocate, Op::kCopyFileRange, Op::kFsync, Op::kFsyncdir,
          Op::kUnlink, Op::kRmdir, Op::kRename, Op::kChmod, Op::kChown, Op::kUtimens, Op::kSetxattr,
          Op::kRemovexattr});

struct Possible {
  std::uint64_t operator()(const ErrnoAction& action) const {
    if (action.late) return kAll & ~bits({Op::kPhase});
    return action.after ? kData : kAll;
  }
  std::uint64_t operator()(const ShortAction&) const {
    return bits({Op::kRead, Op::kWrite, Op::kCopyFileRange});
  }
  std::uint64_t operator()(const DelayAction&) const { return kAll; }
  std::uint64_t operator()(const HangAction&) const { return kAll; }
  std::uint64_t operator()(const KillAction& action) const {
    return action.when == When::kMiddle ? kData : kAll;
  }
  std::uint64_t operator()(const CorruptAction& action) const {
    return op_bit(action.on == CorruptOn::kIn ? Op::kWrite : Op::kRead);
  }
  std::uint64_t operator()(const LieAction&) const { return kDeniable; }
};

}  // namespace

std::uint64_t acting_ops(const Match& match, const Action& action) {
  std::uint64_t asked = match.ops == 0 ? kAll & ~kUnlessNamed : match.ops;
  const auto* error = std::get_if<ErrnoAction>(&action);
  // What an accepted write loses later; only who asks for it by name gets a late error otherwise.
  if (error != nullptr && error->late && match.ops == 0) asked = kDirtying;
  if (match.offset || match.size) asked &= kData;  // the others have neither
  return asked & std::visit(Possible(), action);
}

}  // namespace savegate::faults
