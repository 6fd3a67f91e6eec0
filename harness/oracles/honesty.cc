#include "harness/oracles/honesty.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/oracles/premise.h"
#include "harness/oracles/protocol.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

faults::Op carrier_of(faults::LateAt late) {
  switch (late) {
    case faults::LateAt::kFsync:
      return faults::Op::kFsync;
    case faults::LateAt::kClose:
      return faults::Op::kClose;
    case faults::LateAt::kWrite:
      break;
  }
  return faults::Op::kWrite;
}

std::string names_of(std::uint64_t ops) {
  std::string names;
  for (int op = 0; op < 64; ++op) {
    if ((ops >> op & 1) == 0) continue;
    names += (names.empty() ? "" : " or ") + std::string(faults::op_name(faults::Op(op)));
  }
  return names;
}

// Whether the program does at all what a rule that never fired was to act on.
std::string why_never(const faults::Layout& layout, const Life& life, const faults::Rule& rule) {
  std::uint64_t ops = rule.match.ops;
  const auto* error = std::get_if<faults::ErrnoAction>(&rule.action);
  if (error != nullptr && error->late) ops = faults::op_bit(carrier_of(*error->late));
  if (ops == 0) return "";
  const std::vector<int>& ranks = rule.match.ranks;
  const auto seen = std::count_if(
      life.trace.records.begin(), life.trace.records.end(), [&](const faults::TraceRecord& record) {
        return (ops & faults::op_bit(record.op)) != 0 &&
               (ranks.empty() ||
                std::find(ranks.begin(), ranks.end(), record.caller.rank) != ranks.end()) &&
               (!rule.match.role || faults::classify(layout, record.path).role == *rule.match.role);
      });
  const std::string who =
      ranks.empty() ? "any rank" : fmt::format("rank {}", fmt::join(ranks, ", "));
  const std::string what =
      names_of(ops) + (rule.match.role
                           ? fmt::format(" on a {} file", faults::role_name(*rule.match.role))
                           : std::string());
  return seen == 0 ? fmt::format(": there was no {} by {}", what, who)
                   : fmt::format(": of {} {} by {} none was what it asks for", seen, what, who);
}

// Rules: armed, counted, on record, and fired where required.
void check_rules(const faults::Layout& layout, const Life& life, Lines& lines) {
  std::map<std::string, std::uint64_t> recorded;
  for (const faults::FiredRecord& fired : life.fired) ++recorded[fired.rule];
  std::map<std::string, std::uint64_t> counted;
  for (const reports::FiredCount& rule : life.record.rules) {
    counted[rule.rule] = rule.hits;
    if (rule.hits != recorded[rule.rule]) {
      lines.push_back(fmt::format("life {} rule \"{}\": {} hits counted, {} on record",
                                  life.record.number, rule.rule, rule.hits, recorded[rule.rule]));
    }
  }
  const auto required = [&](const std::string& name, const std::string& why) {
    const auto count = counted.find(name);
    if (count == counted.end()) {
      lines.push_back(fmt::format("life {} rule \"{}\" was never armed", life.record.number, name));
    } else if (count->second == 0) {
      lines.push_back(
          fmt::format("life {} rule \"{}\" never fired{}", life.record.number, name, why));
    }
  };
  for (const faults::Rule& rule : life.spec.plan.rules) {
    if (rule.required) required(rule.name, why_never(layout, life, rule));
  }
  for (const faults::BudgetSpec& budget : life.spec.plan.budgets) {
    if (budget.required) required(budget.name, "");
  }
  for (const auto& [name, hits] : recorded) {
    if (!counted.contains(name)) {
      lines.push_back(fmt::format("life {} rule \"{}\": {} hits on record, none counted",
                                  life.record.number, name, hits));
    }
  }
}

