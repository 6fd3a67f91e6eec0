#include "harness/scenario.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <variant>

#include "faults/toml.h"
#include "harness/subject.h"
#include "harness/time_limit.h"

namespace savegate::harness {
namespace {

using faults::TomlReader;

template <class Enum>
struct Word {
  Enum value;
  std::string_view name;
};

constexpr std::array<Word<Outcome>, 6> kOutcomes = {{
    {Outcome::kComplete, "complete"},
    {Outcome::kFailTogether, "fail-together"},
    {Outcome::kRefuseTogether, "refuse-together"},
    {Outcome::kKilled, "killed"},
    {Outcome::kHeld, "held"},
    {Outcome::kAny, "any"},
}};

constexpr std::array<Word<Tamper::Kind>, 7> kTampers = {{
    {Tamper::Kind::kRemove, "remove"},
    {Tamper::Kind::kEmpty, "empty"},
    {Tamper::Kind::kTruncate, "truncate"},
    {Tamper::Kind::kFlip, "flip"},
    {Tamper::Kind::kZero, "zero"},
    {Tamper::Kind::kSwap, "swap"},
    {Tamper::Kind::kForeign, "foreign"},
}};

constexpr std::array<Word<Death>, 5> kDeaths = {{
    {Death::kGuard, "guard"},
    {Death::kCgroupOom, "cgroup-oom"},
    {Death::kGpuOutOfMemory, "gpu-out-of-memory"},
    {Death::kKilled, "killed"},
    {Death::kCrash, "crash"},
}};

using EnforcedBy = MemoryLimit::EnforcedBy;
constexpr std::array<Word<EnforcedBy>, 3> kEnforcers = {{
    {EnforcedBy::kNobody, "nobody"},
    {EnforcedBy::kGuard, "guard"},
    {EnforcedBy::kKernel, "kernel"},
}};

constexpr std::array<faults::When, 3> kWhens = {faults::When::kBefore, faults::When::kMiddle,
                                                faults::When::kAfter};

template <class Enum, std::size_t N>
std::string_view name_of(const std::array<Word<Enum>, N>& words, Enum value) {
  for (const auto& word : words)
    if (word.value == value) return word.name;
  return "?";
}

template <class Enum, std::size_t N>
std::optional<Enum> value_of(const std::array<Word<Enum>, N>& words, std::string_view name) {
  for (const auto& word : words)
    if (word.name == name) return word.value;
  return std::nullopt;
}

template <class Enum, std::size_t N>
std::vector<std::string> names_of(const std::array<Word<Enum>, N>& words) {
  std::vector<std::string> names;
  names.reserve(N);
  for (const auto& word : words) names.emplace_back(word.name);
  return names;
}

template <class Enum, std::size_t N>
Enum read_word(TomlReader& table, std::string_view key, const std::array<Word<Enum>, N>& words,
               Enum otherwise) {
  const std::string name = table.word(key, names_of(words), name_of(words, otherwise));
  return value_of(words, name).value_or(otherwise);
}

faults::Amount read_amount(TomlReader& table, std::string_view key) {
  std::string text = table.text(key);
  if (text.empty()) return {};
  auto amount = faults::parse_amount(text);
  if (amount) return *amount;
  table.error_at(key, amount.error().text);
  return {};
}

// "save 3" and the like: what SAVEGATE_UNTIL and `resumed` may say.
bool is_save_point(std::string_view text) {
  constexpr std::string_view kPrefix = "save ";
  if (!text.starts_with(kPrefix)) return false;
  text.remove_prefix(kPrefix.size());
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && number > 0;
}

// A name is part of a folder's name and of command lines.
std::string read_name(TomlReader& table) {
  std::string name = table.required_string("name");
  if (table.has("name") &&
      (name.empty() || name.front() == '.' ||
       name.find_first_not_of(
           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
           std::string::npos))
    table.error_at("name", "`" + name + "` is no name: use letters, digits, `-`, `_` and `.`");
  return name;
}

Expect read_expect(TomlReader& table) {
  Expect expect;
  expect.outcome = read_word(table, "outcome", kOutcomes, Outcome::kComplete);
  expect.within_ns = read_time_limit(table, "within", expect.within_ns);
  expect.names = table.string("names");
  if (table.has("death")) expect.death = read_word(table, "death", kDeaths, Death::kKilled);
  expect.resumed = table.strings("resumed");
  for (const std::string& point : expect.resumed)
    if (point != "none" && !is_save_point(point))
      table.error_at("resumed", "`" + point + "` is not \"save N\" or \"none\"");
  return expect;
}

Tamper read_tamper(TomlReader& table) {
  Tamper tamper;
  tamper.kind = read_word(table, "kind", kTampers, Tamper::Kind::kRemove);
  tamper.path = table.string("path");
  std::string role = table.word("role", {"shard", "marker", "pointer", "auxiliary"},
                                faults::role_name(tamper.role));
  tamper.role = faults::role_from_name(role).value_or(faults::Role::kShard);
  tamper.rank = static_cast<int>(table.integer("rank", 0, 0, 1 << 20));
  if (table.has("other_rank"))
    tamper.other_rank = static_cast<int>(table.integer("other_rank", 0, 0, 1 << 20));
  if (tamper.kind == Tamper::Kind::kSwap && !tamper.other_rank)
    table.error_at("kind", "a swap needs other_rank, the file to exchange with");
  tamper.at = read_amount(table, "at");
  return tamper;
}

std::uint64_t read_bytes(TomlReader& table, std::string_view key) {
  auto bytes = faults::parse_bytes(table.text(key));
  if (bytes) return *bytes;
  table.error_at(key, bytes.error().text);
  return 0;
}

Limits read_limits(TomlReader& table) {
  Limits limits;
  if (table.has("open_files"))
    limits.open_files = static_cast<std::uint64_t>(table.integer("open_files", 0, 1, 1 << 30));
  if (table.has("file_size")) limits.file_size = read_bytes(table, "file_size");
  if (limits.file_size == 0)
    table.error_at("file_size", "a `file_size` of 0 leaves a rank no byte to write, nor an event");
  if (!limits.any()) table.error_at("", "limits are open_files and file_size");
  return limits;
}

MemoryLimit read_memory_limit(TomlReader& table) {
  MemoryLimit memory;
  memory.bytes = read_bytes(table, "limit");
  memory.enforced_by = read_word(table, "enforced_by", kEnforcers, memory.enforced_by);
  memory.threshold = table.number("threshold", memory.threshold, 0.01, 1);
  if (!memory.any()) table.error_at("", "memory needs a `limit`, such as \"512MiB\"");
  if (table.has("threshold") && memory.enforced_by == EnforcedBy::kKernel)
    table.error_at("threshold", "the kernel knows no threshold");
  return memory;
}

bool is_hang_rule(const faults::Rule& rule, const std::string& name) {
  return rule.name == name && std::holds_alternative<faults::HangAction>(rule.action);
}

Hog read_hog(TomlReader& table, const faults::Plan& plan) {
  Hog hog;
  hog.at = table.required_string("at");
  hog.headroom = read_bytes(table, "headroom");
  if (std::none_of(plan.rules.begin(), plan.rules.end(),
                   [&](const faults::Rule& rule) { return is_hang_rule(rule, hog.at); }))
    table.error_at("at", "no rule of this life named `" + hog.at + "` has `hang = true`");
  return hog;
}

LifeSpec read_life(TomlReader& table, std::uint64_t seed) {
  LifeSpec life;
  life.until = table.required_string("until");
  if (!life.until.empty() && !is_save_point(life.until))
    table.error_at("until", "`" + life.until + "` is not \"save N\"");
  life.plan = faults::read_plan(table, "rules", "budgets");
  life.plan.seed = seed;
  for (auto& [name, value] : table.string_map("env")) life.env[name] = value;
  if (auto limits = table.table("limits")) life.limits = read_limits(*limits);
  if (auto memory = table.table("memory")) life.memory = read_memory_limit(*memory);
  life.change = table.string("change");
  for (TomlReader& tamper : table.tables("tamper")) life.tamper.push_back(read_tamper(tamper));
  if (auto hog = table.table("hog")) life.hog = read_hog(*hog, life.plan);
  life.wake_probe = table.boolean("wake_probe", false);
  if (auto expect = table.table("expect")) life.expect = read_expect(*expect);
  life.no_progress_ns = read_time_limit(table, "no_progress", life.no_progress_ns);
  return life;
}

void read_moment(TomlReader& table, const std::string& name, std::vector<faults::When>& moments) {
  std::vector<std::string> names;
  for (const faults::When when : kWhens) {
    names.emplace_back(faults::when_name(when));
    if (names.back() != name) continue;
    moments.push_back(when);
    return;
  }
  table.error_at("when", "unknown moment `" + name + "`" + faults::did_you_mean(name, names));
}

Generator read_generator(TomlReader& table) {
  Generator generator;
  generator.at =
      table.word("at", {"every operation", "every write", "every phase"}, "every operation");
  generator.phase = table.string("phase", generator.phase);
  generator.life = static_cast<int>(table.integer("life", 1, 1, 1000));
  for (std::int64_t rank : table.integers("ranks", 0, 4095))
    generator.ranks.push_back(static_cast<int>(rank));
  for (const std::string& name : table.strings("when")) read_moment(table, name, generator.when);
  if (auto action = table.table("action"))
    generator.action = faults::read_action(*action);
  else
    table.error_at("", "a generator needs an action");
  generator.pairs = table.boolean("pairs", false);
  if (table.has("sample"))
    generator.sample = static_cast<std::uint64_t>(table.integer("sample", 1, 1, 1'000'000));
  return generator;
}

Scenario read_scenario(TomlReader& table, const Suite& suite, int world, std::uint64_t seed) {
  Scenario scenario;
  scenario.suite = suite.name;
  scenario.name = read_name(table);
  scenario.source = table.where();
  scenario.summary = table.required_string("summary");
  scenario.requirements = table.strings("requirements");
  scenario.world = static_cast<int>(table.integer("world", world, 1, 4096));
  scenario.devices = table.words("devices", device_names());
  scenario.seed = static_cast<std::uint64_t>(
      table.integer("seed", static_cast<std::int64_t>(seed), 0, INT64_MAX));
  for (auto& [name, value] : table.string_map("variables")) scenario.variables[name] = value;
  for (TomlReader& life : table.tables("life"))
    scenario.lives.push_back(read_life(life, scenario.seed));
  if (scenario.lives.empty())
    table.error_at("life", "a scenario needs at least one [[scenario.life]]");
  if (auto generator = table.table("generator")) {
    scenario.generator = read_generator(*generator);
    if (scenario.generator->life > static_cast<int>(scenario.lives.size()))
      table.error_at("generator", "its life is beyond the scenario's last life");
  }
  return scenario;
}

}  // namespace

bool Scenario::has_neighbour() const {
  return std::any_of(lives.begin(), lives.end(),
                     [](const LifeSpec& life) { return life.wake_probe || !life.hog.at.empty(); });
}

bool Scenario::limits_memory() const {
  return std::any_of(lives.begin(), lives.end(),
                     [](const LifeSpec& life) { return life.memory.any(); });
}

std::string_view outcome_name(Outcome outcome) { return name_of(kOutcomes, outcome); }
std::string_view tamper_name(Tamper::Kind kind) { return name_of(kTampers, kind); }

std::string_view death_name(Death death) { return name_of(kDeaths, death); }
std::string_view enforcer_name(EnforcedBy enforcer) { return name_of(kEnforcers, enforcer); }

std::optional<Outcome> outcome_from_name(std::string_view name) {
  return value_of(kOutcomes, name);
}

std::optional<Tamper::Kind> tamper_from_name(std::string_view name) {
  return value_of(kTampers, name);
}

std::optional<Death> death_from_name(std::string_view name) { return value_of(kDeaths, name); }

std::optional<EnforcedBy> enforcer_from_name(std::string_view name) {
  return value_of(kEnforcers, name);
}

namespace {

Result<std::string> text_of_suite(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(invalid("cannot read the suite", path));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<Suite> read_suite(std::string_view toml, std::string_view source_name, bool is_included) {
  SAVEGATE_TRY(faults::TomlDocument document, faults::parse_toml(toml, source_name));
  TomlReader root = document.root();
  Suite suite;
  suite.name = read_name(root);
  suite.summary = root.required_string("summary");
  const int world = static_cast<int>(root.integer("world", 2, 1, 4096));
  const auto seed = static_cast<std::uint64_t>(root.integer("seed", 1, 0, INT64_MAX));
  const auto most = static_cast<std::uint64_t>(root.integer("sample", INT64_MAX, 1, INT64_MAX));
  for (const std::string& name : root.strings("include")) {
    if (is_included) {
      root.error_at("include", "a suite that is included cannot include others");
      break;
    }
    const auto path = std::filesystem::path(source_name).parent_path() / (name + ".toml");
    SAVEGATE_TRY(const std::string text, text_of_suite(path.string()));
    SAVEGATE_TRY(Suite included, read_suite(text, path.string(), /*is_included=*/true));
    for (Scenario& scenario : included.scenarios) {
      if (root.has("sample") && scenario.generator)
        scenario.generator->sample = std::min(most, scenario.generator->sample.value_or(most));
    }
    std::move(included.scenarios.begin(), included.scenarios.end(),
              std::back_inserter(suite.scenarios));
  }
  if (root.has("sample") && !root.has("include"))
    root.error_at(
        "sample",
        "`sample` here is of the sweeps in suites that are included; name them with `include`");
  for (TomlReader& table : root.tables("scenario"))
    suite.scenarios.push_back(read_scenario(table, suite, world, seed));
  SAVEGATE_CHECK(root.finish());
  for (std::size_t i = 0; i < suite.scenarios.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (suite.scenarios[i].name == suite.scenarios[j].name &&
          suite.scenarios[i].suite == suite.scenarios[j].suite)
        return fail(invalid(suite.scenarios[i].source + ": the scenario `" +
                            suite.scenarios[i].name + "` is already defined at " +
                            suite.scenarios[j].source));
  return suite;
}

}  // namespace

Result<Suite> parse_suite(std::string_view toml, std::string_view source_name) {
  return read_suite(toml, source_name, /*is_included=*/false);
}

Result<Suite> load_suite(const std::string& toml_path) {
  SAVEGATE_TRY(const std::string text, text_of_suite(toml_path));
  return parse_suite(text, toml_path);
}

}  // namespace savegate::harness
