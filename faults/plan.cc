#include "faults/plan.h"

#include <fcntl.h>

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
    if (action.drop) return op_bit(Op::kFsync);
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
  std::uint64_t operator()(const MissingAction& action) const { return action.features.ops(); }
  std::uint64_t operator()(const RaceAction& action) const {
    switch (action.kind) {
      case Race::kMade:
        return bits({Op::kCreate, Op::kMkdir, Op::kMknod, Op::kSymlink, Op::kLink});
      case Race::kRemoved:
        return bits({Op::kOpen, Op::kRename, Op::kUnlink, Op::kRmdir});
      case Race::kMoved:
        return op_bit(Op::kRename);
    }
    return 0;
  }
  std::uint64_t operator()(const TimestampsAction&) const { return op_bit(Op::kGetattr); }
  std::uint64_t operator()(const StaleAction& action) const {
    std::uint64_t ops = 0;
    if (action.has(Aspect::kName) || action.has(Aspect::kNegative)) ops |= op_bit(Op::kLookup);
    if (action.has(Aspect::kListing)) ops |= op_bit(Op::kReaddir);
    if (action.has(Aspect::kAttributes)) ops |= op_bit(Op::kGetattr);
    if (action.has(Aspect::kSize)) ops |= bits({Op::kGetattr, Op::kRead});
    return ops;
  }
  std::uint64_t operator()(const BandwidthAction&) const {
    return bits({Op::kRead, Op::kWrite, Op::kCopyFileRange});
  }
  std::uint64_t operator()(const FreezeAction&) const { return kAll; }
  std::uint64_t operator()(const LoseAction&) const { return kDirtying; }
};

// These are about queries that no other rule means unless it names them.
bool is_about_queries(const Action& action) {
  return std::holds_alternative<TimestampsAction>(action) ||
         std::holds_alternative<StaleAction>(action);
}

}  // namespace

std::string_view when_name(When when) {
  switch (when) {
    case When::kBefore:
      return "before";
    case When::kMiddle:
      return "middle";
    case When::kAfter:
      break;
  }
  return "after";
}

std::uint64_t acting_ops(const Match& match, const Action& action) {
  std::uint64_t asked = match.ops == 0 ? kAll & ~kUnlessNamed : match.ops;
  const auto* error = std::get_if<ErrnoAction>(&action);
  // What an accepted write loses later; only who asks for it by name gets a late error otherwise.
  if (error != nullptr && error->late && match.ops == 0) asked = kDirtying;
  if (is_about_queries(action) && match.ops == 0) asked = kAll;
  if (match.offset || match.size) asked &= kData;  // the others have neither
  return asked & std::visit(Possible(), action);
}

std::uint64_t uncached_ops(const Action& action) {
  if (const auto* missing = std::get_if<MissingAction>(&action)) {
    return missing->features.has(Feature::kMmap) ? bits({Op::kRead, Op::kWrite}) : 0;
  }
  if (std::holds_alternative<RaceAction>(action)) return bits({Op::kLookup, Op::kGetattr});
  if (std::holds_alternative<TimestampsAction>(action)) return op_bit(Op::kGetattr);
  // Writes too: changes that nobody sees being made cannot be hidden.
  if (std::holds_alternative<StaleAction>(action)) {
    return bits({Op::kLookup, Op::kGetattr, Op::kReaddir, Op::kRead, Op::kWrite});
  }
  // What is to be undone must be seen being done.
  constexpr std::uint64_t kChanging = kDirtying | bits({Op::kOpen, Op::kCreate, Op::kFsync});
  const auto* error = std::get_if<ErrnoAction>(&action);
  if (error != nullptr && error->drop) return kChanging;
  const auto* corrupt = std::get_if<CorruptAction>(&action);
  if (corrupt != nullptr && corrupt->kind == Corruption::kStale && corrupt->on == CorruptOn::kOut) {
    return kChanging;
  }
  return std::holds_alternative<LoseAction>(action) ? kChanging : 0;
}

bool concerns(const Rule& rule, const Operation& operation) {
  const Action& action = rule.action;
  if (const auto* missing = std::get_if<MissingAction>(&action)) {
    return missing->features.needed_by(operation).has_value();
  }
  if (const auto* race = std::get_if<RaceAction>(&action)) {
    const bool unnoticed =
        race->kind == Race::kMade && operation.op == Op::kCreate && (operation.flags & O_EXCL) == 0;
    return !unnoticed;
  }
  if (const auto* stale = std::get_if<StaleAction>(&action)) {
    return operation.hidden != nullptr && operation.hidden->any(*stale, rule.name);
  }
  return true;
}

}  // namespace savegate::faults
