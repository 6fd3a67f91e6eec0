#include "faults/plan_toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <set>

#include "faults/presets.h"

namespace savegate::faults {
namespace {

Result<std::uint64_t> parse_whole(std::string_view text) {
  auto bytes = parse_bytes(text);
  const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (bytes && digits) return *bytes;
  return fail(invalid(fmt::format("`{}` is no whole number", text)));
}

std::uint64_t read_ops(TomlReader& table) {
  std::uint64_t ops = 0;
  for (const std::string& word : table.strings("op")) {
    if (auto op = op_from_name(word)) {
      ops |= op_bit(*op);
      continue;
    }
    const auto wanted = op_class_from_name(word);
    std::vector<std::string> valid = {"data", "metadata", "sync", "query"};
    for (int i = 0; i < kOpCount; ++i) {
      const auto op = static_cast<Op>(i);
      if (wanted && op_class(op) == *wanted) ops |= op_bit(op);
      valid.emplace_back(op_name(op));
    }
    if (!wanted) unknown_word(table, "op", word, valid);
  }
  return ops;
}

std::vector<Relation> read_relations(TomlReader& table) {
  std::vector<Relation> relations;
  for (const std::string& word : table.strings("process")) {
    if (word == "main") {
      relations.push_back(Relation::kProcess);
    } else if (word == "thread") {
      relations.push_back(Relation::kThread);
    } else if (word == "child") {
      relations.push_back(Relation::kChild);
    } else {
      unknown_word(table, "process", word, {"main", "thread", "child"});
    }
  }
  return relations;
}

std::vector<int> read_numbers(TomlReader& table, std::string_view key, int least) {
  constexpr int kMost = 1'000'000;
  std::vector<int> values;
  for (std::int64_t value : table.integers(key, least, kMost))
    values.push_back(static_cast<int>(value));
  return values;
}

std::optional<Range> read_range(TomlReader& table, std::string_view key) {
  if (!table.has(key)) return std::nullopt;
  const std::vector<std::string> ends = table.texts(key);
  if (ends.empty() || ends.size() > 2) {
    table.error_at(key,
                   fmt::format("`{0}` is [first, end] or [first]: {0} = [\"0\", \"1MiB\"]", key));
    return std::nullopt;
  }
  Range range;
  std::array<std::uint64_t*, 2> into = {&range.from, &range.to};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    auto bytes = parse_bytes(ends[i]);
    if (!bytes) {
      table.error_at(key, fmt::format("`{}`: {}", key, bytes.error().text));
      return std::nullopt;
    }
    *into[i] = *bytes;
  }
  if (range.from >= range.to) {
    table.error_at(key, fmt::format("`{}` is empty: it ends before it begins", key));
  }
  return range;
}

std::optional<std::uint64_t> read_count(TomlReader& table, std::string_view key) {
  if (!table.has(key)) return std::nullopt;
  return static_cast<std::uint64_t>(table.integer(key, 1, 1, INT64_MAX));
}

Match read_match(TomlReader& table) {
  Match match;
  match.ops = read_ops(table);
  match.path = table.string("path");
  if (table.has("role")) {
    constexpr std::array<std::pair<std::string_view, Role>, 5> kRoles = {
        {{"shard", Role::kShard},
         {"marker", Role::kMarker},
         {"pointer", Role::kPointer},
         {"auxiliary", Role::kAuxiliary},
         {"none", Role::kNone}}};
    match.role = read_word(table, "role", kRoles, Role::kNone);
  }
  if (table.has("temporary")) match.temporary = table.boolean("temporary", false);
  match.ranks = read_numbers(table, "rank", 0);
  match.relations = read_relations(table);
  match.lives = read_numbers(table, "life", 1);
  if (table.has("attempt")) {
    match.attempt = static_cast<int>(table.integer("attempt", 1, 1, 1'000'000));
  }
  match.phase = table.string("phase");
  match.since = read_since(table);
  match.offset = read_range(table, "offset");
  match.size = read_range(table, "size");
  match.nth = read_count(table, "nth");
  match.every = read_count(table, "every");
  constexpr std::array<std::pair<std::string_view, CountPer>, 3> kPer = {
      {{"rank", CountPer::kRank}, {"file", CountPer::kFile}, {"rule", CountPer::kRule}}};
  match.per = read_word(table, "per", kPer, CountPer::kRank);
  if (table.has("after_bytes")) {
    match.after_bytes = read_text<std::uint64_t>(table, "after_bytes", 0, parse_bytes);
  }
  if (table.has("probability")) match.probability = table.number("probability", 0, 0, 1);
  match.once = table.boolean("once", false);
  return match;
}

int read_errno(TomlReader& table, int otherwise) {
  const std::string name = table.string("errno");
  if (name.empty() && !table.has("errno")) return otherwise;
  if (auto error = errno_from_name(name)) return *error;
  std::vector<std::string> valid;
  for (int error = 1; error < 4096; ++error) {
    std::string word = errno_name(error);
    if (word.front() == 'E') valid.push_back(std::move(word));
  }
  const std::string hint = did_you_mean(name, valid);
  table.error_at("errno",
                 fmt::format("`errno` cannot be `{}`{}", name,
                             hint.empty() ? "; write a name as in errno(3), \"ENOSPC\"" : hint));
  return otherwise;
}

Action read_errno_action(TomlReader& table) {
  ErrnoAction action;
  action.error = read_errno(table, EIO);
  if (table.has("after")) action.after = read_text<Amount>(table, "after", {}, parse_amount);
  if (table.has("late")) {
    constexpr std::array<std::pair<std::string_view, LateAt>, 3> kLate = {
        {{"fsync", LateAt::kFsync}, {"close", LateAt::kClose}, {"write", LateAt::kWrite}}};
    action.late = read_word(table, "late", kLate, LateAt::kFsync);
    if (action.after) table.error_at("after", "`after` and `late` exclude each other");
  }
  action.drop = table.boolean("drop", false);
  const bool at_fsync = !action.late || *action.late == LateAt::kFsync;
  if (action.drop && (!at_fsync || action.after)) {
    table.error_at("drop", "`drop` is for an errno of fsync: op = \"fsync\", or late = \"fsync\"");
  }
  return action;
}

Action read_kill_action(TomlReader& table) {
  KillAction action;
  const std::string name = table.string("kill");
  if (auto signal = signal_from_name(name)) {
    action.signal = *signal;
  } else {
    unknown_word(table, "kill", name,
                 {"SIGKILL", "SIGTERM", "SIGINT", "SIGSTOP", "SIGCONT", "SIGABRT", "SIGSEGV",
                  "SIGBUS", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"});
  }
  const std::array<std::pair<std::string_view, When>, 3> kWhen = {
      {{when_name(When::kBefore), When::kBefore},
       {when_name(When::kMiddle), When::kMiddle},
       {when_name(When::kAfter), When::kAfter}}};
  action.when = read_word(table, "when", kWhen, When::kBefore);
  action.target = read_kill_target(table);
  if (action.when == When::kMiddle) {
    const Amount half{.bytes = 0, .share = 0.5};
    action.at = read_text<Amount>(table, "at", half, parse_amount);
  } else if (table.has("at")) {
    table.error_at("at", "`at` needs when = \"middle\"");
  }
  return action;
}

Action read_corrupt_action(TomlReader& table) {
  CorruptAction action;
  constexpr std::array<std::pair<std::string_view, Corruption>, 4> kKinds = {
      {{"flip", Corruption::kFlip},
       {"zero", Corruption::kZero},
       {"stale", Corruption::kStale},
       {"swap", Corruption::kSwap}}};
  constexpr std::array<std::pair<std::string_view, CorruptOn>, 2> kOn = {
      {{"in", CorruptOn::kIn}, {"out", CorruptOn::kOut}}};
  action.kind = read_word(table, "corrupt", kKinds, Corruption::kFlip);
  action.on = read_word(table, "on", kOn, CorruptOn::kIn);
  action.at = read_text<Amount>(table, "at", {}, parse_amount);
  action.length = read_text<std::uint64_t>(table, "length", 1, parse_bytes);
  if (action.length == 0) table.error_at("length", "`length` must be at least 1 byte");
  if (table.has("with")) {
    action.with = read_text<Amount>(table, "with", {}, parse_amount);
    if (action.kind != Corruption::kSwap) table.error_at("with", "`with` needs corrupt = \"swap\"");
  }
  return action;
}

// Only ever true: a rule that does not hang or lie has another action.
void read_true(TomlReader& table, std::string_view key) {
  if (!table.boolean(key, true)) table.error_at(key, fmt::format("`{}` can only be true", key));
}

std::string describe_ops(std::uint64_t ops) {
  std::vector<std::string_view> words;
  for (; ops != 0; ops &= ops - 1) {
    words.push_back(op_name(static_cast<Op>(std::countr_zero(ops))));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

// Names that were made get a number where they occur twice; names that were given must not.
class Names {
 public:
  void given(TomlReader& table, const std::string& name) {
    if (!seen_.insert(name).second) {
      table.error_at("name",
                     fmt::format("the name `{}` is taken by an earlier rule or budget", name));
    }
  }
  std::string made(const std::string& base) {
    std::string name = base;
    for (int n = 2; !seen_.insert(name).second; ++n) name = fmt::format("{} ({})", base, n);
    return name;
  }

 private:
  std::set<std::string> seen_;
};

}  // namespace

void unknown_word(TomlReader& table, std::string_view key, std::string_view found,
                  const std::vector<std::string>& valid) {
  std::string hint = did_you_mean(found, valid);
  if (hint.empty()) hint = fmt::format("; valid: {}", fmt::join(valid, ", "));
  table.error_at(key, fmt::format("`{}` cannot be `{}`{}", key, found, hint));
}

KillTarget read_kill_target(TomlReader& table) {
  constexpr std::array<std::pair<std::string_view, KillTarget>, 3> kTarget = {
      {{"rank", KillTarget::kRank}, {"child", KillTarget::kChild}, {"job", KillTarget::kJob}}};
  return read_word(table, "target", kTarget, KillTarget::kRank);
}

Action read_action(TomlReader& table) {
  const std::vector<std::string> kinds = {"errno",   "short",     "delay",   "hang", "kill",
                                          "corrupt", "lie",       "missing", "race", "timestamps",
                                          "stale",   "bandwidth", "freeze",  "lose"};
  std::vector<std::string> found;
  for (const std::string& kind : kinds) {
    if (table.has(kind)) found.push_back(kind);
  }
  if (found.empty()) {
    for (const std::string& kind : kinds) table.text(kind);  // a misspelt one is told by its name
    table.error_missing(fmt::format("an action needs one of: {}", fmt::join(kinds, ", ")));
    return ErrnoAction{};
  }
  if (found.size() > 1) {
    table.error_at(found[1], fmt::format("an action is one of {}; make another rule for the others",
                                         fmt::join(found, ", ")));
  }
  const std::string& kind = found.front();
  if (kind == "errno") return read_errno_action(table);
  if (kind == "kill") return read_kill_action(table);
  if (kind == "corrupt") return read_corrupt_action(table);
  if (kind == "missing") return read_missing_action(table);
  if (kind == "race") return read_race_action(table);
  if (kind == "timestamps") return read_timestamps_action(table);
  if (kind == "stale") return read_stale_action(table);
  if (kind == "short") return ShortAction{read_text<Amount>(table, "short", {}, parse_amount)};
  if (kind == "delay") return read_delay_action(table);
  if (kind == "bandwidth") return read_bandwidth_action(table);
  if (kind == "freeze") return read_freeze_action(table);
  read_true(table, kind);
  if (kind == "hang") return HangAction{};
  if (kind == "lose") return LoseAction{};
  return LieAction{};
}

Rule read_rule(TomlReader& table) {
  Rule rule;
  rule.name = table.string("name");
  if (auto match = table.table("match")) rule.match = read_match(*match);
  if (auto action = table.table("action")) {
    rule.action = read_action(*action);
  } else {
    table.error_missing("a rule needs an `action`, such as action = { errno = \"ENOSPC\" }");
  }
  rule.required = table.boolean("required", true);
  if (acting_ops(rule.match, rule.action) == 0) {
    table.error_at("match", fmt::format("`{}` can never act on {}", to_string(rule.action),
                                        describe_ops(rule.match.ops)));
  }
  if (rule.name.empty()) {
    rule.name = fmt::format("{} on {}", to_string(rule.action), to_string(rule.match));
  }
  return rule;
}

BudgetSpec read_budget(TomlReader& table) {
  BudgetSpec budget;
  budget.name = table.string("name");
  budget.path = table.string("path", "**");
  budget.ranks = read_numbers(table, "rank", 0);
  if (!table.has("limit") && !table.has("inodes")) {
    table.error_missing("a budget needs a `limit`, such as limit = \"1GiB\", or `inodes`");
  }
  const auto limit = read_text<std::uint64_t>(table, "limit", 0, parse_bytes);
  if (table.has("limit")) budget.limit = limit;
  const auto inodes = static_cast<std::uint64_t>(table.integer("inodes", 0, 0, INT64_MAX));
  if (table.has("inodes")) budget.inodes = inodes;
  if (budget.inodes && !budget.ranks.empty()) {
    table.error_at(
        "rank", "`rank` goes with `limit`: who took an inode is not known when it is given back");
  }
  budget.error = read_errno(table, ENOSPC);
  constexpr std::uint64_t kMostBlock = std::uint64_t{1} << 30;
  const auto block = read_text<std::uint64_t>(table, "block", 4096, parse_bytes);
  if (block == 0 || block > kMostBlock) {
    table.error_at("block", "`block` must be between 1 byte and 1GiB");
  } else {
    budget.block = static_cast<std::uint32_t>(block);
  }
  budget.required = table.boolean("required", true);
  if (budget.name.empty()) {
    std::vector<std::string> parts;
    if (budget.limit) parts.push_back(print_bytes(*budget.limit));
    if (budget.inodes) parts.push_back(fmt::format("{} inodes", *budget.inodes));
    budget.name = fmt::format("budget {} on {}", fmt::join(parts, ", "), budget.path);
    if (!budget.ranks.empty())
      budget.name += fmt::format(" of rank {}", fmt::join(budget.ranks, ", "));
  }
  return budget;
}

// preset = "nfs", or preset = { name = "full-disk", limit = "64MiB" }
Plan read_preset(TomlReader& table) {
  constexpr std::string_view kKey = "preset";
  std::string name;
  PresetValues values;
  if (table.is_table(kKey)) {
    for (auto& [key, value] : table.string_map(kKey)) values[key] = value;
    name = values["name"];
    values.erase("name");
  } else {
    name = table.string(kKey);
  }
  if (!table.has(kKey)) return {};
  auto plan = preset_plan(name, values);
  if (plan) return *std::move(plan);
  table.error_at(kKey, plan.error().to_string());
  return {};
}

Plan read_plan(TomlReader& table, std::string_view rules_key, std::string_view budgets_key) {
  Plan plan;
  std::vector<TomlReader> rules = table.tables(rules_key);
  std::vector<TomlReader> budgets = table.tables(budgets_key);
  for (TomlReader& rule : rules) plan.rules.push_back(read_rule(rule));
  for (TomlReader& budget : budgets) plan.budgets.push_back(read_budget(budget));
  const Plan preset = read_preset(table);
  // Given names first, so that a made one never takes a given one away.
  Names names;
  for (const Rule& rule : preset.rules) names.given(table, rule.name);
  for (const BudgetSpec& budget : preset.budgets) names.given(table, budget.name);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].string("name").empty()) names.given(rules[i], plan.rules[i].name);
  }
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    if (!budgets[i].string("name").empty()) names.given(budgets[i], plan.budgets[i].name);
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].string("name").empty()) plan.rules[i].name = names.made(plan.rules[i].name);
  }
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    if (budgets[i].string("name").empty()) plan.budgets[i].name = names.made(plan.budgets[i].name);
  }
  plan.rules.insert(plan.rules.end(), preset.rules.begin(), preset.rules.end());
  plan.budgets.insert(plan.budgets.end(), preset.budgets.begin(), preset.budgets.end());
  return plan;
}

Result<Plan> parse_plan(std::string_view toml, std::string_view source_name) {
  SAVEGATE_TRY(TomlDocument document, parse_toml(toml, source_name));
  TomlReader root = document.root();
  Plan plan = read_plan(root, "rule", "budget");
  plan.seed = read_text<std::uint64_t>(root, "seed", 1, parse_whole);
  SAVEGATE_CHECK(root.finish());
  return plan;
}

}  // namespace savegate::faults
