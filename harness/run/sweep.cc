#include "harness/run/sweep.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "faults/random.h"

namespace savegate::harness {
namespace {

using faults::KillAction;
using faults::Op;
using faults::OpClass;
using faults::Rule;
using faults::TraceRecord;
using faults::When;

constexpr double kMiddle = 0.5;

enum class Kind : std::uint8_t { kOperations, kWrites, kPhases };

Result<Kind> kind_of(const Generator& generator) {
  if (generator.at == "every operation") return Kind::kOperations;
  if (generator.at == "every write") return Kind::kWrites;
  if (generator.at == "every phase") return Kind::kPhases;
  return fail(invalid("generator at = \"" + generator.at +
                      "\": it is \"every operation\", \"every write\" or \"every phase\""));
}

bool is_write(Op op) { return op == Op::kWrite || op == Op::kCopyFileRange; }

bool belongs(Kind kind, Op op) {
  switch (kind) {
    case Kind::kPhases:
      return op == Op::kPhase;
    case Kind::kWrites:
      return is_write(op);
    case Kind::kOperations:
      break;
  }
  if (op == Op::kOpen) return true;
  return op != Op::kPhase && op != Op::kRelease && op != Op::kLock &&
         faults::op_class(op) != OpClass::kQuery;
}

// A phase covers the points within it: "save 2" is also "save 2/commit".
bool in_phase(const std::string& phase, const std::string& wanted) {
  if (wanted.empty()) return true;
  return faults::Glob(wanted).matches(phase) || faults::Glob(wanted + "/**").matches(phase);
}

std::string escaped(const std::string& path) {
  std::string glob;
  for (const char letter : path) {
    if (std::string_view("*?[]\\{}").find(letter) != std::string_view::npos) glob += '\\';
    glob += letter;
  }
  return glob;
}

// What a rule's `phase` says of just this mark: its place in the span, or the span's own name at
// its ends.
std::string mark_pattern(const TraceRecord& record) {
  const std::string span = record.phase.substr(0, record.phase.find('/'));
  return escaped(span == record.path2 ? span : span + "/" + record.path2);
}

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// What the saves outside of the phase call their files.
class Names {
 public:
  Names(const faults::Trace& trace, const std::string& phase) {
    for (const TraceRecord& record : trace.records) {
      const bool of_a_save = record.phase.starts_with("save ") && record.op != Op::kPhase;
      if (!of_a_save || in_phase(record.phase, phase)) continue;
      for (const std::string& part : components(record.path)) known_.insert(without_numbers(part));
    }
  }

  // The path, with a star for each part that is made up anew each time.
  std::string glob(const std::string& path) const {
    std::string glob;
    for (const std::string& part : components(path)) {
      if (!glob.empty()) glob += '/';
      const bool comes_again = known_.empty() || known_.contains(without_numbers(part));
      glob += comes_again ? escaped(part) : "*";
    }
    return glob;
  }

 private:
  static std::string without_numbers(const std::string& text) {
    std::string kept;
    for (const char letter : text) {
      const bool digit = letter >= '0' && letter <= '9';
      if (!digit || !kept.ends_with('#')) kept += digit ? '#' : letter;
    }
    return kept;
  }

