#include "harness/oracles/gpu_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/death.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;
using Fact = std::optional<std::uint64_t>;

// Allocators work in blocks, and a block in which anything is alive stays: that much more is no
// finding. CUDA's pools take 32 MiB at a time (50 MB of a small state were seen in four of them).
std::uint64_t slack(std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = 128 << 20;
  return std::max(kLeast, bytes / 50);
}

Fact fact(const Event& event, const std::string& name) {
  const auto found = event.memory.find(name);
  return found == event.memory.end() ? std::nullopt : found->second;
}

const std::vector<Event>& events_of(const Life& life, int rank) {
  return life.events[static_cast<std::size_t>(rank)].events;
}

bool on_gpu(const Life& life, int rank) {
  const Event* hello = first_event(life, rank, EventKind::kHello);
  return hello != nullptr && hello->device != "cpu";
}

// Calls `visit` with each life and rank that runs on a GPU.
template <class Visit>
void each_gpu_rank(const Evidence& evidence, Visit visit) {
  for (const Life& life : evidence.lives) {
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      if (on_gpu(life, static_cast<int>(rank))) visit(life, static_cast<int>(rank));
    }
  }
}

bool has_memory_events(const Evidence& evidence) {
  bool any = false;
  each_gpu_rank(evidence, [&](const Life& life, int rank) {
    any = any || first_event(life, rank, EventKind::kMemory) != nullptr;
  });
  return any;
}

constexpr std::int64_t kAnyStep = -1;

// The rank's last record of that name and step.
const Event* record_of(const Life& life, int rank, const std::string& phase, std::int64_t step) {
  const Event* found = nullptr;
  for (const Event& event : events_of(life, rank)) {
    if (event.kind == EventKind::kMemory && event.name == phase &&
        (step == kAnyStep || event.step == step)) {
      found = &event;
    }
  }
  return found;
}

// The phase that the event ends and that must have been recorded on both sides, "" for none.
std::string recorded_phase(const Event& event) {
  if (event.kind == EventKind::kDurable && event.ok) return "save";
  if (event.kind == EventKind::kResumed && event.ok && event.step) return "load";
  if (event.kind == EventKind::kExport) return "export";
  return "";
}

// A rank that records nothing more may have died or failed between the phase and its record.
bool recorded_later(const Life& life, int rank, const Event& event) {
  const auto& events = events_of(life, rank);
  return std::any_of(events.begin(), events.end(), [&](const Event& later) {
    return later.kind == EventKind::kMemory && later.time_ns > event.time_ns;
  });
}

void check_record(const Life& life, int rank, const Event& event, const std::string& name,
                  Lines& lines) {
  // Before a load its step is not known yet.
  const std::int64_t step = name == "before load" ? kAnyStep : event.step.value_or(kAnyStep);
  const Event* record = record_of(life, rank, name, step);
  if (record == nullptr) {
    lines.push_back(fmt::format("{}: no memory event \"{}\"", quote(life, rank, event), name));
    return;
  }
  for (const char* wanted : {"gpu_allocated", "gpu_reserved", "gpu_free"}) {
    if (fact(*record, wanted)) continue;
    lines.push_back(
        fmt::format("{} \"{}\": {} was not obtained", quote(life, rank, *record), name, wanted));
  }
}

std::string compared(const Life& life, int rank, const Event& event, const std::string& name) {
  return fmt::format("{} \"{}\": {} {} bytes", quote(life, rank, event), event.name, name,
                     fact(event, name).value_or(0));
}

// What the allocator holds after the load and does not use.
void check_load(const Life& life, int rank, std::size_t& judged, Lines& lines) {
  const Event* resumed = resumed_event(life, rank);
  if (resumed == nullptr || !resumed->ok || !resumed->step) return;
  const Event* load = record_of(life, rank, "load", *resumed->step);
  if (load == nullptr) return;
  const Fact allocated = fact(*load, "gpu_allocated");
  const Fact reserved = fact(*load, "gpu_reserved");
  if (!allocated || !reserved) return;
  ++judged;
  if (*reserved <= *allocated + slack(*allocated)) return;
  lines.push_back(compared(life, rank, *load, "gpu_allocated"));
  lines.push_back(compared(life, rank, *load, "gpu_reserved"));
}

// The first update after the resume against that of the same step in a life before, where it was
// not the first.
void check_first_step(const Evidence& evidence, const Life& life, int rank, std::size_t& judged,
                      Lines& lines) {
  const Event* resumed = resumed_event(life, rank);
  if (resumed == nullptr || !resumed->ok || !resumed->step) return;
  const std::int64_t step = *resumed->step + 1;
  const Event* first = record_of(life, rank, "update", step);
  if (first == nullptr || !fact(*first, "gpu_reserved_peak")) return;
  for (const Life& earlier : evidence.lives) {
    if (&earlier == &life) return;
    const Event* began = resumed_event(earlier, rank);
    if (began != nullptr && began->step && *began->step == *resumed->step) continue;
    const Event* straight = record_of(earlier, rank, "update", step);
    const Fact peak = straight == nullptr ? std::nullopt : fact(*straight, "gpu_reserved_peak");
    if (!peak) continue;
    ++judged;
    if (*fact(*first, "gpu_reserved_peak") <= *peak + slack(*peak)) continue;
    lines.push_back(compared(earlier, rank, *straight, "gpu_reserved_peak"));
    lines.push_back(compared(life, rank, *first, "gpu_reserved_peak"));
  }
}

