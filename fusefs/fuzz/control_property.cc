#include "fusefs/fuzz/control_property.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

namespace savegate::fusefs {
namespace {

constexpr int kInputsOfOne = 500;  // what ranks and plans leave behind stays bounded
constexpr std::size_t kDescriptors = 256;
constexpr std::chrono::seconds kPatience{20};  // marks are answered by threads of their own

struct Answers {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
  std::string last;
  std::function<void()> hangup;
};

std::string broken_by_answer(const std::string& line, const std::string& answer) {
  const auto json = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("ok") || !json["ok"].is_boolean())
    return "no answer of the protocol to `" + line + "`: " + answer;
  if (answer.find('\n') != std::string::npos)
    return "an answer of several lines to `" + line + "`: " + answer;
  if (!json["ok"].get<bool>() && !json.contains("error"))
    return "a refusal without a reason for `" + line + "`: " + answer;
  return "";
}

}  // namespace

ControlProperty::ControlProperty(std::function<void()> between) : between_(std::move(between)) {
  folder_ = std::filesystem::temp_directory_path().string() + "/control-fuzz-XXXXXX";
  if (::mkdtemp(folder_.data()) == nullptr) std::abort();
  renew();
}

ControlProperty::~ControlProperty() {
  commands_.reset();
  fs_.reset();
  ::kill(peer_, SIGKILL);
  ::waitpid(peer_, nullptr, 0);
  ::rmdir(folder_.c_str());
}

void ControlProperty::renew() {
  inputs_ = 0;
  commands_.reset();
  fs_.reset();
  if (peer_ > 0) {
    ::kill(peer_, SIGKILL);
    ::waitpid(peer_, nullptr, 0);
    between_();
  }
  peer_ = ::fork();
  if (peer_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  recorder_ = std::move(*Recorder::create("", ""));
  const int backing = ::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  fs_ = std::make_unique<FileSystem>(faults::Plan{}, faults::Layout{}, 1, *recorder_, backing,
                                     ::getpid(), kDescriptors);
  fs_->inodes.set_root(::dup(backing));
  commands_ = std::make_unique<ControlCommands>(*fs_, folder_, [this] { stops_++; });
}

std::string ControlProperty::broken_by_line(const std::string& line) {
  auto answers = std::make_shared<Answers>();
  ControlRequest request;
  request.line = line;
  request.peer = peer_;
  request.reply = [answers](const std::string& answer) {
    const std::lock_guard lock(answers->mutex);
    answers->count++;
    answers->last = answer;
    answers->changed.notify_all();
  };
  request.on_hangup = [answers](std::function<void()> what) {
    const std::lock_guard lock(answers->mutex);
    answers->hangup = std::move(what);
    answers->changed.notify_all();
  };
  request.gone = [] { return false; };
  request.linger = [] {};
  commands_->handle(request);

  std::unique_lock lock(answers->mutex);
  answers->changed.wait_for(lock, kPatience,
                            [&] { return answers->count > 0 || answers->hangup != nullptr; });
  if (answers->count > 1) return "answered twice: `" + line + "`";
  if (answers->count == 1) return broken_by_answer(line, answers->last);
  const auto hangup = std::exchange(answers->hangup, nullptr);
  lock.unlock();
  if (!hangup && fs_->stalls.held() == 0) return "never answered, nor held: `" + line + "`";
  if (hangup) hangup();
  fs_->stalls.release("");
  return "";
}

std::string ControlProperty::broken_by(const std::string& lines) {
  if (++inputs_ > kInputsOfOne) renew();
  std::string broken;
  for (std::size_t at = 0; at < lines.size() && broken.empty();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    broken = broken_by_line(lines.substr(at, end - at));
    at = end + 1;
  }
  if (broken.empty()) broken = broken_by_line(R"({"cmd":"disarm"})");
  return broken;
}

}  // namespace savegate::fusefs