void append(Lines& lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

void check_life(const View& view, const Life& life, Lines& lines) {
  if (life.record.ranks.empty()) {
    lines.push_back(fmt::format("life {} had no rank", life.record.number));
  }
  if (life.record.daemon_died) {
    lines.push_back(fmt::format("life {}: the file system died", life.record.number));
  }
  for (const EventLog& log : life.events) append(lines, log.errors);
  append(lines, broken_protocol(life));
  for (const std::string& tampered : life.record.tampered) {
    if (tampered.starts_with("not done")) {
      lines.push_back(fmt::format("life {}: tampering {}", life.record.number, tampered));
    }
  }
  check_rules(view.evidence().subject.layout, life, lines);
  append(lines, unmet_limits(life));
  append(lines, strayed_hits(view, life));
}

bool all_restores_refused_or_killed(const Evidence& evidence) {
  return std::all_of(evidence.lives.begin(), evidence.lives.end(), [](const Life& life) {
    return was_killed(life) || life.spec.expect.outcome == Outcome::kRefuseTogether;
  });
}

std::uint64_t bytes_of(const std::vector<Item>& items) {
  std::uint64_t bytes = 0;
  for (const Item& item : items) bytes += item.bytes;
  return bytes;
}

bool wrote_files(const Life& life) {
  return std::any_of(
      life.trace.records.begin(), life.trace.records.end(), [](const faults::TraceRecord& record) {
        return record.caller.rank >= 0 && record.error == 0 && record.op == faults::Op::kWrite;
      });
}

// Saves and restores that were to be compared were compared: tensors, bytes, ranks above zero.
void check_comparisons(const Evidence& evidence, Lines& lines) {
  if (is_black_box(evidence)) {
    // It says nothing of items; the oracles of files and processes still judge.
    if (evidence.subject.events) {
      lines.emplace_back(
          "no rank ever wrote an event (a subject that writes none says so with `events = false`)");
    }
    // Nor does a program prove anything that left no file behind and wrote none.
    if (std::none_of(evidence.lives.begin(), evidence.lives.end(), wrote_files)) {
      lines.emplace_back("no rank ever wrote an event or a file");
    }
    return;
  }
  bool saved = false;
  std::uint64_t saved_bytes = 0;
  for (const Life& life : evidence.lives) {
    bool resumed = false;
    std::uint64_t resumed_bytes = 0;
    for (const EventLog& log : life.events) {
      for (const Event& event : log.events) {
        if (event.kind == EventKind::kSaveBegin) {
          saved = true;
          saved_bytes += bytes_of(event.items);
        } else if (event.kind == EventKind::kResumed && event.ok && event.step) {
          resumed = true;
          resumed_bytes += bytes_of(event.items);
        }
      }
    }
    if (resumed && resumed_bytes == 0) {
      lines.push_back(fmt::format("life {} resumed, and zero bytes of zero items were compared",
                                  life.record.number));
    }
  }
  if (saved && saved_bytes == 0) lines.emplace_back("all saves together held zero bytes of items");
  if (!saved && !all_restores_refused_or_killed(evidence)) {
    lines.emplace_back("no rank of any life began a save");
  }
}

std::size_t size_of_dtype(const std::string& dtype) {
  static const std::map<std::string, std::size_t> kSizes = {
      {"c128", 16}, {"c64", 8},  {"c32", 4},         {"f64", 8},         {"f32", 4},
      {"f16", 2},   {"bf16", 2}, {"f8_e4m3", 1},     {"f8_e5m2", 1},     {"i64", 8},
      {"i32", 4},   {"i16", 2},  {"i8", 1},          {"u64", 8},         {"u32", 4},
      {"u16", 2},   {"u8", 1},   {"f8_e4m3fnuz", 1}, {"f8_e5m2fnuz", 1}, {"f8_e8m0", 1},
      {"bool", 1},  {"bytes", 1}};
  const auto found = kSizes.find(dtype);
  return found == kSizes.end() ? 0 : found->second;
}

// What the item lacks, "" if it says all that makes its digest mean something.
std::string lacking(const Item& item) {
  static const std::set<std::string> kKinds = {"parameter", "optimizer", "scheduler", "rng",
                                               "counter",   "contract",  "derived"};
  static const std::set<std::string> kScopes = {"rank", "replica", "shard"};
  if (item.name.empty()) return "no name";
  if (!kKinds.contains(item.kind)) return fmt::format("unknown kind `{}`", item.kind);
  if (!kScopes.contains(item.scope)) return fmt::format("unknown scope `{}`", item.scope);
  if (item.dtype.empty()) return "no dtype";
  if (item.digest.size() != 32 ||
      item.digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return fmt::format("digest `{}` is not 32 hex digits", item.digest);
  }
  const std::size_t rank = item.global_shape.size();
  if (item.local_shape.size() != rank || item.offset.size() != rank) {
    return fmt::format("shapes of {}, {} and {} dimensions", rank, item.local_shape.size(),
                       item.offset.size());
  }
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    if (item.local_shape[i] > item.global_shape[i] ||
        item.offset[i] > item.global_shape[i] - item.local_shape[i]) {
      return fmt::format("dimension {}: {} elements from {} do not lie in {}", i,
                         item.local_shape[i], item.offset[i], item.global_shape[i]);
    }
    elements *= item.local_shape[i];
  }
  const std::size_t size = size_of_dtype(item.dtype);
  if (size != 0 && elements * size != item.bytes) {
    return fmt::format("{} elements of {} are {} bytes, not {}", elements, item.dtype,
                       elements * size, item.bytes);
  }
  return "";
}

void check_items(const std::string& where, const std::vector<Item>& items, Lines& lines) {
  std::set<std::pair<std::string, std::vector<std::uint64_t>>> seen;
  for (const Item& item : items) {
    const std::string lack = lacking(item);
    if (!lack.empty()) lines.push_back(fmt::format("{}: {}: {}", where, quote(item), lack));
    if (!seen.emplace(item.name, item.offset).second) {
      lines.push_back(fmt::format("{}: {}: named twice at this offset", where, quote(item)));
    }
  }
}

}  // namespace

