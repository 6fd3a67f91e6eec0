#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "faults/plan.h"
#include "faults/toml.h"
#include "fusefs/control.h"
#include "harness/cli/commands.h"
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
    SAVEGATE_CHECK(takes(0, 0, "fired"));
    return json{{"cmd", command}, {"from", 0}};
  }
  if (command == "mark") {
    SAVEGATE_CHECK(takes(3, 3, "mark RANK enter|leave|point NAME"));
    int rank = 0;
    try {
      rank = std::stoi(words[1]);
    } catch (const std::exception&) {
      return fail(invalid("`" + words[1] + "` is no rank"));
    }
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

Result<void> call(const std::string& mount_or_socket, const std::vector<std::string>& words,
                  bool defer) {
  SAVEGATE_TRY(json request, request_for(words));
  if (defer && words.front() != "arm") return fail(invalid("--defer belongs to `arm`"));
  if (defer) request["defer"] = true;
  std::error_code ignored;
  const bool is_socket = std::filesystem::is_socket(mount_or_socket, ignored);
  const std::string socket = is_socket ? mount_or_socket : default_control_socket(mount_or_socket);
  auto client = fusefs::ControlClient::connect(socket);
  if (!client)
    return fail(unavailable("nothing answers for " + mount_or_socket +
                                "; is it mounted by `savegate mount`? (" +
                                client.error().to_string() + ")",
                            socket, client.error().error));
  SAVEGATE_TRY(std::string reply, client->call(request.dump()));
  json answer = json::parse(reply, nullptr, false);
  if (answer.is_discarded()) return fail(internal_error("the reply is no JSON: " + reply));
  if (words.front() == "fired") {
    for (const json& record : answer["records"]) fmt::print("{}\n", record.dump());
    return {};
  }
  if (words.front() == "stop" && !is_socket) return wait_until_unmounted(mount_or_socket);
  answer.erase("ok");
  if (!answer.empty()) fmt::print("{}\n", answer.dump(2));
  return {};
}

}  // namespace

int ctl_command(const std::string& mount_or_socket, const std::vector<std::string>& words,
                bool defer) {
  auto called = call(mount_or_socket, words, defer);
  return called ? kPassed : report_error(called.error());
}

}  // namespace savegate::cli
