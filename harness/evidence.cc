#include "harness/evidence.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "harness/manifest.h"
#include "reports/json_fields.h"

namespace savegate::harness {
namespace {

namespace fs = std::filesystem;

// Reads the files of one scenario and collects what is wrong with them.
class Loader {
 public:
  explicit Loader(std::string directory) : directory_(std::move(directory)) {}

  Result<Evidence> load() {
    SAVEGATE_TRY(const std::string scenario, read("scenario.json"));
    SAVEGATE_TRY(evidence_.scenario, scenario_from_json(scenario));
    SAVEGATE_TRY(evidence_.subject, load_subject(directory_ + "/subject.toml"));
    evidence_.problems = check_manifest(directory_);
    load_provenance();
    for (std::size_t i = 0; i < evidence_.scenario.lives.size(); ++i) {
      const std::string life = fmt::format("life-{}", i + 1);
      if (!fs::is_directory(directory_ + "/" + life)) break;  // it was never run
      load_life(life, evidence_.scenario.lives[i]);
    }
    return std::move(evidence_);
  }

 private:
  Result<std::string> read(const std::string& path) const {
    std::ifstream file(directory_ + "/" + path, std::ios::binary);
    if (!file) return fail(system_error("open", path));
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (file.bad()) return fail(system_error("read", path));
    return text;
  }

  void problem(const Status& status) { evidence_.problems.push_back(status.to_string()); }
  void problem(const std::string& path, const Status& status) {
    evidence_.problems.push_back(path + ": " + status.to_string());
  }

  void load_provenance() {
    const auto text = read("provenance.json");
    if (!text) return problem(text.error());
    const auto json = reports::parse_json(*text, "provenance.json");
    if (!json) return problem(json.error());
    for (const auto& [name, value] : json->items()) {
      if (value.is_string()) {
        evidence_.provenance.emplace(name, value.get<std::string>());
      } else {
        evidence_.problems.push_back("provenance.json: `" + name + "` is no string");
      }
    }
  }

  // Calls `take` with each whole line; its error is a problem at that line.
  void for_each_line(const std::string& path,
                     const std::function<Result<void>(const std::string&)>& take) {
    const auto text = read(path);
    if (!text) return problem(text.error());
    int number = 0;
    for (std::size_t begin = 0; begin < text->size();) {
      const std::size_t end = text->find('\n', begin);
      ++number;
      if (end == std::string::npos) {
        evidence_.problems.push_back(fmt::format("{}:{}: cut within the line", path, number));
        return;
      }
      const auto taken = take(text->substr(begin, end - begin));
      if (!taken) problem(fmt::format("{}:{}", path, number), taken.error());
      begin = end + 1;
    }
  }

  void load_life(const std::string& name, const LifeSpec& spec) {
    Life life;
    life.spec = spec;
    const auto text = read(name + "/life.json");
    if (!text) return problem(text.error());
    auto record = life_from_json(*text);
    if (!record) return problem(name + "/life.json", record.error());
    life.record = std::move(*record);

    for (int rank = 0; rank < evidence_.scenario.world; ++rank) {
      const std::string path = fmt::format("{}/events/rank-{}.jsonl", name, rank);
      life.events.push_back(read_events(directory_ + "/" + path, path));
      const std::string log = fmt::format("{}/logs/rank-{}.log", name, rank);
      note_lost_events(path, log, life.events.back());
      life.last_words.push_back(last_line(log));
    }
    for_each_line(name + "/fired.jsonl", [&](const std::string& line) -> Result<void> {
      SAVEGATE_TRY(auto fired, faults::fired_from_json_line(line));
      life.fired.push_back(std::move(fired));
      return {};
    });
    // A reader that was not there or failed says so in the life's record.
    if (fs::exists(directory_ + "/" + name + "/checkpoints.jsonl")) {
      for_each_line(name + "/checkpoints.jsonl", [&](const std::string& line) -> Result<void> {
        SAVEGATE_TRY(auto checkpoint, checkpoint_from_json(line));
        life.checkpoints.push_back(std::move(checkpoint));
        return {};
      });
    }
    load_memory(name + "/memory.jsonl", life);
    load_trace(name + "/trace.bin", life);
    evidence_.lives.push_back(std::move(life));
  }

  // An instrument that cannot write events can only print that, and leave a file that says so: that
  // the file is there is enough, for the disk may have been full.
  void note_lost_events(const std::string& events_path, const std::string& log_path,
                        EventLog& events) {
    const std::string lost_path = events_path + std::string(kLostSuffix);
    if (std::ifstream lost(directory_ + "/" + lost_path); lost) {
      std::string reason;
      std::getline(lost, reason);
      events.errors.push_back(fmt::format("{}: events lost: {}", lost_path, reason));
    }
    std::ifstream log(directory_ + "/" + log_path);
    std::string line;
    for (int number = 1; std::getline(log, line); ++number) {
      if (line.find(kEventsLost) == std::string::npos) continue;
      events.errors.push_back(fmt::format("{}:{}: {}", log_path, number, line));
      return;
    }
  }

  // As in Life::last_words.
  std::string last_line(const std::string& path) const {
    constexpr std::size_t kQuoted = 400;  // bytes
    std::ifstream log(directory_ + "/" + path);
    std::string last;
    for (std::string line; std::getline(log, line);) {
      if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
    }
    return last.empty() ? "" : fmt::format("{}: {}", path, last.substr(0, kQuoted));
  }

  void load_memory(const std::string& path, Life& life) {
    if (!fs::exists(directory_ + "/" + path)) return;
    life.memory.emplace();
    for_each_line(path, [&](const std::string& line) -> Result<void> {
      SAVEGATE_TRY(auto record, parse_memory_record(line));
      life.memory->push_back(std::move(record));
      return {};
    });
  }

  void load_trace(const std::string& path, Life& life) {
    auto trace = faults::read_trace(directory_ + "/" + path);
    if (!trace) return problem(path, trace.error());
    if (trace->cut) evidence_.problems.push_back(path + ": cut within a record");
    if (trace->records.size() != life.record.trace_records) {
      evidence_.problems.push_back(fmt::format("{}: {} records, but {} were collected", path,
                                               trace->records.size(), life.record.trace_records));
    }
    life.trace = std::move(*trace);
  }

  std::string directory_;
  Evidence evidence_;
};

}  // namespace

Result<Evidence> load_evidence(const std::string& scenario_directory) {
  return Loader(scenario_directory).load();
}

}  // namespace savegate::harness
