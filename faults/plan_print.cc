#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "faults/plan.h"
#include "faults/toml.h"

namespace savegate::faults {
namespace {

// One word or number, or a list of them.
std::string one_or_list(const std::vector<std::string>& items) {
  return items.size() == 1 ? items.front() : fmt::format("[{}]", fmt::join(items, ", "));
}

std::string numbers(const std::vector<int>& values) {
  std::vector<std::string> items;
  items.reserve(values.size());
  for (int value : values) items.push_back(std::to_string(value));
  return one_or_list(items);
}

std::vector<std::string> op_words(std::uint64_t ops) {
  for (OpClass op_class_ : {OpClass::kData, OpClass::kMetadata, OpClass::kSync, OpClass::kQuery}) {
    std::uint64_t all = 0;
    for (int i = 0; i < kOpCount; ++i) {
      const auto op = static_cast<Op>(i);
      if (op_class(op) == op_class_) all |= op_bit(op);
    }
    if (ops == all) return {std::string(op_class_name(op_class_))};
  }
  std::vector<std::string> words;
  for (; ops != 0; ops &= ops - 1) {
    words.emplace_back(op_name(static_cast<Op>(std::countr_zero(ops))));
  }
  return words;
}

std::string_view process_word(Relation relation) {
  return relation == Relation::kProcess ? "main" : relation_name(relation);
}

std::string range(const Range& range) {
  if (range.to == UINT64_MAX) return fmt::format("[{}]", toml_string(print_bytes(range.from)));
  return fmt::format("[{}, {}]", toml_string(print_bytes(range.from)),
                     toml_string(print_bytes(range.to)));
}

std::string since_table(const Since& since) {
  std::string entries = fmt::format("mark = {}", toml_string(since.mark));
  if (since.from_ns != 0) {
    entries += fmt::format(", from = {}", toml_string(print_duration(since.from_ns)));
  }
  if (since.to_ns != UINT64_MAX) {
    entries += fmt::format(", to = {}", toml_string(print_duration(since.to_ns)));
  }
  return fmt::format("{{ {} }}", entries);
}

std::string_view per_word(CountPer per) {
  switch (per) {
    case CountPer::kRank:
      return "rank";
    case CountPer::kFile:
      return "file";
    case CountPer::kRule:
      return "rule";
  }
  return "";
}

std::string_view target_word(KillTarget target) {
  switch (target) {
    case KillTarget::kRank:
      return "rank";
    case KillTarget::kChild:
      return "child";
    case KillTarget::kJob:
      return "job";
  }
  return "";
}

std::string_view late_word(LateAt late) {
  switch (late) {
    case LateAt::kFsync:
      return "fsync";
    case LateAt::kClose:
      return "close";
    case LateAt::kWrite:
      return "write";
  }
  return "";
}
std::string_view corruption_word(Corruption kind) {
  switch (kind) {
    case Corruption::kFlip:
      return "flip";
    case Corruption::kZero:
      return "zero";
    case Corruption::kStale:
      return "stale";
    case Corruption::kSwap:
      return "swap";
  }
  return "";
}
std::string_view on_word(CorruptOn on) { return on == CorruptOn::kIn ? "in" : "out"; }

std::string_view race_word(Race race) {
  switch (race) {
    case Race::kMade:
      return "made";
    case Race::kRemoved:
      return "removed";
    case Race::kMoved:
      return "moved";
  }
  return "";
}

std::vector<std::string> aspect_words(const StaleAction& action) {
  std::vector<std::string> words;
  if (action.has(Aspect::kName)) words.emplace_back("name");
  if (action.has(Aspect::kSize)) words.emplace_back("size");
  if (action.has(Aspect::kListing)) words.emplace_back("listing");
  if (action.has(Aspect::kAttributes)) words.emplace_back("attributes");
  if (action.has(Aspect::kNegative)) words.emplace_back("negative");
  return words;
}

std::string signed_duration(std::int64_t nanoseconds) {
  if (nanoseconds >= 0) return print_duration(static_cast<std::uint64_t>(nanoseconds));
  return "-" + print_duration(static_cast<std::uint64_t>(-nanoseconds));
}

std::string toml_words(std::vector<std::string> words) {
  for (std::string& word : words) word = toml_string(word);
  return one_or_list(words);
}

using Entries = std::vector<std::string>;

void add(Entries& entries, std::string_view key, std::string_view value) {
  entries.push_back(fmt::format("{} = {}", key, value));
}

Entries entries_of(const Match& match) {
  Entries entries;
  if (match.ops != 0) {
    std::vector<std::string> words;
    for (const std::string& word : op_words(match.ops)) words.push_back(toml_string(word));
    add(entries, "op", one_or_list(words));
  }
  if (!match.path.empty()) add(entries, "path", toml_string(match.path));
  if (match.role) add(entries, "role", toml_string(role_name(*match.role)));
  if (match.temporary) add(entries, "temporary", *match.temporary ? "true" : "false");
  if (!match.ranks.empty()) add(entries, "rank", numbers(match.ranks));
  if (!match.relations.empty()) {
    std::vector<std::string> words;
    for (Relation relation : match.relations) words.push_back(toml_string(process_word(relation)));
    add(entries, "process", one_or_list(words));
  }
  if (!match.lives.empty()) add(entries, "life", numbers(match.lives));
  if (match.attempt) add(entries, "attempt", std::to_string(*match.attempt));
  if (!match.phase.empty()) add(entries, "phase", toml_string(match.phase));
  if (match.since) add(entries, "since", since_table(*match.since));
  if (match.offset) add(entries, "offset", range(*match.offset));
  if (match.size) add(entries, "size", range(*match.size));
  if (match.nth) add(entries, "nth", std::to_string(*match.nth));
  if (match.every) add(entries, "every", std::to_string(*match.every));
  if (match.per != CountPer::kRank) add(entries, "per", toml_string(per_word(match.per)));
  if (match.after_bytes) add(entries, "after_bytes", toml_string(print_bytes(*match.after_bytes)));
  if (match.probability) add(entries, "probability", fmt::format("{}", *match.probability));
  if (match.once) add(entries, "once", "true");
  return entries;
}

std::string delay_value(const DelayAction& delay) {
  std::string time = toml_string(print_duration(delay.nanoseconds));
  switch (delay.spread) {
    case Spread::kFixed:
      return time;
    case Spread::kUniform:
      return fmt::format("{{ uniform = [{}, {}] }}", time,
                         toml_string(print_duration(delay.to_ns)));
    case Spread::kExponential:
      return fmt::format("{{ exponential = {} }}", time);
    case Spread::kNormal:
      return fmt::format("{{ normal = {}, deviation = {} }}", time,
                         toml_string(print_duration(delay.deviation_ns)));
    case Spread::kPareto:
      return fmt::format("{{ pareto = {}, shape = {} }}", time, delay.shape);
  }
  return "";
}

std::string delay_words(const DelayAction& delay) {
  std::string time = print_duration(delay.nanoseconds);
  switch (delay.spread) {
    case Spread::kFixed:
      return time;
    case Spread::kUniform:
      return fmt::format("uniform {} to {}", time, print_duration(delay.to_ns));
    case Spread::kExponential:
      return fmt::format("exponential {}", time);
    case Spread::kNormal:
      return fmt::format("normal {} deviation {}", time, print_duration(delay.deviation_ns));
    case Spread::kPareto:
      return fmt::format("pareto {} shape {}", time, delay.shape);
  }
  return "";
}

struct ActionEntries {
  Entries operator()(const ErrnoAction& action) const {
    Entries entries;
    add(entries, "errno", toml_string(errno_name(action.error)));
    if (action.after) add(entries, "after", toml_string(print_amount(*action.after)));
    if (action.late) add(entries, "late", toml_string(late_word(*action.late)));
    if (action.drop) add(entries, "drop", "true");
    return entries;
  }
  Entries operator()(const ShortAction& action) const {
    Entries entries;
    add(entries, "short", toml_string(print_amount(action.bytes)));
    return entries;
  }
  Entries operator()(const DelayAction& action) const {
    Entries entries;
    add(entries, "delay", delay_value(action));
    return entries;
  }
  Entries operator()(const BandwidthAction& action) const {
    return {fmt::format("bandwidth = {}", toml_string(print_rate(action.bytes_per_second)))};
  }
  Entries operator()(const FreezeAction& action) const {
    Entries entries;
    add(entries, "freeze",
        action.nanoseconds ? toml_string(print_duration(*action.nanoseconds)) : "true");
    add(entries, "target", toml_string(target_word(action.target)));
    return entries;
  }
  Entries operator()(const HangAction&) const { return {"hang = true"}; }
  Entries operator()(const KillAction& action) const {
    Entries entries;
    add(entries, "kill", toml_string(signal_name(action.signal)));
    add(entries, "when", toml_string(when_name(action.when)));
    if (action.when == When::kMiddle) add(entries, "at", toml_string(print_amount(action.at)));
    add(entries, "target", toml_string(target_word(action.target)));
    return entries;
  }
  Entries operator()(const CorruptAction& action) const {
    Entries entries;
    add(entries, "corrupt", toml_string(corruption_word(action.kind)));
    add(entries, "on", toml_string(on_word(action.on)));
    add(entries, "at", toml_string(print_amount(action.at)));
    add(entries, "length", toml_string(print_bytes(action.length)));
    if (action.with) add(entries, "with", toml_string(print_amount(*action.with)));
    return entries;
  }
  Entries operator()(const LieAction&) const { return {"lie = true"}; }
  Entries operator()(const MissingAction& action) const {
    Entries entries;
    add(entries, "missing", toml_words(action.features.names()));
    return entries;
  }
  Entries operator()(const RaceAction& action) const {
    Entries entries;
    add(entries, "race", toml_string(race_word(action.kind)));
    return entries;
  }
  Entries operator()(const TimestampsAction& action) const {
    Entries times;
    if (action.skew_ns != 0) add(times, "skew", toml_string(signed_duration(action.skew_ns)));
    if (action.granularity_ns != 1) {
      add(times, "granularity", toml_string(print_duration(action.granularity_ns)));
    }
    Entries entries;
    add(entries, "timestamps", fmt::format("{{ {} }}", fmt::join(times, ", ")));
    return entries;
  }
  Entries operator()(const StaleAction& action) const {
    Entries entries;
    add(entries, "stale", toml_words(aspect_words(action)));
    if (action.window_ns) add(entries, "for", toml_string(print_duration(*action.window_ns)));
    return entries;
  }
  Entries operator()(const LoseAction&) const { return {"lose = true"}; }
};

std::string amount_words(const Amount& amount) {
  return amount.share ? print_amount(amount) : std::to_string(amount.bytes);
}

struct ActionWords {
  std::string operator()(const ErrnoAction& action) const {
    std::string words = fmt::format("errno {}", errno_name(action.error));
    if (action.after) words += fmt::format(" after {}", amount_words(*action.after));
    if (action.late) words += fmt::format(" at the next {}", late_word(*action.late));
    if (action.drop) words += ", dropping what was not synced";
    return words;
  }
  std::string operator()(const ShortAction& action) const {
    return fmt::format("short {}", amount_words(action.bytes));
  }
  std::string operator()(const DelayAction& action) const {
    return fmt::format("delay {}", delay_words(action));
  }
  std::string operator()(const BandwidthAction& action) const {
    return fmt::format("bandwidth {}", print_rate(action.bytes_per_second));
  }
  std::string operator()(const FreezeAction& action) const {
    return fmt::format(
        "freeze {} {}",
        action.nanoseconds ? print_duration(*action.nanoseconds) : "until it is released",
        target_word(action.target));
  }
  std::string operator()(const HangAction&) const { return "hang"; }
  std::string operator()(const KillAction& action) const {
    std::string words =
        fmt::format("kill {} {}", signal_name(action.signal), when_name(action.when));
    if (action.when == When::kMiddle) words += fmt::format(" {}", amount_words(action.at));
    return fmt::format("{} {}", words, target_word(action.target));
  }
  std::string operator()(const CorruptAction& action) const {
    std::string words = fmt::format("corrupt {} {} at {} length {}", corruption_word(action.kind),
                                    on_word(action.on), amount_words(action.at), action.length);
    if (action.with) words += fmt::format(" with {}", amount_words(*action.with));
    return words;
  }
  std::string operator()(const LieAction&) const { return "lie"; }
  std::string operator()(const MissingAction& action) const {
    return fmt::format("missing {}", fmt::join(action.features.names(), " "));
  }
  std::string operator()(const RaceAction& action) const {
    return fmt::format("race {}", race_word(action.kind));
  }
  std::string operator()(const TimestampsAction& action) const {
    std::string words = "timestamps";
    if (action.skew_ns != 0) words += fmt::format(" skew {}", signed_duration(action.skew_ns));
    if (action.granularity_ns != 1) {
      words += fmt::format(" granularity {}", print_duration(action.granularity_ns));
    }
    return words;
  }
  std::string operator()(const StaleAction& action) const {
    std::string words = fmt::format("stale {}", fmt::join(aspect_words(action), " "));
    if (action.window_ns) words += fmt::format(" for {}", print_duration(*action.window_ns));
    return words;
  }
  std::string operator()(const LoseAction&) const { return "lose"; }
};

}  // namespace

std::string to_string(const Action& action) { return std::visit(ActionWords(), action); }

std::string to_string(const Match& match) {
  const Entries entries = entries_of(match);
  return entries.empty() ? "any operation" : fmt::format("{}", fmt::join(entries, ", "));
}

std::string print_rule(const Rule& rule) {
  std::string out = fmt::format("name = {}\n", toml_string(rule.name));
  out += fmt::format("match = {{ {} }}\n", fmt::join(entries_of(rule.match), ", "));
  out +=
      fmt::format("action = {{ {} }}\n", fmt::join(std::visit(ActionEntries(), rule.action), ", "));
  if (!rule.required) out += "required = false\n";
  return out;
}

std::string print_budget(const BudgetSpec& budget) {
  std::string out =
      fmt::format("name = {}\npath = {}\n", toml_string(budget.name), toml_string(budget.path));
  if (!budget.ranks.empty()) out += fmt::format("rank = {}\n", numbers(budget.ranks));
  if (budget.limit) out += fmt::format("limit = {}\n", toml_string(print_bytes(*budget.limit)));
  if (budget.inodes) out += fmt::format("inodes = {}\n", *budget.inodes);
  out += fmt::format("errno = {}\nblock = {}\n", toml_string(errno_name(budget.error)),
                     toml_string(print_bytes(budget.block)));
  if (!budget.required) out += "required = false\n";
  return out;
}

std::string print_plan(const Plan& plan) {
  // TOML's integers end at 2^63 - 1.
  constexpr std::uint64_t kMostInteger = INT64_MAX;
  const std::string seed = std::to_string(plan.seed);
  std::string out = fmt::format("seed = {}\n", plan.seed > kMostInteger ? toml_string(seed) : seed);
  for (const Rule& rule : plan.rules) out += "\n[[rule]]\n" + print_rule(rule);
  for (const BudgetSpec& budget : plan.budgets) out += "\n[[budget]]\n" + print_budget(budget);
  return out;
}

}  // namespace savegate::faults