reports::Verdict executed_faults(const Evidence& evidence) {
  Lines lines = evidence.problems;
  if (evidence.scenario.lives.empty()) lines.emplace_back("the scenario has no life");
  for (std::size_t i = evidence.lives.size(); i < evidence.scenario.lives.size(); ++i) {
    lines.push_back(fmt::format("life {} was not run", i + 1));
  }
  const View view(evidence);
  for (const Life& life : evidence.lives) check_life(view, life, lines);
  check_comparisons(evidence, lines);
  if (!lines.empty()) {
    const std::string first = lines.front();
    return invalid_evidence("H1", first, std::move(lines));
  }
  std::uint64_t hits = 0;
  for (const Life& life : evidence.lives) hits += life.fired.size();
  return pass("H1", fmt::format("{} lives run, {} faults fired and on record, all logs whole",
                                evidence.lives.size(), hits));
}

reports::Verdict bound_to_what_was_run(const Evidence& evidence) {
  Lines lines;
  for (const std::string_view name : kProvenanceNames) {
    const auto value = evidence.provenance.find(std::string(name));
    if (value == evidence.provenance.end() || value->second.empty()) {
      lines.push_back(fmt::format("provenance.json: `{}` is missing", name));
    }
  }
  if (!lines.empty()) {
    return violated("H4", "the verdicts are not bound to what was run", std::move(lines));
  }
  const std::string& before = evidence.provenance.at("executable.digest");
  const std::string& after = evidence.provenance.at("executable.digest.end");
  if (before != after) {
    return violated("H4", "the subject's executable changed while it was run",
                    {"at the start " + before, "at the end " + after});
  }
  return pass("H4", fmt::format("bound to executable {} and {} more facts", before,
                                std::size(kProvenanceNames) - 1));
}

reports::Verdict evidence_unaltered(const Evidence& evidence) {
  Lines lines;
  for (const std::string& problem : evidence.problems) {
    if (problem.starts_with("manifest")) lines.push_back(problem);
  }
  if (lines.empty()) return pass("H5", "every evidence file is as it was collected");
  return violated("H5", "evidence was changed after it was collected", std::move(lines));
}

reports::Verdict measured_not_guessed(const Evidence& evidence) {
  Lines lines;
  std::size_t facts = 0;
  for (const Life& life : evidence.lives) {
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      std::string device;
      for (const Event& event : life.events[rank].events) {
        if (event.kind == EventKind::kHello) device = event.device;
        if (event.kind != EventKind::kMemory) continue;
        for (const auto& [name, value] : event.memory) {
          ++facts;
          if (!value) continue;
          const std::string where = quote(life, static_cast<int>(rank), event);
          if (*value == 0 && (name.starts_with("host_rss") || name.starts_with("host_pss") ||
                              name == "threads" || name == "open_files")) {
            lines.push_back(fmt::format("{}: {} = 0, which no running process has", where, name));
          } else if (name.starts_with("gpu_") && device == "cpu") {
            lines.push_back(fmt::format("{}: {} = {} on device cpu", where, name, *value));
          }
        }
      }
    }
  }
  if (!lines.empty()) {
    return violated("H6", "a measurement that was not made is written as a number",
                    std::move(lines));
  }
  if (facts == 0) return skip("H6", "no memory events");
  return pass("H6", fmt::format("{} memory facts, each measured or said not to be", facts));
}

reports::Verdict identified_items(const Evidence& evidence) {
  Lines lines;
  std::size_t items = 0;
  for (const Life& life : evidence.lives) {
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      for (const Event& event : life.events[rank].events) {
        if (event.items.empty()) continue;
        const std::string where = quote(life, static_cast<int>(rank), event);
        items += event.items.size();
        check_items(where, event.items, lines);
        if (!event.step) lines.push_back(fmt::format("{}: items without a step", where));
        if (event.rank != static_cast<int>(rank)) {
          lines.push_back(fmt::format("{}: says rank {}", where, event.rank));
        }
      }
    }
    for (const Checkpoint& checkpoint : life.checkpoints) {
      std::map<int, std::vector<Item>> by_rank;
      for (const auto& [rank, item] : checkpoint.items) by_rank[rank].push_back(item);
      for (const auto& [rank, read] : by_rank) {
        items += read.size();
        check_items(fmt::format("reader after life {}: {} rank {}", life.record.number,
                                checkpoint.path, rank),
                    read, lines);
      }
    }
  }
  if (!lines.empty()) {
    return violated("H7", "a digest does not say what it is the digest of", std::move(lines));
  }
  if (items == 0) return skip("H7", "no items in any event");
  return pass("H7", fmt::format("{} items, each with name, kind, dtype, shapes and offset", items));
}

}  // namespace savegate::harness
