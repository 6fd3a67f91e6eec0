#include "harness/run/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "harness/run/files.h"
#include "harness/run/interrupt.h"
#include "harness/run/launcher.h"
#include "harness/run/proc.h"
#include "harness/run/sandbox.h"

namespace savegate::harness {
namespace {

constexpr std::uint64_t kReportEvery = kSecond / 5;
constexpr std::uint64_t kStrayGrace = kSecond / 5;  // to end by itself after its rank
constexpr std::uint64_t kKillGrace = kSecond;
constexpr std::uint64_t kAbortGrace = 5 * kSecond;
constexpr int kSamplesPerDeadline = 4;

std::string seconds(std::uint64_t nanoseconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(nanoseconds) / 1e9);
  return text.data();
}

std::string milliseconds(std::uint64_t nanoseconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f ms", static_cast<double>(nanoseconds) / 1e6);
  return text.data();
}

}  // namespace

Supervisor::Supervisor(Watch watch, std::vector<WatchedRank> ranks)
    : watch_(std::move(watch)),
      ranks_(std::move(ranks)),
      failures_(watch_.events_directory, std::max(watch_.world, static_cast<int>(ranks_.size())),
                watch_.fired_path),
      started_ns_(monotonic_ns()),
      last_progress_ns_(started_ns_),
      next_sample_ns_(started_ns_ + watch_.no_progress_ns / kSamplesPerDeadline),
      running_(ranks_.size()) {
  for (WatchedRank& rank : ranks_) {
    if (watch_.memory != nullptr && rank.rank != kLauncher) {
      watch_.memory->watch(rank.rank, rank.process.pid());
    }
    rank.record.rank = rank.rank;
    rank.record.pid = rank.process.pid();
    rank.record.start_ticks = rank.process.start_ticks();
    rank.record.started_ns = rank.process.started_ns();
  }
}

Result<Supervision> Supervisor::run() {
  if (watch_.memory != nullptr) {
    failures_.listen(
        [this](int rank, const std::string& line) { watch_.memory->on_event_line(rank, line); });
  }
  inotify_ = UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify_) return fail(system_error("inotify_init", ""));
  for (const std::string& path : {watch_.events_directory, watch_.fired_path}) {
    if (::inotify_add_watch(inotify_.get(), path.c_str(), IN_MODIFY | IN_CREATE) < 0) {
      return fail(system_error("inotify_add_watch", path));
    }
  }
  read_tails();  // what was written before the watches stood
  while (running_ > 0) {
    SAVEGATE_CHECK(wait_for_news());
    if (running_ == 0) break;
    if (interrupted()) {
      stop_ranks("interrupted");
      break;
    }
    if (watch_.expects_held && only_held_ranks_remain()) {
      stop_ranks("held");
      break;
    }
    if (watch_.memory != nullptr) watch_.memory->run(monotonic_ns());
    run_guard();
    sample_operations();
    check_deadlines();
    report_progress();
  }
  return finish();
}

Result<void> Supervisor::wait_for_news() {
  std::vector<pollfd> waited;
  waited.push_back({inotify_.get(), POLLIN, 0});
  waited.push_back({interrupt_fd(), POLLIN, 0});
  waited.push_back({seen_.daemon_died ? -1 : watch_.daemon_pidfd, POLLIN, 0});
  const std::size_t first_rank = waited.size();
  for (const WatchedRank& rank : ranks_) {
    waited.push_back({rank.running ? rank.process.pidfd() : -1, POLLIN, 0});
    waited.push_back({rank.output.get(), POLLIN, 0});
  }
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t wake = next_wake_ns();
  const int timeout = wake <= now ? 0 : static_cast<int>((wake - now) / 1'000'000 + 1);
  if (::poll(waited.data(), waited.size(), timeout) < 0) {
    if (errno == EINTR) return {};
    return fail(system_error("poll", ""));
  }
  if (waited[0].revents != 0) read_tails();
  if (waited[2].revents != 0) {
    seen_.daemon_died = true;
    note_failure(monotonic_ns());
  }
  bool any_ended = false;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (waited[first_rank + 2 * i + 1].revents != 0) SAVEGATE_CHECK(drain(ranks_[i]));
    any_ended = any_ended || waited[first_rank + 2 * i].revents != 0;
  }
  if (any_ended) reap();
  return {};
}

