// The trace file, all numbers little endian:
//
//   header   "SGTRACE" and one byte, the version
//   'S'      u32 length, bytes: the next string of the table (numbered from 1; 0 is "")
//   'O'      one operation: kOperationBytes as Encoder::operation writes them
//
// A string stands in the file before the first operation that names it, so that every prefix of the
// file is readable.
#include "faults/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace savegate::faults {
namespace {

static_assert(std::endian::native == std::endian::little, "the trace is written as in memory");

constexpr std::string_view kHeader("SGTRACE\x01", 8);
constexpr std::size_t kOperationBytes = 9 * 8 + 9 * 4 + 3;
constexpr std::size_t kWriteSoon = std::size_t{256} << 10;  // bytes that do not wait for the delay
constexpr std::size_t kMostHeld = std::size_t{16} << 20;    // bytes at which append() waits
constexpr std::chrono::milliseconds kDelay{20};

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  void string(std::string_view text) {
    out_ += 'S';
    number(static_cast<std::uint32_t>(text.size()));
    out_ += text;
  }

  void operation(const TraceRecord& record, std::uint32_t path, std::uint32_t path2,
                 std::uint32_t phase) {
    out_ += 'O';
    for (std::uint64_t value :
         {record.begin_seq, record.end_seq, record.begin_ns, record.end_ns, record.file,
          record.offset, record.requested, record.returned, record.effective}) {
      number(value);
    }
    for (std::int32_t value :
         {record.caller.rank, record.caller.pid, record.caller.tid, record.attempt, record.error}) {
      number(value);
    }
    for (std::uint32_t value : {record.flags, path, path2, phase}) number(value);
    number(static_cast<std::uint8_t>(record.op));
    number(static_cast<std::uint8_t>(record.caller.relation));
    number(static_cast<std::uint8_t>(record.faulted ? 1 : 0));
  }

 private:
  template <class T>
  void number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }

  std::string& out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }

 private:
  std::string_view bytes_;
};

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

}  // namespace

struct TraceWriter::Impl {
  std::string path;
  int fd = -1;
  std::atomic<std::uint64_t> last_tick{0};

  // Guards all below. Held by append() only to copy a record, never while the file is written.
  std::mutex mutex;
  std::condition_variable work;     // the writer thread waits: something to write, or the end
  std::condition_variable written;  // flush() and a full append() wait
  std::string held;
  std::unordered_map<std::string, std::uint32_t, StringHash, std::equal_to<>> strings;
  std::uint64_t appended = 0;  // bytes
  std::uint64_t on_file = 0;   // bytes
  bool hurry = false;          // flush() waits
  bool ending = false;
  std::optional<Status> failed;  // the first failed write; nothing is written after it
  std::thread thread;

  ~Impl() {
    if (thread.joinable()) {
      {
        const std::lock_guard lock(mutex);
        ending = true;
      }
      work.notify_one();
      thread.join();
    }
    if (fd >= 0) ::close(fd);
  }

  std::uint32_t intern(std::string_view text) {
    if (text.empty()) return 0;
    if (auto found = strings.find(text); found != strings.end()) return found->second;
    const auto id = static_cast<std::uint32_t>(strings.size() + 1);
    strings.emplace(std::string(text), id);
    Encoder(held).string(text);
    return id;
  }

  std::optional<Status> write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return system_error("write", path);
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return std::nullopt;
  }

  void write_loop() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the program's, never this thread's

    std::string writing;
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return ending || !held.empty(); });
      if (held.empty()) return;
      work.wait_for(lock, kDelay, [&] { return ending || hurry || held.size() >= kWriteSoon; });
      writing.clear();
      writing.swap(held);
      const bool skip = failed.has_value();
      lock.unlock();
      std::optional<Status> status;
      if (!skip) status = write_all(writing);
      lock.lock();
      on_file += writing.size();
      if (status) failed = std::move(status);
      hurry = hurry && !held.empty();
      written.notify_all();
    }
  }
};

TraceWriter::TraceWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceWriter::~TraceWriter() = default;

Result<std::unique_ptr<TraceWriter>> TraceWriter::create(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  if (impl->fd < 0) return fail(system_error("open", path));
  if (auto status = impl->write_all(kHeader)) return fail(*std::move(status));
  impl->thread = std::thread([raw = impl.get()] { raw->write_loop(); });
  return std::unique_ptr<TraceWriter>(new TraceWriter(std::move(impl)));
}

std::uint64_t TraceWriter::tick() { return 1 + impl_->last_tick.fetch_add(1); }

