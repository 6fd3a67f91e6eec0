#include "harness/run/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "faults/json_text.h"
#include "faults/operation.h"
#include "fusefs/control.h"
#include "harness/run/files.h"

namespace savegate::harness {
namespace {

using nlohmann::json;

constexpr int kStartSeconds = 20;
constexpr int kAnswerSeconds = 20;

// Kills the daemon unless it is destroyed in time: the socket then closes, and the call returns.
class AnswerDeadline {
 public:
  explicit AnswerDeadline(const Process& process)
      : guard_([this, &process] {
          std::unique_lock lock(mutex_);
          if (!answered_.wait_for(lock, std::chrono::seconds(kAnswerSeconds),
                                  [&] { return done_; })) {
            process.kill_group(SIGKILL);
          }
        }) {}
  AnswerDeadline(const AnswerDeadline&) = delete;
  AnswerDeadline& operator=(const AnswerDeadline&) = delete;
  ~AnswerDeadline() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    answered_.notify_one();
    guard_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable answered_;
  bool done_ = false;
  std::thread guard_;
};

std::uint64_t count_working(const json& operations) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : operations.items()) {
    const auto op = faults::op_from_name(name);
    if (op && faults::op_class(*op) != faults::OpClass::kQuery && count.is_number_unsigned()) {
      sum += count.get<std::uint64_t>();
    }
  }
  return sum;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::start(const DaemonSpec& spec) {
  const UniqueFd log(::open(spec.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log) return fail(system_error("create", spec.log));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("pipe", ""));
  UniqueFd ready(ends[0]);
  UniqueFd ready_end(ends[1]);
  SpawnRequest request;
  request.command = {spec.program,
                     "--backing",
                     spec.backing,
                     "--mount",
                     spec.mount,
                     "--control",
                     spec.control,
                     "--plan",
                     spec.plan,
                     "--layout",
                     spec.layout,
                     "--life",
                     std::to_string(spec.life),
                     "--trace",
                     spec.trace,
                     "--fired",
                     spec.fired,
                     "--ready-fd",
                     "3",
                     "--parent-pid",
                     std::to_string(::getpid())};
  request.environment = environment_with({});
  request.output = log.get();
  request.passed = ready_end.get();
  SAVEGATE_TRY(Process process, Process::spawn(request));
  ready_end.reset();
  std::unique_ptr<Daemon> daemon(new Daemon(spec, std::move(process)));

  pollfd mounted{.fd = ready.get(), .events = POLLIN, .revents = 0};
  int woken = 0;
  while ((woken = ::poll(&mounted, 1, kStartSeconds * 1000)) < 0 && errno == EINTR) {
  }
  char byte = 0;
  if (woken > 0 && ::read(ready.get(), &byte, 1) == 1) return daemon;
  Status why = unavailable(woken == 0 ? "savegate-fs was not ready in time"
                                      : "savegate-fs could not mount; `savegate doctor` says what "
                                        "is missing",
                           spec.mount);
  return fail(daemon->with_log(std::move(why)));
}

Daemon::~Daemon() {
  if (stopped_) return;
  process_.kill_group(SIGKILL);
  process_.wait_for(5 * kSecond);
  ::umount2(spec_.mount.c_str(), MNT_DETACH);  // EINVAL where it is gone already
}

Status Daemon::with_log(Status status) const {
  auto log = read_file(spec_.log);
  if (!log || log->empty()) return status;
  while (!log->empty() && log->back() == '\n') log->pop_back();
  constexpr std::size_t kQuoted = 600;
  if (log->size() > kQuoted) log->erase(0, log->size() - kQuoted);
  status.text += ": it said: " + *log;
  return status;
}

Result<std::string> Daemon::call(const std::string& request) {
  const AnswerDeadline deadline(process_);
  auto client = fusefs::ControlClient::connect(spec_.control);
  if (!client) return fail(with_log(client.error()));
  return client->call(request);
}

Result<DaemonStatistics> Daemon::statistics() {
  SAVEGATE_TRY(const std::string reply, call(R"({"cmd":"statistics"})"));
  const json parsed = json::parse(reply, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("operations") || !parsed.contains("rules")) {
    return fail(internal_error("savegate-fs answered to `statistics`: " + reply));
  }
  DaemonStatistics statistics;
  statistics.working_operations = count_working(parsed["operations"]);
  for (const auto& [name, count] : parsed["operations"].items()) {
    if (count.is_number_unsigned()) statistics.operations += count.get<std::uint64_t>();
  }
  for (const json& rule : parsed["rules"]) {
    reports::FiredCount count;
    count.life = spec_.life;
    count.rule = rule.value("name", "");
    count.required = rule.value("required", true);
    count.hits = rule.value("hits", std::uint64_t{0});
    statistics.rules.push_back(std::move(count));
  }
  return statistics;
}

Result<std::uint64_t> Daemon::release(const std::string& rule) {
  const json request = {{"cmd", "release"}, {"rule", rule}};
  SAVEGATE_TRY(const std::string reply, call(faults::json_text(request)));
  const json answer = json::parse(reply, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("released")) {
    return fail(internal_error("the daemon's answer to release: " + reply));
  }
  return answer["released"].get<std::uint64_t>();
}

Result<void> Daemon::flush() {
  SAVEGATE_TRY(const std::string reply, call(R"({"cmd":"flush"})"));
  return {};
}

Result<void> Daemon::stop() {
  auto flushed = flush();
  auto told = call(R"({"cmd":"stop"})");
  silent_ = !told;
  const bool ended = told && process_.wait_for(10 * kSecond).has_value();
  if (!ended) {
    process_.kill_group(SIGKILL);
    process_.wait_for(5 * kSecond);
  }
  stopped_ = true;
  SAVEGATE_CHECK(confirm_unmounted());
  SAVEGATE_CHECK(flushed);
  if (!told) return fail(std::move(told).error());
  if (!ended) return fail(internal_error("savegate-fs did not end within 10 s of `stop`"));
  return {};
}

// A mount has another device than the directory it lies in.
Result<void> Daemon::confirm_unmounted() const {
  const auto mounted = [&] {
    struct stat point {};
    struct stat parent {};
    // ENOTCONN: the mount of a daemon that is gone.
    if (::stat(spec_.mount.c_str(), &point) != 0) return errno != ENOENT;
    return ::stat(parent_of(spec_.mount).c_str(), &parent) == 0 && point.st_dev != parent.st_dev;
  };
  if (!mounted()) return {};
  if (::umount2(spec_.mount.c_str(), MNT_DETACH) != 0)
    return fail(system_error("umount", spec_.mount));
  return {};
}

void Daemon::abort() {
  ::umount2(spec_.mount.c_str(), MNT_FORCE | MNT_DETACH);  // aborts the connection where permitted
  process_.kill_group(SIGKILL);  // closes /dev/fuse, which aborts it anyway
}

bool Daemon::died() { return silent_ || (!stopped_ && process_.try_wait().has_value()); }

}  // namespace savegate::harness