// As counted by the rank's allocator until its last record.
Fact last_fact(const Life& life, int rank, const std::string& name) {
  Fact last;
  for (const Event& event : events_of(life, rank)) {
    if (event.kind != EventKind::kMemory) continue;
    if (const Fact found = fact(event, name)) last = found;
  }
  return last;
}

}  // namespace

bool runs_on_gpu(const Evidence& evidence) {
  bool any = false;
  each_gpu_rank(evidence, [&](const Life& /*life*/, int /*rank*/) { any = true; });
  return any;
}

reports::Verdict gpu_memory_recorded(const Evidence& evidence) {
  if (!runs_on_gpu(evidence)) return skip("G1", "no rank runs on a GPU");
  if (!has_memory_events(evidence)) return skip("G1", "no memory events");
  std::size_t judged = 0;
  Lines lines;
  each_gpu_rank(evidence, [&](const Life& life, int rank) {
    for (const Event& event : events_of(life, rank)) {
      const std::string phase = recorded_phase(event);
      if (phase.empty() || !recorded_later(life, rank, event)) continue;
      ++judged;
      check_record(life, rank, event, "before " + phase, lines);
      check_record(life, rank, event, phase, lines);
    }
  });
  if (!lines.empty()) {
    return violated("G1", "GPU memory was not recorded before and after a phase", std::move(lines));
  }
  if (judged == 0) return skip("G1", "no save, load or export was finished");
  return pass(
      "G1",
      fmt::format("GPU memory was recorded before and after {} saves, loads and exports", judged));
}

reports::Verdict load_gives_cache_back(const Evidence& evidence) {
  if (!runs_on_gpu(evidence)) return skip("G2", "no rank runs on a GPU");
  std::size_t judged = 0;
  Lines lines;
  each_gpu_rank(evidence, [&](const Life& life, int rank) {
    check_load(life, rank, judged, lines);
    check_first_step(evidence, life, rank, judged, lines);
  });
  if (!lines.empty()) {
    return violated("G2", "the allocator holds on to what the load has used", std::move(lines));
  }
  if (judged == 0) return skip("G2", "no memory facts of a load, or of a first step after it");
  return pass("G2", fmt::format("{} loads and first steps hold no more than they use, or than the "
                                "uninterrupted run",
                                judged));
}

reports::Verdict others_can_allocate(const Evidence& evidence) {
  if (!runs_on_gpu(evidence)) return skip("G3", "no rank runs on a GPU");
  std::size_t judged = 0;
  Lines lines;
  each_gpu_rank(evidence, [&](const Life& life, int rank) {
    for (const Event& after : events_of(life, rank)) {
      if (after.kind != EventKind::kMemory || after.name != "save" || !after.step) continue;
      const Event* before = record_of(life, rank, "before save", *after.step);
      const Fact was = before == nullptr ? std::nullopt : fact(*before, "gpu_wakeable");
      const Fact is = fact(after, "gpu_wakeable");
      if (!was || !is) continue;
      ++judged;
      // What the program itself has on the device, not the device, says how much may get lost.
      if (*is + slack(fact(*before, "gpu_allocated").value_or(0)) >= *was) continue;
      lines.push_back(compared(life, rank, *before, "gpu_wakeable"));
      lines.push_back(compared(life, rank, after, "gpu_wakeable"));
    }
  });
  if (!lines.empty()) {
    return violated("G3", "after a save another process can allocate less than before it",
                    std::move(lines));
  }
  if (judged == 0) return skip("G3", "no probe allocated before and after a save");
  return pass("G3",
              fmt::format("after {} saves a probe could allocate what it could before", judged));
}

reports::Verdict retry_is_no_end(const Evidence& evidence) {
  if (!runs_on_gpu(evidence)) return skip("G4", "no rank runs on a GPU");
  std::uint64_t retries = 0;
  std::size_t ends = 0;
  Lines wrong;
  Lines unknown;
  each_gpu_rank(evidence, [&](const Life& life, int rank) {
    const Fact retried = last_fact(life, rank, "gpu_retries");
    const Fact refused = last_fact(life, rank, "gpu_refusals");
    retries += retried.value_or(0);
    const Event* end = out_of_memory_report(life, rank);
    if (end == nullptr) return;
    const std::string quoted = fmt::format("{}: {}", quote(life, rank, *end), end->error->text);
    if (!refused) {
      unknown.push_back(quoted + "; gpu_refusals was not obtained");
    } else if (*refused == 0) {
      wrong.push_back(
          fmt::format("{}; gpu_refusals 0, gpu_retries {}", quoted, retried.value_or(0)));
    } else {
      ++ends;
    }
  });
  if (!wrong.empty()) {
    return violated("G4",
                    "reported as out of memory, though the allocator has refused nothing for good",
                    std::move(wrong));
  }
  if (!unknown.empty()) {
    return invalid_evidence("G4", "an out-of-memory end that cannot be told from a retry",
                            std::move(unknown));
  }
  if (retries == 0 && ends == 0) return skip("G4", "no allocation failed");
  return pass("G4", fmt::format("{} out-of-memory ends, each of an allocation refused for good; {} "
                                "retries that were granted",
                                ends, retries));
}

}  // namespace savegate::harness
