#include "harness/worker/worker.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "harness/worker/event_line.h"

namespace savegate::worker {
namespace {

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::string text_of(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::optional<int> integer(std::string_view text) {
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

int integer_of(const char* name, int otherwise) {
  return integer(text_of(name, "")).value_or(otherwise);
}

constexpr int kContract = 1;

// The process that said hello; a child of it inherits this, and says in each line that it is one.
std::atomic<pid_t> hello_process = 0;

std::string save_name(int save) { return "save " + std::to_string(save); }

std::string collective_name(const std::string& communicator, std::uint64_t number,
                            const std::string& kind) {
  return communicator + '#' + std::to_string(number) + ' ' + kind;
}

}  // namespace

std::optional<int> Environment::until_save() const {
  constexpr std::string_view kPrefix = "save ";
  if (!std::string_view(until).starts_with(kPrefix)) return std::nullopt;
  return integer(std::string_view(until).substr(kPrefix.size()));
}

Environment read_environment() {
  Environment environment;
  environment.rank = integer_of("RANK", 0);
  environment.world = integer_of("WORLD_SIZE", 1);
  environment.life = integer_of("SAVEGATE_LIFE", 1);
  environment.directory = text_of("SAVEGATE_DIR", ".");
  environment.events = text_of("SAVEGATE_EVENTS", "");
  environment.control = text_of("SAVEGATE_CONTROL", "");
  environment.until = text_of("SAVEGATE_UNTIL", "");
  environment.device = text_of("SAVEGATE_DEVICE", "cpu");
  environment.rendezvous = text_of("SAVEGATE_RENDEZVOUS", "");
  environment.wake_probe = text_of("SAVEGATE_WAKE_PROBE", "");
  return environment;
}

Worker::Worker(Environment environment) : environment_(std::move(environment)) {
  if (environment_.events.empty()) return;
  events_ = ::open(environment_.events.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (events_ < 0) {
    lose_events(system_error("open", environment_.events));
  }
  connect_control();
}

void Worker::connect_control() {
  control_process_ = ::getpid();
  if (environment_.control.empty()) return;
  if (auto connected = control_.connect(environment_.control); !connected) {
    std::fprintf(stderr, "savegate: no marks: %s\n", connected.error().to_string().c_str());
  }
}

EventLine Worker::begin(const char* event) const {
  EventLine line(event, now_ns(), environment_.rank);
  const pid_t process = ::getpid();
  if (hello_process != 0 && process != hello_process) line.number("pid", process);
  return line;
}

Worker::Worker(Worker&& other) noexcept
    : environment_(std::move(other.environment_)),
      events_(std::exchange(other.events_, -1)),
      events_broken_(other.events_broken_),
      control_(std::move(other.control_)),
      control_process_(other.control_process_),
      loading_(other.loading_),
      attempts_(std::move(other.attempts_)) {}

Worker::~Worker() {
  if (events_ >= 0) ::close(events_);
}

// One write a line: lines of threads and processes that share the file never mix.
void Worker::append(const std::string& line) {
  if (events_ < 0 || events_broken_) return;
  const std::string whole = line + "\n";
  ssize_t written = 0;
  do {
    written = ::write(events_, whole.data(), whole.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(whole.size())) return;
  lose_events(system_error("write", environment_.events, written < 0 ? errno : EIO));
}

// Told in the log and by a file: the program may have put its stderr elsewhere.
void Worker::lose_events(const Status& reason) {
  events_broken_ = true;
  const std::string text = reason.to_string() + "\n";
  std::fprintf(stderr, "savegate: events lost: %s", text.c_str());
  const std::string path = environment_.events + ".lost";
  const int lost = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (lost < 0 || ::write(lost, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    std::fprintf(stderr, "savegate: %s\n", system_error("write", path).to_string().c_str());
  }
  if (lost >= 0) ::close(lost);
}

void Worker::mark(const std::string& kind, const std::string& name) {
  if (!control_.connected()) return;
  if (control_process_ != ::getpid()) {  // forked: the parent waits for its own answers there
    control_.close();
    connect_control();
    if (!control_.connected()) return;
  }
  auto sent =
      control_.request(R"({"cmd":"mark","rank":)" + std::to_string(environment_.rank) +
                       R"(,"kind":)" + json_string(kind) + R"(,"name":)" + json_string(name) + "}");
  if (sent) return;
  control_.close();
  std::fprintf(stderr, "savegate: marks end here: %s\n", sent.error().to_string().c_str());
}

void Worker::hello(const std::map<std::string, std::string>& versions) {
  hello(versions, ::getpid());
}

void Worker::hello(const std::map<std::string, std::string>& versions, std::int64_t pid) {
  hello_process = ::getpid();
  append(begin("hello")
             .number("contract", kContract)
             .number("world", environment_.world)
             .number("pid", pid)
             .text("device", environment_.device)
             .texts("versions", versions)
             .finish());
}

void Worker::load_begin() {
  loading_ = true;
  mark("enter", "load");
}

void Worker::resumed(const Resumed& resumed) {
  if (std::exchange(loading_, false)) mark("leave", "load");
  EventLine line = begin("resumed");
  if (resumed.step) {
    line.number("step", *resumed.step);
  } else {
    line.null("step");
  }
  line.boolean("ok", true);
  if (!resumed.path.empty()) line.text("path", below(environment_.directory, resumed.path));
  append(line.items(resumed.items).finish());
}

void Worker::load_refused(const std::string& path, const Status& error) {
  if (std::exchange(loading_, false)) mark("leave", "load");
  EventLine line = begin("resumed");
  line.null("step").boolean("ok", false);
  if (!path.empty()) line.text("path", below(environment_.directory, path));
  Status shown = error;
  shown.path = below(environment_.directory, error.path);
  append(line.error(shown).finish());
}

void Worker::update(std::int64_t step, bool changed, const Samples& samples) {
  append(
      begin("update").number("step", step).boolean("changed", changed).samples(samples).finish());
}

void Worker::save_begin(std::int64_t step, int save, const std::vector<Item>& items) {
  const int attempt = ++attempts_[step];
  EventLine line = begin("save_begin");
  if (attempt > 1) line.number("attempt", attempt);
  append(line.number("step", step).number("save", save).items(items).finish());
  mark("enter", save_name(save));
}

void Worker::save_end(std::int64_t step, int save, const Result<void>& saved) {
  end_save("save_end", step, save, saved, !saved);
}

void Worker::durable(std::int64_t step, int save, const Result<void>& saved) {
  end_save("durable", step, save, saved, true);
}

void Worker::end_save(const char* event, std::int64_t step, int save, const Result<void>& saved,
                      bool leave) {
  if (leave) mark("leave", save_name(save));
  EventLine line = begin(event);
  const int attempt = attempts_[step];
  if (attempt > 1) line.number("attempt", attempt);
  line.number("step", step).number("save", save).boolean("ok", saved.has_value());
  if (!saved) {
    Status shown = saved.error();
    shown.path = below(environment_.directory, shown.path);
    line.error(shown);
  }
  append(line.finish());
}

void Worker::exported(std::int64_t step, const std::string& digest) {
  append(begin("export").number("step", step).text("digest", digest).finish());
}

void Worker::memory(std::int64_t step, const std::string& phase, const Memory& facts) {
  append(begin("memory").number("step", step).text("name", phase).facts(facts).finish());
}

void Worker::collective_enter(const std::string& communicator, std::uint64_t number,
                              const std::string& kind) {
  append(begin("collective_enter")
             .text("name", communicator)
             .number("number", static_cast<std::int64_t>(number))
             .text("collective", kind)
             .finish());
  mark("collective_enter", collective_name(communicator, number, kind));
}

void Worker::collective_exit(const std::string& communicator, std::uint64_t number,
                             const std::string& kind) {
  mark("collective_exit", collective_name(communicator, number, kind));
  append(begin("collective_exit")
             .text("name", communicator)
             .number("number", static_cast<std::int64_t>(number))
             .text("collective", kind)
             .finish());
}

void Worker::phase(const std::string& name) {
  append(begin("phase").text("name", name).finish());
  mark("point", name);
}

void Worker::done() { append(begin("done").finish()); }

}  // namespace savegate::worker