  std::set<std::string> known_;
};

// Whoever calls is killed: that is a child only where a child calls.
bool is_for_children(const Generator& generator) {
  const auto* kill = std::get_if<KillAction>(&generator.action);
  return kill != nullptr && kill->target == faults::KillTarget::kChild;
}

SweepPoint make_point(const Generator& generator, const TraceRecord& record,
                      const std::string& pattern, std::uint64_t nth) {
  SweepPoint point;
  point.rule.match.ops = faults::op_bit(record.op);
  point.rule.match.ranks = {record.caller.rank};
  point.rule.match.phase = generator.phase;
  point.rule.match.nth = nth;
  if (is_for_children(generator)) point.rule.match.relations = {faults::Relation::kChild};
  // An error of reads and writes lasts: where the kernel cuts a call into several operations and a
  // later one fails, the caller sees a short call and rightly asks again for the rest.
  const bool lasts = std::holds_alternative<faults::ErrnoAction>(generator.action) &&
                     faults::op_class(record.op) == OpClass::kData;
  if (lasts) point.rule.match.every = 1;
  point.rule.action = generator.action;
  point.text =
      "rank " + std::to_string(record.caller.rank) + " " + std::string(faults::op_name(record.op));
  if (record.op == Op::kPhase) {
    point.text += " " + record.path + " " + record.path2;
    point.rule.match.phase = pattern;
  } else {
    point.rule.match.path = pattern;
    const bool made_up = pattern != escaped(record.path);
    point.text += " " + (record.path.empty() ? "." : made_up ? pattern : record.path);
  }
  point.text += " nth " + std::to_string(nth);
  return point;
}

// The moments at which the point's action is tried: one, unless it is a kill.
void add_moments(const Generator& generator, const TraceRecord& record, const SweepPoint& point,
                 std::vector<SweepPoint>& points) {
  const auto* kill = std::get_if<KillAction>(&generator.action);
  if (kill == nullptr) {
    points.push_back(point);
    return;
  }
  std::vector<When> moments = generator.when;
  if (moments.empty()) moments = {kill->when};
  for (const When when : moments) {
    const bool divisible = faults::op_class(record.op) == OpClass::kData && record.requested > 1;
    if (when == When::kMiddle && !divisible) continue;
    SweepPoint moment = point;
    KillAction action = *kill;
    action.when = when;
    if (when == When::kMiddle && action.at == faults::Amount{}) action.at.share = kMiddle;
    moment.rule.action = action;
    moment.text += ' ';
    moment.text += faults::when_name(when);
    points.push_back(std::move(moment));
  }
}

// As a rule on that path counts.
std::uint64_t count_like(const TraceRecord& record, const std::string& pattern,
                         const std::vector<const TraceRecord*>& records) {
  const faults::Glob glob(pattern);
  const auto count = std::count_if(records.begin(), records.end(), [&](const TraceRecord* other) {
    return other->caller.rank == record.caller.rank && other->op == record.op &&
           glob.matches(other->path);
  });
  return static_cast<std::uint64_t>(count);
}

std::vector<SweepPoint> all_points(const Generator& generator, Kind kind,
                                   const faults::Trace& trace) {
  std::vector<SweepPoint> points;
  std::map<std::tuple<int, Op, std::string>, std::uint64_t> seen;
  const Names names(trace, generator.phase);
  std::vector<const TraceRecord*> records;
  for (const TraceRecord& record : trace.records) records.push_back(&record);
  // The injector counts operations as they begin; the trace is in the order of their ends.
  std::sort(records.begin(), records.end(),
            [](const TraceRecord* a, const TraceRecord* b) { return a->begin_seq < b->begin_seq; });
  std::erase_if(records, [&](const TraceRecord* record) {
    const int rank = record->caller.rank;
    const auto& ranks = generator.ranks;
    if (is_for_children(generator) && record->caller.relation != faults::Relation::kChild) {
      return true;
    }
    return rank < 0 || !belongs(kind, record->op) || !in_phase(record->phase, generator.phase) ||
           (!ranks.empty() && std::find(ranks.begin(), ranks.end(), rank) == ranks.end());
  });
  for (std::ptrdiff_t at = 0; at < std::ssize(records); ++at) {
    const TraceRecord& record = *records[static_cast<std::size_t>(at)];
    const std::string pattern =
        record.op == Op::kPhase ? mark_pattern(record) : names.glob(record.path);
    std::uint64_t nth = ++seen[{record.caller.rank, record.op, pattern}];
    // A failed one (a directory that a faster rank had made) need not come again.
    if (record.error != 0) continue;
    if (record.op != Op::kPhase && pattern != escaped(record.path)) {
      nth = count_like(record, pattern, {records.begin(), records.begin() + at + 1});
    }
    add_moments(generator, record, make_point(generator, record, pattern, nth), points);
  }
  return points;
}

// `count` of the indices below `size`, in their order: the same on every machine.
std::vector<std::size_t> sample(std::size_t size, std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> indices(size);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  if (count >= size) return indices;
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(indices[i], indices[i + faults::mix_bits(faults::mix_bits(seed) ^ i) % (size - i)]);
  }
  indices.resize(count);
  std::sort(indices.begin(), indices.end());
  return indices;
}

// What is tried at once, by their indices: each point, or each two of different ranks.
using Together = std::vector<std::size_t>;
std::vector<Together> tries_of(const std::vector<SweepPoint>& points, bool pairs) {
  std::vector<Together> tries;
  for (std::size_t first = 0; first < points.size(); ++first) {
    if (!pairs) tries.push_back({first});
    for (std::size_t second = first + 1; pairs && second < points.size(); ++second) {
      if (points[first].rule.match.ranks == points[second].rule.match.ranks) continue;
      tries.push_back({first, second});
    }
  }
  return tries;
}

// The first one may end what the others were to meet.
void add_rules(const std::vector<SweepPoint>& points, const Together& together, LifeSpec& life,
               std::string& text) {
  for (const std::size_t index : together) {
    Rule rule = points[index].rule;
    rule.name = points[index].text;
    rule.required = index == together.front();
    text += (text.empty() ? "" : ", ") + rule.name;
    life.plan.rules.push_back(std::move(rule));
  }
}

std::string numbered(const std::string& name, std::size_t number) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "-%04zu", number);
  return name + text.data();
}

}  // namespace

