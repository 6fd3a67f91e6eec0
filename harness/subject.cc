#include "harness/subject.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "faults/json_text.h"
#include "faults/plan.h"
#include "faults/toml.h"
#include "harness/time_limit.h"

namespace savegate::harness {

namespace {

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// Of "torchrun OPTION… train.py …" the options go to the subject, the script stays.
Result<void> split_launcher(std::vector<std::string>& command, Subject& subject) {
  const std::string name = file_name(command.front());
  if (name == "mpirun" || name == "mpiexec" || name == "srun")
    return fail(invalid("where " + name + "'s options end is not known: say --launcher " +
                        (name == "srun" ? "srun" : "mpirun") + " -- PROGRAM ARGUMENT…"));
  if (name != "torchrun") return {};
  const auto script = std::find_if(command.begin(), command.end(),
                                   [](const std::string& word) { return word.ends_with(".py"); });
  if (script == command.end())
    return fail(
        invalid("no script (*.py) among the arguments of torchrun: say --launcher torchrun "
                "-- PROGRAM ARGUMENT…"));
  subject.launcher = name;
  subject.launcher_options.assign(command.begin() + 1, script);
  command.erase(command.begin(), script);
  subject.command = {"{python}"};
  return {};
}

// subject.toml, where the command is stored, is UTF-8: another word in its place would be another
// program's when it is run again.
Result<void> check_utf8(const std::vector<std::string>& command) {
  for (const std::string& word : command)
    if (nlohmann::json::parse(faults::json_text(nlohmann::json(word))) != word)
      return fail(invalid("the command's word `" + word +
                          "` is no UTF-8: rename the file, or name it in a script"));
  return {};
}

std::string read_step_pattern(faults::TomlReader& table) {
  constexpr std::string_view kKey = "step_pattern";
  constexpr std::string_view kExample = ", such as \"step_([0-9]+)\"";
  std::string pattern = table.string(kKey);
  if (pattern.empty()) return pattern;
  try {
    if (std::regex(pattern, std::regex::ECMAScript).mark_count() == 0)
      table.error_at(kKey,
                     "`" + pattern + "` has no group, which is the step" + std::string(kExample));
  } catch (const std::regex_error& error) {
    table.error_at(kKey, "`" + pattern + "` is no regular expression (" + error.what() + ")" +
                             std::string(kExample));
  }
  return pattern;
}

}  // namespace

const std::vector<std::string>& device_names() {
  static const std::vector<std::string> kNames = {"cpu", "cuda", "simulated"};
  return kNames;
}

const std::vector<std::string>& state_kinds() {
  static const std::vector<std::string> kKinds = {"parameter", "optimizer", "scheduler", "rng",
                                                  "counter"};
  return kKinds;
}

Result<Subject> bare_subject(std::vector<std::string> command) {
  SAVEGATE_CHECK(check_utf8(command));
  Subject subject;
  SAVEGATE_CHECK(split_launcher(command, subject));
  subject.name = file_name(command.front());
  subject.summary = "a command without a subject.toml";
  subject.devices = {"cpu", "cuda"};
  subject.events = false;
  for (const std::string& word : command) {
    std::string escaped;  // the words are the user's own, braces and all
    for (char c : word) escaped += c == '{' ? "{{" : std::string(1, c);
    subject.command.push_back(std::move(escaped));
  }
  // The escapes of JSON's strings are those of TOML's.
  subject.toml =
      "name = " + faults::json_text(nlohmann::json(subject.name)) +
      "\nsummary = " + faults::json_text(nlohmann::json(subject.summary)) +
      "\ncommand = " + faults::json_text(nlohmann::json(subject.command)) +
      "\nevents = false\nlauncher = " + faults::json_text(nlohmann::json(subject.launcher)) +
      "\nlauncher_options = " + faults::json_text(nlohmann::json(subject.launcher_options)) + "\n";
  return subject;
}

Result<Subject> load_subject(const std::string& toml_path) {
  std::ifstream file(toml_path);
  if (!file) return fail(invalid("cannot read the subject", toml_path));
  std::ostringstream text;
  text << file.rdbuf();
  SAVEGATE_TRY(faults::TomlDocument document, faults::parse_toml(text.str(), toml_path));
  faults::TomlReader root = document.root();

  Subject subject;
  subject.toml = text.str();
  subject.directory = std::filesystem::absolute(toml_path).parent_path().string();
  subject.name = root.required_string("name");
  subject.summary = root.string("summary");
  subject.command = root.strings("command");
  if (subject.command.empty()) root.error_at("command", "a subject needs a command");
  subject.reader = root.strings("reader");
  if (root.has("devices")) subject.devices = root.words("devices", device_names());
  for (std::int64_t world : root.integers("worlds", 1, 4096))
    subject.worlds.push_back(static_cast<int>(world));
  subject.on_save_failure = root.word("on_save_failure", {"exit", "continue"}, "exit");
  if (auto layout = root.table("layout")) subject.layout = faults::read_layout(*layout);
  subject.step_pattern = read_step_pattern(root);
  subject.shards_per_rank = static_cast<int>(root.integer("shards_per_rank", 1, 0, 1 << 20));
  for (std::int64_t rank : root.integers("writers", 0, 4095))
    subject.writers.push_back(static_cast<int>(rank));
  subject.records = root.strings("records");
  subject.keep_every = root.integer("keep_every", 0, 0, std::numeric_limits<std::int32_t>::max());
  if (auto claims = root.table("claims")) {
    if (claims->has("state")) subject.claims.state = claims->words("state", state_kinds());
    subject.claims.rng_streams = static_cast<int>(claims->integer("rng_streams", 0, 0, 1 << 20));
    const std::vector<std::string>& state = subject.claims.state;
    if (subject.claims.rng_streams > 0 &&
        std::find(state.begin(), state.end(), "rng") == state.end())
      claims->error_at("rng_streams", "`state` does not name `rng`");
    subject.claims.deterministic = claims->boolean("deterministic", false);
    subject.claims.durable = claims->boolean("durable", false);
    subject.claims.async = claims->boolean("async", false);
    subject.claims.rotation = claims->boolean("rotation", false);
    subject.claims.exports = claims->boolean("exports", false);
    subject.claims.fallback = claims->boolean("fallback", false);
  }
  for (auto& [name, value] : root.string_map("variables")) subject.variables[name] = value;
  for (auto& [name, value] : root.string_map("changes")) {
    if (value.find('=') == std::string::npos || value.starts_with('='))
      root.error_at("changes", "`" + value + "` is not \"NAME=value\"");
    subject.changes[name] = value;
  }
  subject.events = root.boolean("events", true);
  subject.launcher =
      root.word("launcher", {"direct", "torchrun", "mpirun", "srun"}, subject.launcher);
  subject.launcher_options = root.strings_or_none("launcher_options");
  subject.fork_point = root.boolean("fork_point", false);
  subject.start_ns = read_time_limit(root, "start", subject.start_ns);
  if (auto needs = root.table("needs")) {
    subject.needs_python = needs->strings("python");
  }
  SAVEGATE_CHECK(root.finish());
  return subject;
}

std::size_t Subject::shards_in(int world) const {
  if (layout.shard.empty()) return 0;
  const auto ranks = writers.empty() ? world
                                     : std::count_if(writers.begin(), writers.end(),
                                                     [&](int rank) { return rank < world; });
  return static_cast<std::size_t>(ranks) * static_cast<std::size_t>(shards_per_rank);
}

Result<std::vector<std::string>> expand_command(const std::vector<std::string>& command,
                                                const std::map<std::string, std::string>& values) {
  std::vector<std::string> expanded;
  for (const std::string& word : command) {
    std::string out;
    for (std::size_t at = 0; at < word.size();) {
      if (word.compare(at, 2, "{{") == 0) {
        out += '{';
        at += 2;
        continue;
      }
      const std::size_t close = word[at] == '{' ? word.find('}', at) : std::string::npos;
      if (close == std::string::npos) {
        out += word[at++];
        continue;
      }
      const std::string name = word.substr(at + 1, close - at - 1);
      const auto value = values.find(name);
      if (value == values.end()) {
        std::vector<std::string> known;
        known.reserve(values.size());
        for (const auto& [key, unused] : values) known.push_back(key);
        return fail(invalid("unknown variable {" + name + "} in the command `" + word + "`" +
                            faults::did_you_mean(name, known)));
      }
      out += value->second;
      at = close + 1;
    }
    expanded.push_back(std::move(out));
  }
  return expanded;
}

}  // namespace savegate::harness
