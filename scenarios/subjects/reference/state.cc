#include "scenarios/subjects/reference/state.h"

#include <algorithm>

#include "gpu/fill.h"

namespace savegate::reference {
namespace {

using gpu::Dtype;

constexpr std::uint64_t kSeed = 20;
constexpr std::uint64_t kColumns = 64;

struct ParameterSpec {
  const char* name;
  bool is_expert;
  Dtype dtype;
  std::uint64_t percent;  // of a rank's bytes, with its moments
};

constexpr std::array<ParameterSpec, 6> kModel = {{
    {"model.embed", false, Dtype::kBf16, 30},
    {"model.layers.0.attention", false, Dtype::kF32, 15},
    {"model.layers.0.experts", true, Dtype::kF8E4m3, 15},
    {"model.layers.1.attention", false, Dtype::kBf16, 15},
    {"model.layers.1.experts", true, Dtype::kF8E4m3, 15},
    {"model.token_map", false, Dtype::kI64, 10},
}};

// Which slice of how many.
struct Slice {
  std::uint64_t index;
  std::uint64_t count;
};

class Builder {
 public:
  Builder(gpu::Backend& backend, State& state, const Placement& placement)
      : backend_(backend), state_(state), placement_(placement) {}

  Result<std::size_t> add(const std::string& name, const std::string& kind, Dtype dtype,
                          std::uint64_t rows, const Slice& slice) {
    const gpu::Tensor shape_only{dtype, {rows, kColumns}, nullptr};
    SAVEGATE_TRY(gpu::Buffer memory, backend_.allocate(shape_only.bytes()));
    NamedTensor named{name,
                      kind,
                      {dtype, shape_only.shape, memory.get()},
                      {rows * slice.count, kColumns},
                      {rows * slice.index, 0}};
    state_.memory.push_back(std::move(memory));
    state_.tensors.push_back(std::move(named));
    return state_.tensors.size() - 1;
  }

  Result<void> add_parameter(const ParameterSpec& spec, std::uint64_t bytes) {
    Parameter parameter{.trained_by_adam = gpu::float_format(spec.dtype).has_value()};
    const std::uint64_t element =
        gpu::dtype_bytes(spec.dtype) + (parameter.trained_by_adam ? 2 * sizeof(float) : 0);
    const std::uint64_t rows = std::max<std::uint64_t>(1, bytes / (element * kColumns));
    const std::string name = name_of(spec);
    const Slice slice = slice_of(spec);
    SAVEGATE_TRY(parameter.value, add(name, "parameter", spec.dtype, rows, slice));
    if (parameter.trained_by_adam) {
      SAVEGATE_TRY(parameter.average,
                   add("optimizer.exp_avg." + name, "optimizer", Dtype::kF32, rows, slice));
      SAVEGATE_TRY(parameter.average_of_squares,
                   add("optimizer.exp_avg_sq." + name, "optimizer", Dtype::kF32, rows, slice));
    }
    state_.parameters.push_back(parameter);
    return {};
  }

 private:
  std::string name_of(const ParameterSpec& spec) const {
    if (!spec.is_expert || placement_.expert_parallel == 1) return spec.name;
    return spec.name + expert_suffix(placement_.expert_rank());
  }
  Slice slice_of(const ParameterSpec& spec) const {
    const int apart = spec.is_expert ? placement_.expert_parallel : 1;
    return {static_cast<std::uint64_t>(placement_.rank / apart),
            static_cast<std::uint64_t>(placement_.world / apart)};
  }