void TraceWriter::append(const TraceRecord& record) {
  bool wake = false;
  {
    std::unique_lock lock(impl_->mutex);
    impl_->written.wait(lock, [&] { return impl_->held.size() < kMostHeld; });
    const std::size_t before = impl_->held.size();
    const std::uint32_t path = impl_->intern(record.path);
    const std::uint32_t path2 = impl_->intern(record.path2);
    const std::uint32_t phase = impl_->intern(record.phase);
    Encoder(impl_->held).operation(record, path, path2, phase);
    const std::size_t after = impl_->held.size();
    impl_->appended += after - before;
    wake = before == 0 || (before < kWriteSoon && after >= kWriteSoon);
  }
  if (wake) impl_->work.notify_one();
}

Result<void> TraceWriter::flush() {
  std::unique_lock lock(impl_->mutex);
  const std::uint64_t target = impl_->appended;
  if (impl_->on_file < target) {
    impl_->hurry = true;
    impl_->work.notify_one();
    impl_->written.wait(lock, [&] { return impl_->on_file >= target; });
  }
  if (impl_->failed) return fail(*impl_->failed);
  return {};
}

namespace {

Result<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(system_error("open", path));
  std::string bytes;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  for (;;) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kChunk);
    const ssize_t count = ::read(fd, bytes.data() + size, kChunk);
    const int error = errno;
    bytes.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && error == EINTR) continue;
    if (count <= 0) {
      ::close(fd);
      if (count < 0) return fail(system_error("read", path, error));
      return bytes;
    }
  }
}

// Turns an 'O' payload into a record; false where it holds what no writer writes.
bool decode_operation(std::string_view payload, const std::vector<std::string>& strings,
                      TraceRecord& record) {
  Decoder in(payload);
  for (std::uint64_t* value :
       {&record.begin_seq, &record.end_seq, &record.begin_ns, &record.end_ns, &record.file,
        &record.offset, &record.requested, &record.returned, &record.effective}) {
    *value = in.number<std::uint64_t>();
  }
  for (std::int32_t* value : {&record.caller.rank, &record.caller.pid, &record.caller.tid,
                              &record.attempt, &record.error}) {
    *value = in.number<std::int32_t>();
  }
  record.flags = in.number<std::uint32_t>();
  for (std::string* text : {&record.path, &record.path2, &record.phase}) {
    const auto id = in.number<std::uint32_t>();
    if (id >= strings.size()) return false;
    *text = strings[id];
  }
  const auto op = in.number<std::uint8_t>();
  const auto relation = in.number<std::uint8_t>();
  record.faulted = in.number<std::uint8_t>() != 0;
  if (op >= kOpCount || relation > static_cast<std::uint8_t>(Relation::kChild)) return false;
  record.op = static_cast<Op>(op);
  record.caller.relation = static_cast<Relation>(relation);
  return true;
}

}  // namespace

Result<Trace> read_trace(const std::string& path) {
  SAVEGATE_TRY(const std::string bytes, read_file(path));
  Trace trace;
  if (bytes.size() < kHeader.size() && kHeader.substr(0, bytes.size()) == bytes) {
    trace.cut = true;
    return trace;
  }
  if (std::string_view(bytes).substr(0, kHeader.size()) != kHeader) {
    return fail(invalid("no trace of a version that this savegate reads", path));
  }
  std::vector<std::string> strings = {""};
  std::string_view rest = std::string_view(bytes).substr(kHeader.size());
  while (!rest.empty() && !trace.cut) {
    const char kind = rest.front();
    const std::string_view payload = rest.substr(1);
    if (kind == 'S') {
      const bool has_length = payload.size() >= sizeof(std::uint32_t);
      const std::size_t length = has_length ? Decoder(payload).number<std::uint32_t>() : 0;
      if (!has_length || payload.size() - sizeof(std::uint32_t) < length) {
        trace.cut = true;
      } else {
        strings.emplace_back(payload.substr(sizeof(std::uint32_t), length));
        rest = payload.substr(sizeof(std::uint32_t) + length);
      }
    } else if (kind == 'O' && payload.size() < kOperationBytes) {
      trace.cut = true;
    } else if (TraceRecord record; kind == 'O' && decode_operation(payload, strings, record)) {
      trace.records.push_back(std::move(record));
      rest = payload.substr(kOperationBytes);
    } else {
      Status status = invalid("damaged trace: no record begins here", path);
      status.offset = bytes.size() - rest.size();
      return fail(std::move(status));
    }
  }
  // Two threads may append in the other order than they ticked.
  std::stable_sort(
      trace.records.begin(), trace.records.end(),
      [](const TraceRecord& a, const TraceRecord& b) { return a.end_seq < b.end_seq; });
  return trace;
}

}  // namespace savegate::faults
