#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "harness/worker/c_digests.h"
#include "harness/worker/savegate.h"
#include "harness/worker/worker.h"

#define SAVEGATE_EXPORT extern "C" __attribute__((visibility("default")))

struct savegate_worker {
  savegate::worker::Worker worker = savegate::worker::Worker::from_environment();
};

namespace {

namespace gpu = savegate::gpu;
using savegate::Result;
using savegate::Status;
using savegate::worker::Item;

thread_local std::string last_error;

// Runs what may throw (memory that is out) and says what it said; nothing crosses the boundary.
template <class Call>
int guarded(Call&& call) noexcept {
  try {
    if (Result<void> done = call(); !done) {
      last_error = done.error().to_string();
      return -1;
    }
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
    return -1;
  }
}

// One event of a worker.
template <class Call>
int told(savegate_worker* worker, Call&& call) noexcept {
  return guarded([&]() -> Result<void> {
    if (worker == nullptr) return fail(savegate::invalid("the worker is NULL"));
    return call(worker->worker);
  });
}

std::string text(const char* words) { return words == nullptr ? "" : words; }

std::vector<std::uint64_t> extents(const std::uint64_t* first, std::size_t count) {
  return first == nullptr ? std::vector<std::uint64_t>() : std::vector(first, first + count);
}

std::vector<Item> items_of(const savegate_item* items, std::size_t count) {
  std::vector<Item> all;
  all.reserve(count);
  for (const savegate_item* item = items; item != items + count; ++item) {
    all.push_back({.name = text(item->name),
                   .kind = text(item->kind),
                   .scope = text(item->scope),
                   .dtype = text(item->dtype),
                   .global_shape = extents(item->global_shape, item->dimensions),
                   .local_shape = extents(item->local_shape, item->dimensions),
                   .offset = extents(item->offset, item->dimensions),
                   .bytes = item->bytes,
                   .digest = text(item->digest)});
  }
  return all;
}

std::optional<std::uint64_t> known(std::int64_t count) {
  if (count < 0) return std::nullopt;
  return static_cast<std::uint64_t>(count);
}

Status status_of(const savegate_failure& failure) {
  Status status;
  status.code = savegate::Code::kSystem;
  status.error = failure.error;
  status.operation = text(failure.operation);
  status.path = text(failure.path);
  status.rank = failure.rank;
  status.offset = known(failure.offset);
  status.asked = known(failure.requested);
  status.done = known(failure.returned);
  status.text = text(failure.text);
  return status;
}

Result<void> outcome(const savegate_failure* failure) {
  if (failure == nullptr) return {};
  return fail(status_of(*failure));
}

}  // namespace

SAVEGATE_EXPORT int savegate_contract(void) { return SAVEGATE_CONTRACT; }
SAVEGATE_EXPORT const char* savegate_error(void) { return last_error.c_str(); }

SAVEGATE_EXPORT savegate_worker* savegate_open(void) {
  savegate_worker* worker = nullptr;
  guarded([&]() -> Result<void> {
    worker = new savegate_worker();
    return {};
  });
  return worker;
}
SAVEGATE_EXPORT void savegate_close(savegate_worker* worker) { delete worker; }

SAVEGATE_EXPORT int savegate_rank(const savegate_worker* worker) {
  return worker->worker.environment().rank;
}
SAVEGATE_EXPORT int savegate_world(const savegate_worker* worker) {
  return worker->worker.environment().world;
}
SAVEGATE_EXPORT int savegate_life(const savegate_worker* worker) {
  return worker->worker.environment().life;
}
SAVEGATE_EXPORT int savegate_until_save(const savegate_worker* worker) {
  return worker->worker.environment().until_save().value_or(0);
}

SAVEGATE_EXPORT int savegate_hello(savegate_worker* worker, const char* const* versions) {
  return told(worker, [&](auto& to) -> Result<void> {
    std::map<std::string, std::string> all;
    for (const char* const* each = versions; each != nullptr && *each != nullptr; each += 2) {
      if (each[1] == nullptr) return fail(savegate::invalid("a name in `versions` has no version"));
      all[each[0]] = each[1];
    }
    to.hello(all);
    return {};
  });
}

SAVEGATE_EXPORT int savegate_load_begin(savegate_worker* worker) {
  return told(worker, [](auto& to) -> Result<void> {
    to.load_begin();
    return {};
  });
}

