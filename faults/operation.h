// The vocabulary of file operations, one word each, as plans, traces, fired records and reports
// write it.
//
// The words are those of the system calls where there is one. Two need a note: `close` is what the
// kernel sends at every close(2) of a descriptor (FUSE's flush: its error reaches the caller), and
// `release` is the last reference to an open file going away (nobody sees its error). `phase` is no
// file operation but a mark that a rank sends at a named point of its save or load; it goes through
// the same injector so that a kill, delay or hold at a protocol point is a rule like any other.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace savegate::faults {

enum class Op : std::uint8_t {
  kLookup,
  kGetattr,
  kAccess,
  kReadlink,
  kStatfs,
  kOpendir,
  kReaddir,
  kReleasedir,
  kCreate,
  kOpen,
  kRead,
  kWrite,
  kTruncate,
  kFallocate,
  kCopyFileRange,
  kLseek,
  kClose,
  kRelease,
  kFsync,
  kFsyncdir,
  kMkdir,
  kMknod,
  kRmdir,
  kUnlink,
  kRename,
  kLink,
  kSymlink,
  kChmod,
  kChown,
  kUtimens,
  kGetxattr,
  kSetxattr,
  kListxattr,
  kRemovexattr,
  kLock,
  kPhase,
};
inline constexpr int kOpCount = static_cast<int>(Op::kPhase) + 1;

// `data` moves bytes, `metadata` changes names or attributes, `sync` asks for durability or can
// carry a late error, `query` changes nothing.
enum class OpClass : std::uint8_t { kData, kMetadata, kSync, kQuery, kPhase };

std::string_view op_name(Op op);  // "copy_file_range"
std::optional<Op> op_from_name(std::string_view name);
OpClass op_class(Op op);
std::string_view op_class_name(OpClass op_class);  // "data"
std::optional<OpClass> op_class_from_name(std::string_view name);
inline std::uint64_t op_bit(Op op) { return std::uint64_t{1} << static_cast<int>(op); }

// Who asked. `rank` is -1 where the process belongs to no rank (the runner, a shell).
enum class Relation : std::uint8_t { kNone, kProcess, kThread, kChild };
std::string_view relation_name(Relation relation);  // "process", "thread", "child", "none"

struct Caller {
  int rank = -1;
  Relation relation =
      Relation::kNone;  // the rank's main thread, another thread, or a descendant process
  pid_t pid = 0;        // process (thread group) id; 0 for kernel write-back
  pid_t tid = 0;
};

// Identity of a file for budgets and late errors: the backing file system's inode number.
using FileId = std::uint64_t;

class FileRules;     // injector.h: the rules that could ever act on one file
struct StaleAction;  // plan.h

// What others changed, as far as the operation's caller could be kept from seeing it.
class HiddenChanges {
 public:
  virtual ~HiddenChanges() = default;
  // Whether the action, of that rule, shows the caller anything else than what is there.
  virtual bool any(const StaleAction& action, const std::string& rule) const = 0;
};

struct Operation {
  Op op = Op::kLookup;
  Caller caller = {};
  const FileRules* rules =
      nullptr;  // of the file (for create, rename …: of the name acted on); null: none match
  std::string_view path = {};   // relative to the mount's root, no leading slash; "" is the root
  std::string_view path2 = {};  // new name of rename and link, target of symlink, name of a phase
  FileId file = 0;              // 0 where the file does not exist yet
  std::uint64_t offset = 0;     // bytes
  std::uint64_t length = 0;     // bytes asked
  std::uint64_t available =
      UINT64_MAX;           // bytes that there are to be moved: a read ends with the file
  bool of_mapping = false;  // its pages are read in or written back: it is whole, or it fails
  bool takes_space = true;  // not where it punches a hole
  std::uint32_t flags = 0;  // of open and create (O_EXCL), of rename (RENAME_NOREPLACE)
  bool replaces = false;    // a rename onto a name that exists
  const HiddenChanges* hidden = nullptr;  // null: nothing is kept from anybody
  bool has_past = false;     // it is known what the bytes read were before they were last written
  std::uint64_t now_ns = 0;  // by the clock that the marks are told by
};

}  // namespace savegate::faults
