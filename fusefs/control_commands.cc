#include "fusefs/control_commands.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "faults/json_text.h"

namespace savegate::fusefs {

using nlohmann::ordered_json;

namespace {

constexpr std::array<std::string_view, 5> kMarkKinds = {"enter", "leave", "point",
                                                        "collective_enter", "collective_exit"};

constexpr std::size_t kFiredAtOnce = 10'000;  // records in a reply
constexpr std::size_t kQuoted = 200;          // bytes of a line that is no command

std::string print(const ordered_json& json) { return faults::json_text(json); }

std::string success() { return R"({"ok":true})"; }

std::string refusal(const std::string& why) {
  return print(ordered_json{{"ok", false}, {"error", why}});
}

std::string result(const Result<void>& done) {
  return done ? success() : refusal(done.error().to_string());
}

// "" where the key is absent or no string.
std::string text(const ordered_json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t number(const ordered_json& json, const char* key, std::int64_t otherwise) {
  auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

// Whether a rule misses operations of the file, which was opened before that rule or under another
// name.
bool misses(FileSystem& fs, const OpenFiles::File& file) {
  const auto rules = fs.flow.rules_of(*file.node);
  if (!rules) return false;
  for (faults::Op op : {faults::Op::kRead, faults::Op::kWrite, faults::Op::kClose}) {
    if ((file.unseen & op_bit(op)) != 0 && rules->can_match(op)) return true;
  }
  return false;
}

// How each open file is read and written.
ordered_json files_json(FileSystem& fs) {
  ordered_json files = ordered_json::array();
  for (const auto& file : fs.open_files.files()) {
    ordered_json entry = {{"path", fs.inodes.path(*file.node)}};
    if (file.passthrough > 0) entry["passthrough"] = file.passthrough;
    if (file.other > 0) {
      entry["daemon"] = file.other;
      entry["why"] = file.why;
    }
    if (fs.flow.armed() && misses(fs, file)) entry["missed"] = "a rule acts on later opens only";
    files.push_back(std::move(entry));
  }
  return files;
}

std::string status(FileSystem& fs, const std::string& mount_point) {
  const std::string why_not = fs.open_files.why_not();
  return print(ordered_json{{"ok", true},
                            {"mount", mount_point},
                            {"held", fs.stalls.held()},
                            {"armed", fs.flow.armed()},
                            {"tracing", fs.flow.tracing()},
                            {"fired", fs.recorder.fired_count()},
                            {"passthrough", why_not.empty() ? "yes" : "no: " + why_not},
                            {"files", files_json(fs)}});
}

std::string statistics(FileSystem& fs) {
  ordered_json operations = ordered_json::object();
  for (int i = 0; i < faults::kOpCount; i++) {
    const auto op = static_cast<faults::Op>(i);
    if (auto count = fs.recorder.counted(op)) operations[std::string(op_name(op))] = count;
  }
  ordered_json rules = ordered_json::array();
  for (const auto& count : fs.injector.counts()) {
    rules.push_back({{"name", count.name},
                     {"required", count.required},
                     {"candidates", count.candidates},
                     {"hits", count.hits}});
  }
  return print(ordered_json{{"ok", true}, {"operations", operations}, {"rules", rules}});
}

std::string fired(const Recorder& recorder, std::size_t first) {
  const bool over = recorder.fired_is_over();  // asked first: none comes between
  const auto lines = recorder.fired_from(first, kFiredAtOnce);
  // The records are JSON already.
  std::string reply = R"({"ok":true,"records":[)";
  for (std::size_t i = 0; i < lines.size(); i++) {
    if (i != 0) reply += ',';
    reply += lines[i];
  }
  return reply + R"(],"next":)" + std::to_string(first + lines.size()) + R"(,"over":)" +
         (over ? "true}" : "false}");
}

void fired(FileSystem& fs, const ordered_json& json, const ControlRequest& request) {
  const std::int64_t from = number(json, "from", 0);
  const auto first = from < 0 ? std::size_t{0} : static_cast<std::size_t>(from);
  const auto wait = json.find("wait");
  if (wait == json.end() || !wait->is_boolean() || !wait->get<bool>()) {
    request.reply(fired(fs.recorder, first));
    return;
  }
  request.linger();
  const std::uint64_t waiter = fs.recorder.await_fired(
      first,
      [&recorder = fs.recorder, first, reply = request.reply] { reply(fired(recorder, first)); });
  request.on_hangup([&recorder = fs.recorder, waiter] { recorder.forget_waiter(waiter); });
}

std::string arm(FileSystem& fs, const ordered_json& json) {
  if (!json.contains("plan") || !json["plan"].is_string()) {
    return refusal("arm: the key `plan` must be a plan's text");
  }
  auto plan = faults::parse_plan(text(json, "plan"), "control");
  if (!plan) return refusal(plan.error().to_string());
  auto armed = fs.arm(*plan, json.contains("defer") && json["defer"] == true);
  if (!armed) return refusal(armed.error().to_string());
  if (armed->empty()) return success();
  return print(ordered_json{{"ok", true}, {"deferred", *armed}});
}

void mark(FileSystem& fs, const ordered_json& json, const ControlRequest& request) {
  const std::string kind = text(json, "kind");
  faults::Caller caller = fs.attribution.caller(request.peer);
  const std::int64_t asked = number(json, "rank", caller.rank);
  if (asked < -1 || asked > std::numeric_limits<int>::max()) {
    request.reply(refusal("mark: no such rank: " + std::to_string(asked)));
    return;
  }
  const auto rank = static_cast<int>(asked);
  if (rank >= 0) caller = fs.attribution.caller_as(request.peer, rank);
  Mark mark;
  mark.caller = caller;
  mark.kind = kind;
  mark.name = text(json, "name");
  mark.parked = [&fs, on_hangup = request.on_hangup](StallId id) {
    on_hangup([&fs, id] { fs.stalls.interrupt(id); });
  };
  mark.gone = request.gone;
  mark.replied = [reply = request.reply](int error) {
    reply(error == 0 ? success() : refusal(errno_name(error)));
  };
  fs.flow.mark(std::move(mark));
}

// A process that cannot be looked at just now holds up its own mark, and not all other commands.
void post_mark(FileSystem& fs, const ordered_json& json, const ControlRequest& request) {
  const std::string kind = text(json, "kind");
  if (std::find(kMarkKinds.begin(), kMarkKinds.end(), kind) == kMarkKinds.end()) {
    request.reply(refusal("mark: unknown kind \"" + kind + "\""));
    return;
  }
  fs.marks.post([&fs, json, request] { mark(fs, json, request); });
}

}  // namespace

ControlCommands::ControlCommands(FileSystem& file_system, std::string mount_point,
                                 std::function<void()> stop)
    : fs_(file_system), mount_point_(std::move(mount_point)), stop_(std::move(stop)) {}

void ControlCommands::handle(const ControlRequest& request) {
  const auto json = ordered_json::parse(request.line, nullptr, /*allow_exceptions=*/false);
  const std::string command = json.is_object() ? text(json, "cmd") : std::string();
  if (command == "mark") {
    post_mark(fs_, json, request);
  } else if (command == "status") {
    request.reply(status(fs_, mount_point_));
  } else if (command == "statistics") {
    request.reply(statistics(fs_));
  } else if (command == "fired") {
    fired(fs_, json, request);
  } else if (command == "arm") {
    request.reply(arm(fs_, json));
  } else if (command == "disarm") {
    auto armed = fs_.arm({}, false);
    request.reply(armed ? success() : refusal(armed.error().to_string()));
  } else if (command == "release") {
    const std::string rule = text(json, "rule");
    const auto released = fs_.stalls.release(rule) + fs_.views.release(rule);
    request.reply(print(ordered_json{{"ok", true}, {"released", released}}));
  } else if (command == "flush") {
    request.reply(result(fs_.recorder.flush()));
  } else if (command == "stop") {
    request.reply(success());
    stop_();
  } else {
    request.reply(refusal("no such command: " + request.line.substr(0, kQuoted)));
  }
}

}  // namespace savegate::fusefs
