#include <fmt/format.h>

#include <filesystem>
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

Result<void> call(const std::string& mount_or_socket, const std::vector<std::string>& words) {
  SAVEGATE_TRY(json request, request_for(words));
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
  answer.erase("ok");
  if (!answer.empty()) fmt::print("{}\n", answer.dump(2));
  return {};
}

}  // namespace

int ctl_command(const std::string& mount_or_socket, const std::vector<std::string>& words) {
  auto called = call(mount_or_socket, words);
  return called ? kPassed : report_error(called.error());
}

}  // namespace savegate::cli