Result<void> Supervisor::drain(WatchedRank& rank) {
  std::array<char, 65536> buffer{};
  while (rank.output) {
    const ssize_t got = ::read(rank.output.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return {};
    if (got <= 0) {
      rank.output.reset();
      return {};
    }
    if (rank.log.dropped() == 0) note_sign_of_life();  // a flood says nothing new
    SAVEGATE_CHECK(rank.log.append({buffer.data(), static_cast<std::size_t>(got)}));
    // A flood must not keep the loop from its other duties.
    if (static_cast<std::size_t>(got) < buffer.size() || running_ > 0) return {};
  }
  return {};
}

void Supervisor::read_tails() {
  std::array<char, 16384> ignored{};  // which file it was is not worth telling apart
  while (::read(inotify_.get(), ignored.data(), ignored.size()) > 0) {
  }
  if (failures_.read_new()) note_sign_of_life();
  for (const auto& [rank, rule] : failures_.take_holds()) {
    if (watch_.on_hold) watch_.on_hold(rule, rank);
  }
  for (const auto& [time_ns, counts] :
       {std::pair(failures_.first_fault_ns(), watch_.fault_is_failure),
        std::pair(watch_.expects_held ? failures_.first_hold_ns() : 0, true),
        std::pair(failures_.first_report_ns(), watch_.report_is_failure)}) {
    if (time_ns == 0) continue;
    if (seen_.first_failure_ns == 0 || time_ns < seen_.first_failure_ns) {
      seen_.first_failure_ns = time_ns;
    }
    if (counts && (deadline_from_ns_ == 0 || time_ns < deadline_from_ns_))
      deadline_from_ns_ = time_ns;
  }
}

void Supervisor::reap() {
  for (WatchedRank& rank : ranks_) {
    if (!rank.running) continue;
    if (const auto status = rank.process.try_wait()) note_end(rank, *status);
  }
  if (in_sandbox()) reap_orphans();
}

void Supervisor::note_end(WatchedRank& rank, const ExitStatus& status) {
  rank.running = false;
  --running_;
  if (watch_.memory != nullptr) watch_.memory->ended(rank.rank);
  rank.record.ended_ns = monotonic_ns();
  rank.record.exit_status = status.code;
  rank.record.signal = status.signal;
  note_progress();
  if (status.code != 0) note_failure(rank.record.ended_ns);
}

// A job that has said hello or printed a warning still starts: to initialise GPUs and communicators
// takes long.
void Supervisor::note_sign_of_life() {
  const bool starting = starting_ && !failures_.begun();
  note_progress();
  starting_ = starting;
}

void Supervisor::note_progress() {
  starting_ = false;
  last_progress_ns_ = monotonic_ns();
  next_sample_ns_ = last_progress_ns_ + watch_.no_progress_ns / kSamplesPerDeadline;
}

void Supervisor::note_failure(std::uint64_t time_ns) {
  if (seen_.first_failure_ns == 0) seen_.first_failure_ns = time_ns;
  if (deadline_from_ns_ == 0) deadline_from_ns_ = time_ns;
}

void Supervisor::sample_operations() {
  const std::uint64_t now = monotonic_ns();
  if (!watch_.operations || seen_.daemon_died || now < next_sample_ns_) return;
  const auto operations = watch_.operations();
  if (operations && *operations > last_operations_) {
    last_operations_ = *operations;
    note_progress();
  } else {
    next_sample_ns_ = now + watch_.no_progress_ns / kSamplesPerDeadline;
  }
}

// The largest rank is who a scheduler's guard blames.
void Supervisor::run_guard() {
  if (watch_.guard == nullptr) return;
  const auto held = watch_.guard->run(monotonic_ns());
  if (!held) return;
  WatchedRank* largest = nullptr;
  std::uint64_t most = 0;
  for (WatchedRank& rank : ranks_) {
    if (!rank.running) continue;
    const auto rss = resident_bytes(rank.process.pid());
    if (largest != nullptr && rss.value_or(0) <= most) continue;
    largest = &rank;
    most = rss.value_or(0);
  }
  if (largest == nullptr) return;
  largest->record.ended_by = std::string(kGuard) + ": the job held " + std::to_string(*held) +
                             " bytes, " + std::to_string(watch_.guard->allowed()) + " are allowed";
  largest->process.kill_group(SIGKILL);
}

void Supervisor::check_deadlines() {
  const std::uint64_t now = monotonic_ns();
  if (deadline_from_ns_ != 0 && now >= deadline_from_ns_ + watch_.within_ns) {
    seen_.hung = seconds(watch_.within_ns) + " after the first failure";
  } else if (now >= last_progress_ns_ + no_progress_ns()) {
    seen_.hung = "no progress for " + seconds(no_progress_ns());
  } else {
    return;
  }
  stop_ranks(seen_.hung);
}

std::uint64_t Supervisor::no_progress_ns() const {
  return starting_ ? std::max(watch_.no_progress_ns, watch_.start_ns) : watch_.no_progress_ns;
}

std::uint64_t Supervisor::next_wake_ns() const {
  std::uint64_t wake = last_progress_ns_ + no_progress_ns();
  if (watch_.operations) wake = std::min(wake, next_sample_ns_);
  if (deadline_from_ns_ != 0) wake = std::min(wake, deadline_from_ns_ + watch_.within_ns);
  if (watch_.memory != nullptr) wake = std::min(wake, watch_.memory->next_ns());
  if (watch_.guard != nullptr) wake = std::min(wake, watch_.guard->next_ns());
  if (watch_.progress) wake = std::min(wake, last_report_ns_ + kReportEvery);
  return wake;
}

void Supervisor::stop_ranks(const std::string& reason) {
  reap();
  for (WatchedRank& rank : ranks_) {
    if (!rank.running) continue;
    rank.record.waiting_in = describe_wait(rank.process.pid());
    const std::string rule = watch_.expects_held ? failures_.held_by(rank.rank) : "";
    rank.record.ended_by = "runner: " + (rule.empty() ? reason : "held by rule " + rule);
  }
  stopped_because_ = reason;
  const std::uint64_t killed_ns = monotonic_ns();
  for (const WatchedRank& rank : ranks_) rank.process.kill_group(SIGKILL);
  kill_launched();
  if (!wait_for_ranks(kKillGrace)) {
    if (watch_.abort_mount) watch_.abort_mount();
    wait_for_ranks(kAbortGrace);
  }
  for (WatchedRank& rank : ranks_) {
    if (rank.record.ended_ns >= killed_ns) {
      rank.record.ended_by +=
          ", gone " + milliseconds(rank.record.ended_ns - killed_ns) + " after SIGKILL";
    } else if (rank.running) {
      seen_.stray.push_back("rank " + std::to_string(rank.rank) + ", pid " +
                            std::to_string(rank.process.pid()) +
                            ", survived SIGKILL: " + describe_wait(rank.process.pid()));
      rank.running = false;
      --running_;
    }
  }
}

bool Supervisor::only_held_ranks_remain() const {
  if (!watch_.ranks_directory.empty()) {
    const auto ranks = read_ranks(watch_.ranks_directory, watch_.world);
    return static_cast<int>(ranks.size()) == watch_.world &&
           std::all_of(ranks.begin(), ranks.end(), [&](const RankProcess& rank) {
             return rank.ended_ns != 0 || !failures_.held_by(rank.rank).empty();
           });
  }
  return std::all_of(ranks_.begin(), ranks_.end(), [&](const WatchedRank& rank) {
    return !rank.running || !failures_.held_by(rank.rank).empty();
  });
}

bool Supervisor::wait_for_ranks(std::uint64_t nanoseconds) {
  const std::uint64_t until = monotonic_ns() + nanoseconds;
  for (WatchedRank& rank : ranks_) {
    if (!rank.running) continue;
    const std::uint64_t now = monotonic_ns();
    if (const auto status = rank.process.wait_for(until > now ? until - now : 0)) {
      note_end(rank, *status);
    }
  }
  return running_ == 0;
}

// A launcher starts its ranks in sessions of their own.
void Supervisor::kill_launched() const {
  if (watch_.ranks_directory.empty()) return;
  for (const RankProcess& rank : read_ranks(watch_.ranks_directory, watch_.world)) {
    if (rank.ended_ns == 0 && rank.pid > 0) ::kill(static_cast<pid_t>(rank.pid), SIGKILL);
  }
}

// The records of the launched ranks, once savegate-rank has written the last of them.
std::vector<RankProcess> Supervisor::finish_launched() {
  const auto all_ended = [](const std::vector<RankProcess>& ranks) {
    return std::all_of(ranks.begin(), ranks.end(),
                       [](const RankProcess& rank) { return rank.ended_ns != 0; });
  };
  const std::uint64_t until = monotonic_ns() + kKillGrace;
  auto ranks = read_ranks(watch_.ranks_directory, watch_.world);
  while (!all_ended(ranks) && monotonic_ns() < until) {
    ::poll(nullptr, 0, 5);
    ranks = read_ranks(watch_.ranks_directory, watch_.world);
  }
  for (RankProcess& rank : ranks) {
    if (rank.ended_ns == 0) {  // savegate-rank itself was killed, and its program with it
      rank.ended_ns = monotonic_ns();
      rank.signal = SIGKILL;
      rank.ended_by = "launcher";
    }
    const std::string rule = watch_.expects_held ? failures_.held_by(rank.rank) : "";
    if (rank.signal && failures_.killed_by_rule(rank.rank)) {
      rank.ended_by = "rule";
    } else if (!stopped_because_.empty() && rank.signal == SIGKILL) {
      rank.ended_by = "runner: " + (rule.empty() ? stopped_because_ : "held by rule " + rule);
    }
  }
  return ranks;
}

// What the job left behind: in a session of one of its ranks, or with its environment.
void Supervisor::end_strays() {
  const std::string marker = "SAVEGATE_EVENTS=" + watch_.events_directory + "/";
  for (const ProcStatus& process : list_processes()) {
    if (process.state == 'Z' || process.pid == ::getpid()) continue;
    const bool of_a_rank = std::any_of(ranks_.begin(), ranks_.end(), [&](const WatchedRank& rank) {
      return process.session == rank.process.pid();
    });
    if (!of_a_rank && !environment_has(process.pid, marker)) continue;
    const UniqueFd ended(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    pollfd waited{.fd = ended.get(), .events = POLLIN, .revents = 0};
    if (!ended || ::poll(&waited, 1, kStrayGrace / 1'000'000) > 0) continue;
    const auto now = read_proc_status(process.pid);  // it may have executed another program
    seen_.stray.push_back("pid " + std::to_string(process.pid) + " (" +
                          (now ? now->command : process.command) + "), " +
                          describe_wait(process.pid));
    ::kill(process.pid, SIGKILL);
    ::poll(&waited, 1, kKillGrace / 1'000'000);
  }
}

void Supervisor::report_progress() {
  const std::uint64_t now = monotonic_ns();
  if (!watch_.progress || now < last_report_ns_ + kReportEvery) return;
  last_report_ns_ = now;
  LifeProgress progress;
  progress.elapsed_ns = now - started_ns_;
  progress.fired = failures_.fired();
  if (watch_.ranks_directory.empty()) {
    for (const WatchedRank& rank : ranks_) progress.ranks.push_back(view_of(rank));
  } else {  // how a launcher's ranks end is known once they all have
    for (int rank = 0; rank < watch_.world; ++rank)
      progress.ranks.push_back({rank, running_ > 0, failures_.last_event(rank)});
  }
  progress.waits_for = waits_for(now);
  watch_.progress(progress);
}

RankView Supervisor::view_of(const WatchedRank& rank) const {
  RankView view{.rank = rank.rank, .running = rank.running, .state = {}};
  if (!rank.running && rank.record.signal)
    view.state = "ended by signal " + std::to_string(*rank.record.signal);
  else if (!rank.running)
    view.state = "left with exit status " + std::to_string(rank.record.exit_status.value_or(0));
  else if (const std::string rule = failures_.held_by(rank.rank); !rule.empty())
    view.state = "held by rule " + rule;
  else
    view.state = failures_.last_event(rank.rank);
  if (view.state.empty()) view.state = "starting";
  return view;
}

std::string Supervisor::waits_for(std::uint64_t now) const {
  const auto left = [&](std::uint64_t deadline) {
    return seconds(deadline > now ? deadline - now : 0) + " left";
  };
  if (deadline_from_ns_ != 0)
    return "all ranks to leave after the first failure, " +
           left(deadline_from_ns_ + watch_.within_ns);
  return "progress of any rank, " + left(last_progress_ns_ + no_progress_ns());
}

Result<Supervision> Supervisor::finish() {
  std::vector<RankProcess> launched;
  if (!watch_.ranks_directory.empty()) launched = finish_launched();
  end_strays();
  read_tails();
  for (WatchedRank& rank : ranks_) {
    SAVEGATE_CHECK(drain(rank));
    SAVEGATE_CHECK(rank.log.finish());
    rank.record.log_bytes = rank.log.printed();
    rank.record.log_dropped = rank.log.dropped();
    if (rank.record.ended_by.empty() && rank.record.signal && failures_.killed_by_rule(rank.rank)) {
      rank.record.ended_by = "rule";
    }
    if (rank.rank != kLauncher) seen_.ranks.push_back(rank.record);
  }
  seen_.ranks.insert(seen_.ranks.end(), launched.begin(), launched.end());
  return std::move(seen_);
}

}  // namespace savegate::harness