  gpu::Backend& backend_;
  State& state_;
  const Placement placement_;
};

worker::Item small_item(const std::string& name, const std::string& kind, const std::string& scope,
                        const std::string& dtype, const gpu::Shape& shape, const void* data,
                        std::uint64_t bytes) {
  return {name,
          kind,
          scope,
          dtype,
          shape,
          shape,
          gpu::Shape(shape.size(), 0),
          bytes,
          gpu::digest_of(data, bytes).hex()};
}

}  // namespace

std::uint64_t RandomStream::draw() {
  return gpu::random_bits({seed, gpu::name_hash(name), 0}, drawn++);
}

std::vector<RandomStream> fresh_random(int rank) {
  std::vector<RandomStream> streams;
  for (const char* name : {"cpu", "gpu", "python", "numpy"}) {
    streams.push_back({name, kSeed + static_cast<std::uint64_t>(rank), 0});
  }
  return streams;
}

std::string expert_suffix(int expert_rank) { return ".ep" + std::to_string(expert_rank); }

Result<State> State::create(gpu::Backend& backend, const Placement& placement,
                            std::uint64_t bytes) {
  if (placement.world % placement.expert_parallel != 0) {
    return fail(invalid("an expert parallel size of " + std::to_string(placement.expert_parallel) +
                        " does not divide " + std::to_string(placement.world) + " ranks"));
  }
  State state;
  Builder builder(backend, state, placement);
  for (const ParameterSpec& spec : kModel) {
    const std::uint64_t share =
        bytes / static_cast<std::uint64_t>(placement.world) * spec.percent / 100;
    SAVEGATE_CHECK(builder.add_parameter(spec, share));
  }
  state.random = fresh_random(placement.rank);
  return state;
}

Result<void> State::start(gpu::Backend& backend, int rank) {
  for (const NamedTensor& named : tensors) {
    gpu::FillKey key{kSeed, gpu::name_hash(named.name), 0};
    const std::uint64_t first = named.offset[0] * kColumns;
    if (named.kind == "parameter") SAVEGATE_CHECK(backend.fill(named.tensor, key, first));
  }
  scheduler = Scheduler{};
  random = fresh_random(rank);
  counters = Counters{};
  return {};
}

std::vector<worker::Item> small_items(const Scheduler& scheduler,
                                      const std::vector<RandomStream>& random,
                                      const Counters& counters, const Contract& contract) {
  std::vector<worker::Item> items;
  const std::array<double, 3> rates = {scheduler.base, scheduler.current, scheduler.decay};
  items.push_back(small_item("scheduler.learning_rate", "scheduler", "replica", "f64", {3},
                             rates.data(), sizeof(rates)));
  for (const RandomStream& stream : random) {
    const std::array<std::uint64_t, 2> words = {stream.seed, stream.drawn};
    items.push_back(
        small_item("rng." + stream.name, "rng", "rank", "u64", {2}, words.data(), sizeof(words)));
  }
  const std::array<std::pair<const char*, std::int64_t>, 4> values = {
      {{"counter.global_step", counters.global_step},
       {"counter.optimizer_step", counters.optimizer_step},
       {"counter.effective_steps", counters.effective_steps},
       {"counter.data_cursor", counters.data_cursor}}};
  for (const auto& [name, value] : values) {
    items.push_back(small_item(name, "counter", "replica", "i64", {}, &value, sizeof(value)));
  }
  for (const auto& [name, value] : contract.items()) {
    items.push_back(small_item("contract." + name, "contract", "replica", "bytes", {value.size()},
                               value.data(), value.size()));
  }
  return items;
}

Result<std::vector<worker::Item>> digest_items(gpu::Backend& backend, const State& state,
                                               const Contract& contract) {
  std::vector<gpu::Tensor> tensors;
  tensors.reserve(state.tensors.size());
  for (const NamedTensor& named : state.tensors) tensors.push_back(named.tensor);
  SAVEGATE_TRY(const std::vector<gpu::Digest> digests, backend.digests(tensors));
  std::vector<worker::Item> items;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const NamedTensor& named = state.tensors[i];
    items.push_back({named.name, named.kind, "shard",
                     std::string(gpu::dtype_name(named.tensor.dtype)), named.global_shape,
                     named.tensor.shape, named.offset, named.tensor.bytes(), digests[i].hex()});
  }
  for (worker::Item& item : small_items(state.scheduler, state.random, state.counters, contract)) {
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace savegate::reference
