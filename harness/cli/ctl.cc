#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "faults/json_text.h"
#include "faults/plan.h"
#include "faults/toml.h"
#include "fusefs/control.h"
#include "harness/cli/commands.h"
#include "harness/cli/control_socket.h"
#include "harness/run/files.h"

namespace savegate::cli {
namespace {

using nlohmann::json;

Result<json> request_for(const std::vector<std::string>& words) {
  const std::string& command = words.front();
  const std::size_t arguments = words.size() - 1;
  const auto takes = [&](std::size_t least, std::size_t most,
                         std::string_view usage) -> Result<void> {
    if (arguments >= least && arguments <= most) return {};
    return fail(invalid(fmt::format("usage: savegate ctl MOUNT {}", usage)));
  };
  if (command == "status" || command == "statistics" || command == "disarm" || command == "stop") {
    SAVEGATE_CHECK(takes(0, 0, command));
    return json{{"cmd", command}};
  }
  if (command == "arm") {
    SAVEGATE_CHECK(takes(1, 1, "arm PLAN.toml"));
    SAVEGATE_TRY(std::string plan, harness::read_file(words[1]));
    SAVEGATE_CHECK(faults::parse_plan(plan, words[1]));  // errors with file and line, not from afar
    return json{{"cmd", command}, {"plan", plan}};
  }
  if (command == "release") {
    SAVEGATE_CHECK(takes(0, 1, "release [RULE]"));
    json request = {{"cmd", command}};
    if (arguments == 1) request["rule"] = words[1];
    return request;
  }
  if (command == "fired") {
    SAVEGATE_CHECK(takes(0, 0, "fired [--follow]"));
    return json{{"cmd", command}};
  }
  if (command == "mark") {
    SAVEGATE_CHECK(takes(3, 3, "mark RANK enter|leave|point NAME"));
    int rank = 0;
    const char* end = words[1].data() + words[1].size();
    const auto read = std::from_chars(words[1].data(), end, rank);
    if (read.ec != std::errc() || read.ptr != end)
      return fail(invalid("`" + words[1] + "` is no rank"));
    return json{{"cmd", command}, {"rank", rank}, {"kind", words[2]}, {"name", words[3]}};
  }
  return fail(invalid("unknown word `" + command + "`" +
                      faults::did_you_mean(command, {"status", "statistics", "arm", "disarm",
                                                     "release", "fired", "mark", "stop"})));
}

bool is_mounted(const std::string& mount_point) {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);)
    if (line.find(" " + mount_point + " ") != std::string::npos) return true;
  return false;
}

// `stop` is answered before the daemon unmounts; whoever asked for it wants the mount gone.
Result<void> wait_until_unmounted(const std::string& mount_point) {
  constexpr int kPatienceMs = 10'000;
  std::error_code error;
  const std::string path =
      std::filesystem::absolute(mount_point, error).lexically_normal().string();
  const int changes = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);  // POLLPRI: mounts changed
  if (changes < 0) return fail(system_error("open", "/proc/self/mounts"));
  int ready = 1;
  while (ready > 0 && is_mounted(path)) {
    pollfd waiting{changes, POLLPRI, 0};
    ready = poll(&waiting, 1, kPatienceMs);
  }
  close(changes);
  if (ready > 0) return {};
  return fail(unavailable("still mounted 10 s after it was told to stop; try umount -l", path));
}

// What a refusal says, without the protocol's wrapping.
Status refusal(Status status) {
  const json answer = json::parse(status.text, nullptr, false);
  if (answer.is_object() && answer.contains("error") && answer["error"].is_string())
    status.text = answer["error"].get<std::string>();
  return status;
}

Result<json> ask(fusefs::ControlClient& client, const json& request) {
  auto reply = client.call(faults::json_text(request));
  if (!reply) return fail(refusal(reply.error()));
  json answer = json::parse(*reply, nullptr, false);
  if (answer.is_discarded()) return fail(internal_error("the reply is no JSON: " + *reply));
  return answer;
}

// Ctrl-C ends a follower between two records, never within one.
void print_records(const json& records, const sigset_t& interrupts) {
  sigset_t before;
  sigprocmask(SIG_BLOCK, &interrupts, &before);
  for (const json& record : records) fmt::print("{}\n", faults::json_text(record));
  std::fflush(stdout);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

Result<void> show_fired(fusefs::ControlClient& client, bool follow) {
  sigset_t interrupts;
  sigemptyset(&interrupts);
  for (int signal : {SIGINT, SIGTERM}) sigaddset(&interrupts, signal);
  json request = {{"cmd", "fired"}, {"from", 0}, {"wait", follow}};
  for (;;) {
    SAVEGATE_TRY(const json answer, ask(client, request));
    print_records(answer["records"], interrupts);
    if (answer["records"].empty() && (!follow || answer["over"])) return {};
    request["from"] = answer["next"];
  }
}

Result<void> call(const std::string& mount_or_socket, const CtlRequest& asked) {
  const std::string& command = asked.words.front();
  SAVEGATE_TRY(json request, request_for(asked.words));
  if (asked.follow && command != "fired") return fail(invalid("--follow belongs to `fired`"));
  if (asked.defer && command != "arm") return fail(invalid("--defer belongs to `arm`"));
  if (asked.defer) request["defer"] = true;
  std::error_code ignored;
  const bool is_socket = std::filesystem::is_socket(mount_or_socket, ignored);
  std::string socket = mount_or_socket;
  if (!is_socket) {
    socket = default_control_socket(mount_or_socket);
    SAVEGATE_CHECK(check_private(std::filesystem::path(socket).parent_path()));
  }
  auto client = fusefs::ControlClient::connect(socket);
  if (!client)
    return fail(unavailable("nothing answers for " + mount_or_socket +
                                "; is it mounted by `savegate mount`? (" +
                                client.error().to_string() + ")",
                            socket, client.error().error));
  if (command == "fired") return show_fired(*client, asked.follow);
  SAVEGATE_TRY(json answer, ask(*client, request));
  if (command == "stop" && !is_socket) return wait_until_unmounted(mount_or_socket);
  answer.erase("ok");
  if (!answer.empty()) fmt::print("{}\n", faults::json_text(answer, 2));
  return {};
}

}  // namespace

int ctl_command(const std::string& mount_or_socket, const CtlRequest& request) {
  auto called = call(mount_or_socket, request);
  return called ? kPassed : report_error(called.error());
}

}  // namespace savegate::cli
