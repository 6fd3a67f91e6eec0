#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/oracles/resume.h"
#include "harness/oracles/samples.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

std::size_t rng_streams(const SaveCall& call) {
  const auto& items = call.begin->items;
  return static_cast<std::size_t>(std::count_if(
      items.begin(), items.end(), [](const Item& item) { return item.kind == "rng"; }));
}

// What the saves tell of: the kinds, and the least RNG streams that a rank has.
struct ToldState {
  std::set<std::string> kinds;
  std::size_t streams = SIZE_MAX;
};

// What the subject says its checkpoints hold is there.
void check_kinds(const Claims& claims, const SaveGroup& group, ToldState& told, Lines& lines) {
  std::set<std::string> kinds;
  for (const SaveCall& call : group.calls) {
    for (const Item& item : call.begin->items) kinds.insert(item.kind);
    const std::size_t streams = rng_streams(call);
    told.streams = std::min(told.streams, streams);
    if (streams < static_cast<std::size_t>(claims.rng_streams)) {
      lines.push_back(fmt::format("{}: {} RNG streams of {}",
                                  quote(*group.life, call.rank, *call.begin), streams,
                                  claims.rng_streams));
    }
  }
  for (const std::string& kind : claims.state) {
    if (!kinds.contains(kind)) {
      lines.push_back(fmt::format("life {} step {}: no item of kind {}", group.life->record.number,
                                  group.step, kind));
    }
  }
  told.kinds.merge(kinds);
}

std::set<std::string> stored_names(const std::vector<Item>& items) {
  std::set<std::string> names;
  for (const Item& item : items) {
    if (item.kind != "contract" && item.kind != "derived") names.insert(item.name);
  }
  return names;
}

void check_names(const View& view, const Life& life, int rank, const Event& resumed, Lines& lines) {
  const auto writers = view.writers(*resumed.step, life.record.started_ns);
  if (writers.empty()) return;  // judged by F2
  const SaveCall* call = writers.back()->call_of(rank);
  if (call == nullptr) return;
  const auto saved = stored_names(call->begin->items);
  const auto restored = stored_names(resumed.items);
  for (const std::string& name : saved) {
    if (!restored.contains(name)) {
      lines.push_back(
          fmt::format("{}: `{}` was saved and not restored", quote(life, rank, resumed), name));
    }
  }
  for (const std::string& name : restored) {
    if (!saved.contains(name)) {
      lines.push_back(
          fmt::format("{}: `{}` was restored and never saved", quote(life, rank, resumed), name));
    }
  }
}

std::string summary_of(const ToldState& told) {
  Lines kinds;
  Lines missing;
  for (const std::string& kind : state_kinds()) {
    if (!told.kinds.contains(kind)) {
      missing.push_back(kind);
    } else if (kind == "rng") {
      kinds.push_back(fmt::format("rng ({} a rank)", told.streams));
    } else {
      kinds.push_back(kind);
    }
  }
  const std::string text = fmt::format("{}", fmt::join(kinds, ", "));
  return missing.empty() ? text
                         : fmt::format("{} (never told of: {})", text, fmt::join(missing, ", "));
}

}  // namespace

reports::Verdict whole_state(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  ToldState told;
  Lines lines;
  for (const SaveGroup& group : view.groups()) {
    const bool has_items =
        std::any_of(group.calls.begin(), group.calls.end(),
                    [](const SaveCall& call) { return !call.begin->items.empty(); });
    if (!has_items) continue;
    ++judged;
    check_kinds(evidence.subject.claims, group, told, lines);
  }
  for (const Life& life : evidence.lives) {
    for (int rank = 0; rank < view.world(); ++rank) {
      const Event* resumed = resumed_event(life, rank);
      if (resumed != nullptr && resumed->ok && resumed->step) {
        check_names(view, life, rank, *resumed, lines);
      }
    }
  }
  const SampleCheck samples = check_samples(view);
  lines.insert(lines.end(), samples.flaws.begin(), samples.flaws.end());
  if (!lines.empty()) {
    const std::string first = lines.front();
    return violated("R2", first, std::move(lines));
  }
  if (judged == 0) return skip("R2", "no save tells of its items");
  return pass("R2", fmt::format("{} saves hold {}; {}", judged, summary_of(told), samples.summary));
}

}  // namespace savegate::harness