Scenario clean_scenario(const Scenario& scenario) {
  Scenario clean = scenario;
  clean.name += "-clean";
  clean.generator.reset();
  clean.requirements.clear();  // they need the fault
  if (scenario.generator) {
    clean.lives.resize(static_cast<std::size_t>(std::max(1, scenario.generator->life)));
  }
  LifeSpec& swept = clean.lives.back();
  swept.plan.rules.clear();
  swept.plan.budgets.clear();
  swept.expect = Expect{};
  return clean;
}

std::string sweep_trace(const std::string& clean_folder, const Scenario& scenario) {
  const int life = scenario.generator ? scenario.generator->life : 1;
  return clean_folder + "/life-" + std::to_string(life) + "/trace.bin";
}

Result<std::vector<SweepPoint>> sweep_points(const Generator& generator,
                                             const faults::Trace& trace) {
  SAVEGATE_TRY(const Kind kind, kind_of(generator));
  return all_points(generator, kind, trace);
}

Result<Sweep> make_sweep(const Scenario& scenario, const faults::Trace& trace) {
  if (!scenario.generator) return fail(invalid("scenario " + scenario.name + " has no generator"));
  const Generator& generator = *scenario.generator;
  if (generator.life < 1 || static_cast<std::size_t>(generator.life) > scenario.lives.size()) {
    return fail(invalid("generator of " + scenario.name + ": there is no life " +
                        std::to_string(generator.life)));
  }
  SAVEGATE_TRY(const std::vector<SweepPoint> points, sweep_points(generator, trace));
  const std::vector<Together> tries = tries_of(points, generator.pairs);
  Sweep sweep;
  sweep.coverage.scenario = scenario.name;
  sweep.coverage.known = tries.size();
  for (const std::size_t index :
       sample(tries.size(), generator.sample.value_or(tries.size()), scenario.seed)) {
    Scenario one = scenario;
    one.generator.reset();
    one.name = numbered(scenario.name, index + 1);
    add_rules(points, tries[index], one.lives[static_cast<std::size_t>(generator.life - 1)],
              one.point);
    sweep.scenarios.push_back(std::move(one));
  }
  sweep.coverage.tried = sweep.scenarios.size();
  return sweep;
}

}  // namespace savegate::harness
