#include "fusefs/flow.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "fusefs/corruption.h"
#include "fusefs/file_system.h"
#include "fusefs/process_info.h"
#include "fusefs/races.h"

namespace savegate::fusefs {

using faults::Op;
using faults::When;

namespace {

bool moves_bytes(Op op) { return op == Op::kRead || op == Op::kWrite || op == Op::kCopyFileRange; }

// What the operation will do to the bytes of its file.
std::optional<Change> change_of(Op op, std::uint64_t offset, std::uint64_t length,
                                std::uint32_t flags) {
  switch (op) {
    case Op::kWrite:
    case Op::kCopyFileRange:
      return Change::bytes(offset, offset + length);
    case Op::kFallocate: {
      Change change = Change::bytes(offset, offset + length);
      change.grows = (flags & FALLOC_FL_KEEP_SIZE) == 0;
      return change;
    }
    case Op::kTruncate:
      return Change::truncate(offset);
    case Op::kOpen:
      if ((flags & O_TRUNC) != 0) return Change::truncate(0);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// What the backing file holds there now; zeros behind its end.
int read_backing(const Node& node, std::uint64_t offset, char* bytes, std::uint64_t length) {
  const int fd = ::open(descriptor_path(node.fd).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  std::string found(length, '\0');
  const int error = read_fully(fd, offset, found);
  ::close(fd);
  if (error != 0) return error;
  found.resize(length, '\0');
  found.copy(bytes, length);
  return 0;
}

std::uint64_t available(const Request& request) {
  struct stat source {};
  if (request.source_fd < 0 || ::fstat(request.source_fd, &source) != 0) return UINT64_MAX;
  const auto size = static_cast<std::uint64_t>(source.st_size);
  return size - std::min(size, request.source_offset);
}

bool contains(const std::vector<Attribution::Process>& processes, pid_t pid) {
  return std::any_of(processes.begin(), processes.end(),
                     [pid](const auto& process) { return process.pid == pid; });
}

}  // namespace

bool can_lie(Op op) {
  switch (op) {
    case Op::kWrite:
    case Op::kTruncate:
    case Op::kFallocate:
    case Op::kCopyFileRange:
    case Op::kClose:
    case Op::kFsync:
    case Op::kFsyncdir:
    case Op::kRmdir:
    case Op::kUnlink:
    case Op::kRename:
    case Op::kChmod:
    case Op::kChown:
    case Op::kUtimens:
    case Op::kSetxattr:
    case Op::kRemovexattr:
    case Op::kPhase:
      return true;
    default:
      return false;
  }
}

// One operation between its decision and its reply. Owns all that outlives the worker's call.
struct Flow::Pending {
  fuse_req_t req = nullptr;
  Op op = Op::kLookup;
  NodePtr node;
  Subject subject;
  std::string path;
  std::string path2;
  faults::FileId file = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t flags = 0;
  std::string_view payload;  // the worker's, or owned_payload
  std::string owned_payload;
  faults::Caller caller;
  std::string phase;
  int attempt = 0;
  std::uint64_t begin_seq = 0;
  std::uint64_t begin_ns = 0;
  Undo::Keeps keeps;
  faults::Decision decision;
  Execute execute;
  Reply reply;
  // Of a mark.
  std::function<void(StallId)> parked;
  std::function<bool()> gone;
};

Flow::Flow(faults::Injector& injector, InodeTable& inodes, Attribution& attribution,
           Recorder& recorder, Stalls& stalls, Views& views, Undo& undo, int root_fd)
    : injector_(injector),
      inodes_(inodes),
      attribution_(attribution),
      recorder_(recorder),
      stalls_(stalls),
      views_(views),
      undo_(undo),
      root_fd_(root_fd) {}

std::shared_ptr<const faults::FileRules> Flow::rules_of(Node& node) {
  const auto generation = injector_.generation();
  const auto epoch = inodes_.epoch();
  std::lock_guard lock(node.rules_mutex);
  if (node.rules_generation != generation + 1 || node.rules_epoch != epoch) {
    node.rules = injector_.rules_for(inodes_.path(node));
    node.rules_generation = generation + 1;
    node.rules_epoch = epoch;
  }
  return node.rules;
}

// A rename or link is matched by the name that a rule on it can match: the old one, else the new.
std::shared_ptr<const faults::FileRules> Flow::rules_of(const Request& request) {
  const Target& target = request.target;
  auto rules = target.name == nullptr
                   ? rules_of(*target.node)
                   : injector_.rules_for(inodes_.path(*target.node, target.name));
  if (target.name2 == nullptr || (rules && rules->can_match(request.op))) return rules;
  auto second = injector_.rules_for(inodes_.path(*target.node2, target.name2));
  return second && second->can_match(request.op) ? second : rules;
}

std::uint64_t Flow::free_bytes(const std::string& path) const {
  struct statvfs status {};
  std::uint64_t free = 0;
  if (::fstatvfs(root_fd_, &status) == 0) free = status.f_bavail * status.f_frsize;
  if (auto space = injector_.space(path)) free = std::min(free, space->free);
  return free;
}

void Flow::run_watched(const Request& request, const faults::FileRules* rules, Execute execute,
                       Reply reply) {
  auto pending = std::make_shared<Pending>();
  const Target& target = request.target;
  pending->req = request.req;
  pending->op = request.op;
  pending->node = target.node;
  pending->path = inodes_.path(*target.node, target.name ? target.name : "");
  if (target.node2) pending->path2 = inodes_.path(*target.node2, target.name2 ? target.name2 : "");
  if (target.text2) pending->path2 = target.text2;
  pending->file = request.file;
  pending->offset = request.offset;
  pending->length = request.length;
  pending->flags = request.flags;
  pending->payload = request.payload;
  pending->caller = caller_of(request);
  pending->execute = std::move(execute);
  pending->reply = std::move(reply);
  pending->begin_ns = monotonic_ns();
  pending->begin_seq = recorder_.tick();
  if (recorder_.tracing()) {
    pending->phase = injector_.phase(pending->caller.rank);
    pending->attempt = injector_.attempt(pending->caller.rank);
  }
  pending->subject = {.node = target.node,
                      .name = target.name ? target.name : "",
                      .node2 = target.node2,
                      .name2 = target.name2 ? target.name2 : ""};
  if (rules) {
    const HiddenFrom hidden(views_, viewer_of(pending->caller), request.op, pending->subject,
                            request.offset, request.length);
    const bool past = request.op == Op::kRead && rules->keeps_past() &&
                      undo_.has_past(request.file, request.offset, request.offset + request.length);
    pending->decision =
        injector_.decide({.op = request.op,
                          .caller = pending->caller,
                          .rules = rules,
                          .path = pending->path,
                          .path2 = pending->path2,
                          .file = request.file,
                          .offset = request.offset,
                          .length = request.length,
                          .available = available(request),
                          .of_mapping = is_of_mapping(request.op, pending->caller, *rules),
                          .takes_space = request.takes_space,
                          .flags = request.flags,
                          .replaces = request.replaces,
                          .hidden = views_.recording() ? &hidden : nullptr,
                          .has_past = past,
                          .now_ns = pending->begin_ns});
    pending->keeps = {.unsynced = rules->keeps_unsynced(),
                      .past = rules->keeps_past(),
                      .loses = pending->decision.loses.has_value()};
  }
  start(pending);
}

// The kernel itself writes the pages of mappings back: on behalf of nobody.
bool Flow::is_of_mapping(Op op, const faults::Caller& caller, const faults::FileRules& rules) {
  if (op == Op::kWrite) return caller.pid == 0;
  return op == Op::kRead && rules.can_match(Op::kRead) && fills_pages(caller.tid);
}

faults::Caller Flow::caller_of(const Request& request) {
  const pid_t tid = fuse_req_ctx(request.req)->pid;
  return request.op == Op::kClose ? attribution_.closer(tid) : attribution_.caller(tid);
}

void Flow::mark(Mark mark) {
  recorder_.count(Op::kPhase);
  const int rank = mark.caller.rank;
  auto pending = std::make_shared<Pending>();
  pending->begin_ns = monotonic_ns();
  if (mark.kind == "enter") injector_.enter(rank, mark.name, pending->begin_ns);
  if (mark.kind == "point") injector_.point(rank, mark.name, pending->begin_ns);
  pending->op = Op::kPhase;
  pending->path = mark.kind;
  pending->path2 = mark.name;
  pending->caller = mark.caller;
  pending->parked = std::move(mark.parked);
  pending->gone = std::move(mark.gone);
  pending->execute = [](const Limits&) { return Outcome{}; };
  pending->reply = [this, rank, leave = mark.kind == "leave", span = mark.name,
                    replied = std::move(mark.replied)](fuse_req_t, const Outcome& outcome) {
    if (leave) injector_.leave(rank, span);
    replied(outcome.error);
  };
  pending->begin_seq = recorder_.tick();
  pending->phase = injector_.phase(rank);
  pending->attempt = injector_.attempt(rank);
  if (armed()) {
    if (auto rules = injector_.rules_for("")) {
      pending->decision = injector_.decide({.op = Op::kPhase,
                                            .caller = pending->caller,
                                            .rules = rules.get(),
                                            .path = "",
                                            .path2 = pending->path2,
                                            .now_ns = pending->begin_ns});
    }
  }
  start(pending);
}

void Flow::start(const std::shared_ptr<Pending>& pending) {
  const auto& decision = pending->decision;
  if (decision.hang || decision.delay_ns != 0) {
    park(pending);
  } else {
    finish(*pending, Wake::kElapsed);
  }
}

void Flow::park(const std::shared_ptr<Pending>& pending) {
  record_fired(*pending, Outcome{}, /*stalls=*/true);
  pending->owned_payload.assign(pending->payload);
  pending->payload = pending->owned_payload;

  Stall stall;
  const auto& decision = pending->decision;
  if (!decision.hang) stall.delay = std::chrono::nanoseconds(decision.delay_ns);
  for (const auto& hit : decision.hits) {
    if (hit.stalls) stall.rules.push_back(hit.rule);
  }
  stall.dying = [tid = pending->caller.tid] {
    auto status = process_status(tid);
    return !status || status->dying;
  };
  std::vector<Attribution::Process> frozen;
  if (decision.freeze) frozen = attribution_.targets(pending->caller, *decision.freeze);
  send_signal(frozen, SIGSTOP);
  stall.then = [this, pending, frozen](Wake why) {
    send_signal(frozen, SIGCONT);
    finish(*pending, why);
  };

  const StallId id = stalls_.reserve();
  if (pending->req != nullptr) {
    fuse_req_interrupt_func(
        pending->req,
        [](fuse_req_t req, void* data) {
          FileSystem::of(req).stalls.interrupt(std::bit_cast<StallId>(data));
        },
        std::bit_cast<void*>(id));
  } else {
    stall.dying = pending->gone;
    pending->parked(id);
  }
  stalls_.park(id, std::move(stall));
}

void Flow::finish(Pending& pending, Wake wake) {
  const auto& kill = pending.decision.kill;
  Outcome outcome;
  bool fired = false;
  bool caller_dies = wake == Wake::kInterrupted || wake == Wake::kShutdown;
  std::vector<Attribution::Process> targets;
  bool send_later = false;
  if (kill && !caller_dies) {
    targets = attribution_.targets(pending.caller, kill->target);
    const bool before =
        kill->when == When::kBefore || (kill->when == When::kMiddle && !moves_bytes(pending.op));
    send_later = !before;
    if (before) {
      record_fired(pending, outcome, /*stalls=*/false);
      fired = true;
      caller_dies = kill->signal == SIGKILL && contains(targets, pending.caller.pid);
      send_later = caller_dies;  // the trace is complete before the process ends
      if (!caller_dies) send_signal(targets, kill->signal);
    }
  }
  if (caller_dies) {
    outcome.error = EINTR;
  } else {
    outcome = execute(pending);
  }
  if (pending.decision.takes_inode) injector_.settle_inode(pending.path, outcome.made);
  if (recorder_.tracing()) record_trace(pending, outcome);
  if (!fired) record_fired(pending, outcome, /*stalls=*/false);
  if (send_later) send_signal(targets, kill->signal);
  pending.reply(pending.req, outcome);
  const auto& damage = pending.decision.corrupt;
  if (damage && pending.op == Op::kWrite && drop_pages_) {
    drop_pages_(*pending.node, pending.offset, pending.length);
  }
  if (pending.decision.drops_unsynced && drop_pages_) drop_pages_(*pending.node, 0, 0);
}

Outcome Flow::execute(Pending& pending) {
  const auto& decision = pending.decision;
  if (decision.lie && can_lie(pending.op)) return {.lied = true};
  const bool partly = moves_bytes(pending.op) && decision.allowed > 0;
  if (decision.error != 0 && !partly) return refuse(pending);

  if (decision.race) {
    const int error =
        run_race(FileSystem::of(pending.req), decision.race->kind, pending.op, pending.subject);
    if (error != 0) return {.error = error};
    if (pending.op == Op::kOpen) return {.error = ENOENT, .name_lost = true};
  }
  Limits limits{std::min(decision.allowed, pending.length), pending.payload, &decision};
  std::string damaged;
  if (decision.corrupt && pending.op == Op::kWrite) {
    damaged.assign(pending.payload);
    int error = 0;
    corrupt(damaged.data(), damaged.size(), decision,
            [&](std::uint64_t at, char* bytes, std::uint64_t length) {
              error = read_backing(*pending.node, pending.offset + at, bytes, length);
            });
    if (error != 0) return {.error = error};
    limits.payload = damaged;
  }
  Outcome outcome = change(pending, limits);
  if (decision.corrupt && outcome.data != nullptr) {
    corrupt(outcome.data, outcome.done, decision,
            [&](std::uint64_t at, char* bytes, std::uint64_t length) {
              undo_.show_past(pending.file, pending.offset + at, bytes, length);
            });
  }
  if (outcome.error == 0) outcome.error = decision.error;
  outcome.no_shared_mmap = decision.no_shared_mmap;
  return outcome;
}

Outcome Flow::perform(Pending& pending, const Limits& limits) {
  return views_.recording() ? execute_seen(pending, limits) : pending.execute(limits);
}

// Executes what others may see late, or the caller sees late itself.
Outcome Flow::execute_seen(Pending& pending, Limits limits) {
  const Viewer viewer = viewer_of(pending.caller);
  const auto& decision = pending.decision;
  std::optional<View> view;
  if (decision.stale) {
    view.emplace(views_, viewer, views_.since(*decision.stale, decision.stale_rule),
                 *decision.stale);
    limits.view = &*view;
  }
  const Views::Change change = views_.begin(viewer, pending.op, pending.flags, pending.subject);
  Outcome outcome = pending.execute(limits);
  views_.finish(change, outcome.error == 0 || outcome.done > 0);
  if (pending.op == Op::kOpen && outcome.error == 0) views_.opened(viewer, *pending.node);
  if (pending.op == Op::kLookup && outcome.error == ENOENT && !view) {
    views_.missed(viewer, pending.subject.node, pending.subject.name);
  }
  return outcome;
}

// Executes; what is to be undone later is kept first.
Outcome Flow::change(Pending& pending, const Limits& limits) {
  const auto change = change_of(pending.op, pending.offset, limits.allowed, pending.flags);
  const bool concerned = (change || pending.op == Op::kFsync) && S_ISREG(pending.node->mode);
  if (!concerned || (!pending.keeps.any() && !undo_.any())) return perform(pending, limits);

  auto held = undo_.before(pending.file, pending.node->fd, change, pending.keeps);
  if (held.error() != 0) return {.error = held.error()};
  Outcome outcome = perform(pending, limits);
  if (!held || outcome.error != 0) return outcome;
  if (pending.op == Op::kFsync) held.synced();
  if (pending.keeps.loses) held.loses(fired_record(pending, *pending.decision.loses, Outcome{}));
  return outcome;
}

// An error, and nothing done.
Outcome Flow::refuse(Pending& pending) {
  if (pending.decision.drops_unsynced) {
    auto held = undo_.before(pending.file, pending.node->fd, std::nullopt, pending.keeps);
    const int failed = held ? held.drop() : 0;
    if (failed != 0) return {.error = failed};
  }
  return {.error = pending.decision.error};
}

faults::FiredRecord Flow::fired_record(const Pending& pending, const faults::Hit& hit,
                                       const Outcome& outcome) const {
  faults::FiredRecord record;
  record.time_ns = monotonic_ns();
  record.seq = pending.begin_seq;
  record.rule = hit.rule;
  record.hit = hit.hit;
  record.action = hit.action;
  record.life = hit.life;
  record.attempt = hit.attempt;
  record.phase = hit.phase;
  record.caller = pending.caller;
  record.op = pending.op;
  record.path = pending.path;
  record.path2 = pending.path2;
  record.offset = pending.offset;
  record.requested = pending.length;
  record.returned = outcome.done;
  record.error = outcome.error;
  record.fs_free = free_bytes(pending.path);
  return record;
}

void Flow::record_fired(const Pending& pending, const Outcome& outcome, bool stalls) {
  for (const auto& hit : pending.decision.hits) {
    if (hit.stalls == stalls) recorder_.fired(fired_record(pending, hit, outcome));
  }
}

void Flow::record_trace(const Pending& pending, const Outcome& outcome) {
  faults::TraceRecord record;
  record.begin_seq = pending.begin_seq;
  record.begin_ns = pending.begin_ns;
  record.op = pending.op;
  record.caller = pending.caller;
  record.path = pending.path;
  record.path2 = pending.path2;
  record.phase = pending.phase;
  record.attempt = pending.attempt;
  record.file = pending.file;
  record.offset = pending.offset;
  record.requested = pending.length;
  record.effective = outcome.done;
  record.returned = outcome.lied ? pending.length : (outcome.error != 0 ? 0 : outcome.done);
  record.error = outcome.error;
  record.flags = pending.flags;
  record.faulted = pending.decision.acts();
  recorder_.trace(record);
}

}  // namespace savegate::fusefs
