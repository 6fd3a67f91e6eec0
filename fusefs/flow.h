// The way of every operation: decide, stall, kill, execute, corrupt, record, reply.
//
// A handler gives a Request, how to execute it on the backing directory and how to reply. Where no
// rule can match the file and nothing is traced, execute and reply are called straight away. Else
// the injector decides; an operation that must wait is parked (with its payload copied) and goes on
// later on the worker pool, so that execute and reply must own what they capture. What a rule wants
// undone later is kept before it is changed (undo.h).
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "faults/injector.h"
#include "fusefs/attribution.h"
#include "fusefs/inode_table.h"
#include "fusefs/recorder.h"
#include "fusefs/stalls.h"
#include "fusefs/undo.h"
#include "fusefs/views.h"

namespace savegate::fusefs {

// The name or names that an operation acts on.
struct Target {
  NodePtr node = {};
  const char* name = nullptr;  // below node, which is then its parent
  NodePtr node2 = {};          // of the second path
  const char* name2 = nullptr;
  const char* text2 = nullptr;  // second path as it stands: a symlink's target
};

struct Request {
  fuse_req_t req = nullptr;
  faults::Op op = faults::Op::kLookup;
  Target target = {};
  faults::FileId file = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t flags = 0;
  std::string_view payload = {};  // bytes to be written
  int source_fd = -1;             // of the bytes to be moved, where they are not the payload
  std::uint64_t source_offset = 0;
  bool takes_space = true;  // not where it punches a hole
  bool replaces = false;    // a rename onto a name that exists
};

// What execute() may do.
struct Limits {
  std::uint64_t allowed = 0;                   // bytes, at most those asked for
  std::string_view payload;                    // perhaps corrupted
  const faults::Decision* decision = nullptr;  // of the rules; null where none can match
  const View* view = nullptr;                  // what the caller sees in place of what is there
};

struct Outcome {
  std::uint64_t done = 0;       // bytes that took effect
  int error = 0;                // errno for the caller
  char* data = nullptr;         // bytes read: `done` of them, until the reply
  bool lied = false;            // reply as if all was done
  bool no_shared_mmap = false;  // of what was opened
  bool name_lost = false;       // what was to be opened has lost its name to a race
  faults::FileId made = 0;      // a new inode
};

using Execute = std::function<Outcome(const Limits&)>;
using Reply = std::function<void(fuse_req_t, const Outcome&)>;

// A mark on its way (control.h): no FUSE request, the caller is known.
struct Mark {
  faults::Caller caller;
  std::string kind;
  std::string name;
  std::function<void(StallId)> parked;  // before it can end
  std::function<bool()> gone;           // its sender has hung up
  std::function<void(int error)> replied;
};

class Flow {
 public:
  Flow(faults::Injector& injector, InodeTable& inodes, Attribution& attribution, Recorder& recorder,
       Stalls& stalls, Views& views, Undo& undo, int root_fd);

  template <class E, class R>
  void run(const Request& request, E execute, R reply) {
    recorder_.count(request.op);
    std::shared_ptr<const faults::FileRules> rules;
    if (armed_.load(std::memory_order_acquire)) rules = rules_of(request);
    const bool may_act = rules && rules->can_match(request.op);
    if (!may_act && !recorder_.tracing() && !views_.recording() && !undo_.any()) {
      // Who closes amid an exec cannot be asked then.
      if (sees_all_callers_.load(std::memory_order_relaxed) ||
          (rules && rules->can_match(faults::Op::kClose))) {
        caller_of(request);
      }
      reply(request.req, execute(Limits{request.length, request.payload}));
      return;
    }
    run_watched(request, rules.get(), Execute(std::move(execute)), Reply(std::move(reply)));
  }
  void mark(Mark mark);

  // Whether any rule or budget is armed at all.
  void set_armed(bool armed) { armed_.store(armed, std::memory_order_release); }
  // A kill of the whole job reaches those ranks alone that were seen at some operation.
  void see_all_callers(bool all) { sees_all_callers_ = all; }
  bool armed() const { return armed_.load(std::memory_order_acquire); }
  bool tracing() const { return recorder_.tracing(); }

  std::shared_ptr<const faults::FileRules> rules_of(Node& node);
  std::uint64_t free_bytes(const std::string& path) const;  // as statfs tells
  // Called where the kernel may hold pages that differ from the file.
  void set_drop_pages(std::function<void(const Node&, std::uint64_t, std::uint64_t)> drop) {
    drop_pages_ = std::move(drop);
  }

 private:
  struct Pending;
  std::shared_ptr<const faults::FileRules> rules_of(const Request& request);
  void run_watched(const Request& request, const faults::FileRules* rules, Execute execute,
                   Reply reply);
  faults::Caller caller_of(const Request& request);
  static bool is_of_mapping(faults::Op op, const faults::Caller& caller,
                            const faults::FileRules& rules);
  void start(const std::shared_ptr<Pending>& pending);
  void park(const std::shared_ptr<Pending>& pending);
  void finish(Pending& pending, Wake wake);
  Outcome execute(Pending& pending);
  Outcome perform(Pending& pending, const Limits& limits);
  Outcome execute_seen(Pending& pending, Limits limits);
  Outcome change(Pending& pending, const Limits& limits);
  Outcome refuse(Pending& pending);
  faults::FiredRecord fired_record(const Pending& pending, const faults::Hit& hit,
                                   const Outcome& outcome) const;
  void record_fired(const Pending& pending, const Outcome& outcome, bool stalls);
  void record_trace(const Pending& pending, const Outcome& outcome);

  faults::Injector& injector_;
  InodeTable& inodes_;
  Attribution& attribution_;
  Recorder& recorder_;
  Stalls& stalls_;
  Views& views_;
  Undo& undo_;
  const int root_fd_;
  std::atomic<bool> armed_{false};
  std::atomic<bool> sees_all_callers_{false};
  std::function<void(const Node&, std::uint64_t, std::uint64_t)> drop_pages_;
};

// Whether success can be replied to the operation without doing it.
bool can_lie(faults::Op op);

}  // namespace savegate::fusefs