SAVEGATE_EXPORT int savegate_resumed(savegate_worker* worker, int64_t step,
                                     const char* path_or_null, const savegate_item* items,
                                     size_t count) {
  return told(worker, [&](auto& to) -> Result<void> {
    savegate::worker::Resumed resumed;
    if (step != SAVEGATE_NOTHING) resumed.step = step;
    resumed.path = text(path_or_null);
    resumed.items = items_of(items, count);
    to.resumed(resumed);
    return {};
  });
}

SAVEGATE_EXPORT int savegate_load_refused(savegate_worker* worker, const char* path_or_null,
                                          const savegate_failure* failure) {
  return told(worker, [&](auto& to) -> Result<void> {
    if (failure == nullptr) return fail(savegate::invalid("a refused load has a failure"));
    to.load_refused(text(path_or_null), status_of(*failure));
    return {};
  });
}

SAVEGATE_EXPORT int savegate_update(savegate_worker* worker, int64_t step, int changed,
                                    const int64_t* samples, size_t ranges) {
  return told(worker, [&](auto& to) -> Result<void> {
    savegate::worker::Samples all;
    for (std::size_t i = 0; i < ranges; ++i) {
      all.emplace_back(samples[2 * i], samples[2 * i + 1]);
    }
    to.update(step, changed != 0, all);
    return {};
  });
}

SAVEGATE_EXPORT int savegate_save_begin(savegate_worker* worker, int64_t step, int save,
                                        const savegate_item* items, size_t count) {
  return told(worker, [&](auto& to) -> Result<void> {
    to.save_begin(step, save, items_of(items, count));
    return {};
  });
}

SAVEGATE_EXPORT int savegate_save_end(savegate_worker* worker, int64_t step, int save,
                                      const savegate_failure* failure_or_null) {
  return told(worker, [&](auto& to) -> Result<void> {
    to.save_end(step, save, outcome(failure_or_null));
    return {};
  });
}

SAVEGATE_EXPORT int savegate_durable(savegate_worker* worker, int64_t step, int save,
                                     const savegate_failure* failure_or_null) {
  return told(worker, [&](auto& to) -> Result<void> {
    to.durable(step, save, outcome(failure_or_null));
    return {};
  });
}

SAVEGATE_EXPORT int savegate_exported(savegate_worker* worker, int64_t step, const char* digest) {
  return told(worker, [&](auto& to) -> Result<void> {
    to.exported(step, text(digest));
    return {};
  });
}

SAVEGATE_EXPORT int savegate_memory(savegate_worker* worker, int64_t step, const char* phase,
                                    const savegate_fact* facts, size_t count) {
  return told(worker, [&](auto& to) -> Result<void> {
    savegate::worker::Memory all;
    for (std::size_t i = 0; i < count; ++i) all[text(facts[i].name)] = known(facts[i].bytes);
    to.memory(step, text(phase), all);
    return {};
  });
}

SAVEGATE_EXPORT int savegate_collective_enter(savegate_worker* worker, const char* communicator,
                                              uint64_t number, const char* kind) {
  return told(worker, [&](auto& to) -> Result<void> {
    to.collective_enter(text(communicator), number, text(kind));
    return {};
  });
}

SAVEGATE_EXPORT int savegate_collective_exit(savegate_worker* worker, const char* communicator,
                                             uint64_t number, const char* kind) {
  return told(worker, [&](auto& to) -> Result<void> {
    to.collective_exit(text(communicator), number, text(kind));
    return {};
  });
}

SAVEGATE_EXPORT int savegate_phase(savegate_worker* worker, const char* name) {
  return told(worker, [&](auto& to) -> Result<void> {
    to.phase(text(name));
    return {};
  });
}

SAVEGATE_EXPORT int savegate_done(savegate_worker* worker) {
  return told(worker, [](auto& to) -> Result<void> {
    to.done();
    return {};
  });
}

SAVEGATE_EXPORT int savegate_digests(const char* device, const savegate_memory_range* ranges,
                                     size_t count, char (*digests)[33]) {
  return guarded([&]() -> Result<void> {
    std::vector<gpu::Tensor> memory;
    memory.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      // Tensors may be written to; what is digested is not.
      auto* data = static_cast<std::byte*>(const_cast<void*>(ranges[i].data));
      memory.push_back({gpu::Dtype::kU8, {ranges[i].bytes}, data});
    }
    SAVEGATE_TRY(const std::vector<gpu::Digest> all,
                 savegate::worker::digests_on(text(device), memory));
    for (std::size_t i = 0; i < count; ++i) {
      const std::string hex = all[i].hex();
      digests[i][hex.copy(digests[i], 32)] = '\0';
    }
    return {};
  });
}
