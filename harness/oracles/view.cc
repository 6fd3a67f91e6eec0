#include "harness/oracles/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/oracles/death.h"

namespace savegate::harness {
namespace {

CallState state_of(const SaveCall& call, bool async) {
  if (call.durable != nullptr) {
    return call.durable->ok ? CallState::kSucceeded : CallState::kFailed;
  }
  if (call.end == nullptr) return CallState::kUnfinished;
  if (!call.end->ok) return CallState::kFailed;
  return async ? CallState::kUnfinished : CallState::kSucceeded;
}

// The saves of one rank, in order.
std::vector<SaveCall> calls_of(const EventLog& log, int rank) {
  std::vector<SaveCall> calls;
  for (const Event& event : log.events) {
    if (event.kind == EventKind::kSaveBegin) {
      calls.push_back({.rank = rank, .begin = &event});
      continue;
    }
    if (event.kind != EventKind::kSaveEnd && event.kind != EventKind::kDurable) continue;
    const auto call = std::find_if(calls.rbegin(), calls.rend(), [&](const SaveCall& candidate) {
      return candidate.begin != nullptr && candidate.begin->step == event.step;
    });
    if (call == calls.rend()) continue;  // a claim about a save that never began: judged by C12
    (event.kind == EventKind::kSaveEnd ? call->end : call->durable) = &event;
  }
  return calls;
}

bool acted_on(const faults::FiredRecord& fired, int rank) {
  if (fired.action.find(" child") != std::string::npos) return false;
  return fired.action.find(" job") != std::string::npos || fired.caller.rank == rank;
}

std::string errno_text(int error) { return error == 0 ? "ok" : savegate::errno_name(error); }

}  // namespace

const SaveCall* SaveGroup::call_of(int rank) const {
  for (const SaveCall& call : calls) {
    if (call.rank == rank) return &call;
  }
  return nullptr;
}

View::View(const Evidence& evidence) : evidence_(evidence) {
  const std::string& pattern = evidence.subject.step_pattern;
  if (!pattern.empty()) {
    try {
      step_pattern_.emplace(pattern, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error&) {
      step_pattern_.reset();  // then no path has a step, and oracles that need one skip
    }
  }
  for (const Life& life : evidence.lives) collect(life);
}

void View::collect(const Life& life) {
  std::map<std::pair<std::int64_t, int>, SaveGroup> found;
  for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
    std::map<std::int64_t, int> occurrences;
    for (SaveCall& call : calls_of(life.events[rank], static_cast<int>(rank))) {
      const std::int64_t step = call.begin->step.value_or(0);
      const int occurrence = ++occurrences[step];
      SaveGroup& group = found[{step, occurrence}];
      group.life = &life;
      group.step = step;
      group.occurrence = occurrence;
      if (call.begin->save) group.save = call.begin->save;
      call.state = state_of(call, evidence_.subject.claims.async);
      group.calls.push_back(call);
    }
  }
  std::vector<SaveGroup> in_time;
  for (auto& [key, group] : found) {
    group.begin_ns = UINT64_MAX;
    for (const SaveCall& call : group.calls) {
      group.begin_ns = std::min(group.begin_ns, call.begin->time_ns);
      const bool open = call.state == CallState::kUnfinished || call.last() == nullptr;
      group.end_ns = std::max(group.end_ns, open ? life.record.ended_ns : call.last()->time_ns);
    }
    in_time.push_back(std::move(group));
  }
  std::stable_sort(in_time.begin(), in_time.end(),
                   [](const SaveGroup& a, const SaveGroup& b) { return a.begin_ns < b.begin_ns; });
  for (SaveGroup& group : in_time) groups_.push_back(std::move(group));
}

const SaveGroup* View::group_at(const Life& life, std::uint64_t time_ns,
                                std::optional<std::int64_t> step) const {
  for (const SaveGroup& group : groups_) {
    if (group.life == &life && group.begin_ns <= time_ns && time_ns <= group.end_ns &&
        (!step || group.step == *step)) {
      return &group;
    }
  }
  return nullptr;
}

bool View::succeeded(const SaveGroup& group) const {
  return static_cast<int>(group.calls.size()) >= world() &&
         std::all_of(group.calls.begin(), group.calls.end(),
                     [](const SaveCall& call) { return call.state == CallState::kSucceeded; });
}

std::vector<const SaveGroup*> View::writers(std::int64_t step, std::uint64_t before_ns) const {
  std::vector<const SaveGroup*> found;
  for (const SaveGroup& group : groups_) {
    if (group.step != step || group.begin_ns > before_ns) continue;
    if (succeeded(group)) found.clear();
    found.push_back(&group);
  }
  return found;
}

std::optional<int> View::save_number(std::int64_t step) const {
  for (const SaveGroup& group : groups_) {
    if (group.step == step && group.save) return group.save;
  }
  return std::nullopt;
}

std::optional<std::int64_t> View::step_of_save(int save) const {
  for (const SaveGroup& group : groups_) {
    if (group.save == save) return group.step;
  }
  return std::nullopt;
}

std::optional<std::int64_t> View::step_of(std::string_view path) const {
  if (!step_pattern_) return std::nullopt;
  // A pattern such as `step_(\d+)/` must also know the directory itself.
  const std::string text = std::string(path) + "/";
  std::smatch match;
  if (!std::regex_search(text, match, *step_pattern_) || match.size() < 2) return std::nullopt;
  const std::string digits = match[1].str();
  std::int64_t step = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return step;
}

faults::Classified View::classify(std::string_view path) const {
  return faults::classify(evidence_.subject.layout, path);
}

const RankProcess* process_of(const Life& life, int rank) {
  for (const RankProcess& process : life.record.ranks) {
    if (process.rank == rank) return &process;
  }
  return nullptr;
}

bool ended_by_launcher(const RankProcess& process) {
  return process.ended_by.starts_with("launcher");
}

bool ended_by_runner(const RankProcess& process) { return process.ended_by.starts_with("runner"); }

bool was_killed(const Life& life) {
  return died_by_memory(life) ||
         std::any_of(
             life.fired.begin(), life.fired.end(),
             [](const faults::FiredRecord& fired) { return fired.action.starts_with("kill"); }) ||
         std::any_of(life.record.ranks.begin(), life.record.ranks.end(),
                     [](const RankProcess& process) { return process.ended_by == "rule"; });
}

bool was_held(const Life& life, int rank) {
  return std::any_of(life.fired.begin(), life.fired.end(), [&](const faults::FiredRecord& fired) {
    if (fired.action.starts_with("freeze")) return acted_on(fired, rank);
    return fired.action.starts_with("hang") && fired.caller.rank == rank;
  });
}

bool is_victim(const Life& life, int rank) {
  const RankProcess* process = process_of(life, rank);
  if (process != nullptr && process->ended_by == "rule") return true;
  if (process != nullptr && is_by_memory(death_of(life, *process))) return true;
  if (process != nullptr && ended_by_runner(*process) && was_held(life, rank)) return true;
  // Killed or about to be: a rank that handled the signal and left by itself is a victim too.
  return std::any_of(life.fired.begin(), life.fired.end(), [&](const faults::FiredRecord& fired) {
    return fired.action.starts_with("kill") && acted_on(fired, rank);
  });
}

const Event* first_event(const Life& life, int rank, EventKind kind) {
  if (static_cast<std::size_t>(rank) >= life.events.size()) return nullptr;
  for (const Event& event : life.events[static_cast<std::size_t>(rank)].events) {
    if (event.kind == kind) return &event;
  }
  return nullptr;
}

const Event* resumed_event(const Life& life, int rank) {
  const Event* last = nullptr;
  if (static_cast<std::size_t>(rank) >= life.events.size()) return nullptr;
  for (const Event& event : life.events[static_cast<std::size_t>(rank)].events) {
    if (event.kind == EventKind::kResumed) last = &event;
  }
  return last;
}

bool refused_load(const Life& life, int rank) {
  const Event* resumed = resumed_event(life, rank);
  if (resumed != nullptr) return !resumed->ok;
  const RankProcess* process = process_of(life, rank);
  return process != nullptr && !is_victim(life, rank) && !ended_by_runner(*process) &&
         process->exit_status.value_or(1) != 0 &&
         first_event(life, rank, EventKind::kUpdate) == nullptr &&
         first_event(life, rank, EventKind::kSaveBegin) == nullptr;
}

bool has_victim(const Life& life) {
  return std::any_of(life.record.ranks.begin(), life.record.ranks.end(),
                     [&](const RankProcess& process) { return is_victim(life, process.rank); });
}

bool reader_looked(const Evidence& evidence, const Life& life) {
  return !evidence.subject.reader.empty() && life.record.reader_error.empty();
}

bool is_black_box(const Evidence& evidence) {
  for (const Life& life : evidence.lives) {
    for (const EventLog& log : life.events) {
      if (!log.events.empty() || !log.errors.empty()) return false;
    }
  }
  return true;
}

std::string last_component(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

std::string quote(const Life& life, int rank, const Event& event) {
  std::string line = fmt::format("life {} rank {} events:{} {}", life.record.number, rank,
                                 event.line, event_name(event.kind));
  if (event.step) {
    line += fmt::format(" step={}", *event.step);
  } else if (event.kind == EventKind::kResumed) {
    line += " step=null";
  }
  if (event.save) line += fmt::format(" save={}", *event.save);
  if (event.kind == EventKind::kSaveEnd || event.kind == EventKind::kDurable ||
      event.kind == EventKind::kResumed) {
    line += event.ok ? " ok=true" : " ok=false";
  }
  if (!event.path.empty()) line += fmt::format(" path={}", event.path);
  if (event.error) line += fmt::format(" error=`{}`", event.error->text);
  return line;
}

std::string quote(const Life& life, const faults::TraceRecord& record) {
  std::string line =
      fmt::format("life {} trace:{} rank {} {} {}", life.record.number, record.begin_seq,
                  record.caller.rank, faults::op_name(record.op), record.path);
  if (!record.path2.empty()) line += fmt::format(" → {}", record.path2);
  if (faults::op_class(record.op) == faults::OpClass::kData) {
    line += fmt::format(", offset {}, {} bytes asked, {} done", record.offset, record.requested,
                        record.returned);
  }
  return fmt::format("{}: {}{}", line, errno_text(record.error), record.faulted ? " (rule)" : "");
}

std::string quote(const Life& life, const RankProcess& process) {
  std::string line =
      fmt::format("life {} rank {} pid {}", life.record.number, process.rank, process.pid);
  if (process.exit_status) line += fmt::format(" left with exit status {}", *process.exit_status);
  if (process.signal) line += fmt::format(" was ended by signal {}", *process.signal);
  if (!process.ended_by.empty()) line += fmt::format(" ({})", process.ended_by);
  if (!process.waiting_in.empty()) line += fmt::format(", waiting in {}", process.waiting_in);
  return line;
}

std::vector<std::string> bad_ends(const Life& life) {
  std::vector<std::string> lines;
  for (const RankProcess& process : life.record.ranks) {
    const bool badly = process.signal || process.exit_status.value_or(0) != 0;
    if (!badly || is_victim(life, process.rank) || ended_by_runner(process)) continue;
    lines.push_back(quote(life, process));
    const auto rank = static_cast<std::size_t>(process.rank);
    if (rank < life.last_words.size() && !life.last_words[rank].empty()) {
      lines.push_back(life.last_words[rank]);
    }
  }
  return lines;
}

std::string quote(const Item& item) {
  return fmt::format("`{}` {} {} {} bytes digest {}", item.name, item.kind, item.dtype, item.bytes,
                     item.digest);
}

reports::Verdict pass(std::string_view requirement, std::string summary) {
  return {std::string(requirement), reports::Outcome::kPass, std::move(summary), {}};
}

reports::Verdict skip(std::string_view requirement, std::string reason) {
  return {std::string(requirement), reports::Outcome::kSkip, std::move(reason), {}};
}

reports::Verdict violated(std::string_view requirement, std::string summary,
                          std::vector<std::string> evidence) {
  return {std::string(requirement), reports::Outcome::kFail, std::move(summary),
          std::move(evidence)};
}

reports::Verdict invalid_evidence(std::string_view requirement, std::string summary,
                                  std::vector<std::string> evidence) {
  return {std::string(requirement), reports::Outcome::kInvalid, std::move(summary),
          std::move(evidence)};
}

}  // namespace savegate::harness
