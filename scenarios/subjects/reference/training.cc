#include "scenarios/subjects/reference/training.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gpu/fill.h"
#include "scenarios/subjects/reference/number.h"

namespace savegate::reference {
namespace {

constexpr std::int64_t kSamplesPerRank = 8;  // in a step

// Folds a value into a running number.
std::uint64_t fold(std::uint64_t sum, std::uint64_t value) {
  return gpu::random_bits({sum, value, 0}, 0);
}

struct Adam {
  float rate;
  float scale;
  gpu::FillKey noise;
  std::uint64_t first_index;

  // The new value of an ordinary number; its moments are brought forward.
  float operator()(float value, float& average, float& squares, std::uint64_t index) const {
    const std::uint64_t bits = gpu::random_bits(noise, first_index + index);
    const float uniform = static_cast<float>(bits >> 40) * 0x1p-23F - 1;
    const float gradient = scale * (uniform + 0.05F * value);
    average = 0.9F * average + 0.1F * gradient;
    squares = 0.99F * squares + 0.01F * gradient * gradient;
    return value - rate * average / (std::sqrt(squares) + 1e-8F);
  }
};

template <class Word>
bool update_floats(std::byte* data, std::uint64_t count, float* averages, float* squares,
                   Number number, const Adam& adam) {
  bool changed = false;
  for (std::uint64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, data + i * sizeof(Word), sizeof(Word));
    if (!number.is_ordinary(word)) continue;
    const float value = adam(number.decode(word), averages[i], squares[i], i);
    const Word updated = static_cast<Word>(number.encode(value));
    changed = changed || updated != word;
    std::memcpy(data + i * sizeof(Word), &updated, sizeof(Word));
  }
  return changed;
}

// A table of integers has no gradient; it is stirred while there is one elsewhere.
bool update_integers(std::byte* data, std::uint64_t count, const Adam& adam) {
  if (adam.scale == 0) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t word;
    std::memcpy(&word, data + i * sizeof(word), sizeof(word));
    word = word * 0x5851f42d4c957f2dULL + gpu::random_bits(adam.noise, adam.first_index + i);
    std::memcpy(data + i * sizeof(word), &word, sizeof(word));
  }
  return count > 0;
}

constexpr std::uint64_t kElementsTogether = 1 << 18;

// Some elements of a tensor, brought to the host and back.
class HostCopy {
 public:
  static Result<HostCopy> of(gpu::Backend& backend, const gpu::Tensor& tensor, std::uint64_t first,
                             std::uint64_t count) {
    const std::uint64_t width = gpu::dtype_bytes(tensor.dtype);
    HostCopy copy(backend, tensor, first * width, count * width);
    SAVEGATE_CHECK(backend.copy_to_host(copy.data(), tensor, first * width, count * width));
    return copy;
  }
  std::byte* data() { return bytes_.data(); }
  float* floats() { return reinterpret_cast<float*>(bytes_.data()); }
  Result<void> put_back() {
    return backend_.copy_from_host(tensor_, offset_, bytes_.data(), bytes_.size());
  }

 private:
  HostCopy(gpu::Backend& backend, const gpu::Tensor& tensor, std::uint64_t offset,
           std::uint64_t bytes)
      : backend_(backend), tensor_(tensor), offset_(offset), bytes_(bytes) {}

  gpu::Backend& backend_;
  const gpu::Tensor& tensor_;
  std::uint64_t offset_;
  std::vector<std::byte> bytes_;
};

bool update_part(gpu::Dtype dtype, HostCopy& values, HostCopy& averages, HostCopy& squares,
                 std::uint64_t count, const Adam& adam) {
  const Number number(*gpu::float_format(dtype));
  switch (gpu::dtype_bytes(dtype)) {
    case 1:
      return update_floats<std::uint8_t>(values.data(), count, averages.floats(), squares.floats(),
                                         number, adam);
    case 2:
      return update_floats<std::uint16_t>(values.data(), count, averages.floats(), squares.floats(),
                                          number, adam);
    default:
      return update_floats<std::uint32_t>(values.data(), count, averages.floats(), squares.floats(),
                                          number, adam);
  }
}

}  // namespace

Result<StepReport> Training::step(State& state) {
  StepReport report;
  Counters& counters = state.counters;
  const std::int64_t first = counters.data_cursor + job_.rank * kSamplesPerRank;
  report.samples = {{first, first + kSamplesPerRank - 1}};
  SAVEGATE_TRY(const std::uint64_t batch, agree_on_batch(state, report.samples));
  // Gradients and activations would be here; the allocator keeps what the step gives back.
  gpu::Buffer working_memory;
  if (job_.step_bytes > 0) {
    SAVEGATE_TRY(working_memory, job_.backend.allocate(job_.step_bytes));
  }
  for (const Parameter& parameter : state.parameters) {
    SAVEGATE_TRY(const bool changed, update(state, parameter, batch));
    report.changed = report.changed || changed;
  }
  ++counters.global_step;
  ++counters.optimizer_step;
  if (report.changed) ++counters.effective_steps;
  counters.data_cursor += job_.world * kSamplesPerRank;
  state.scheduler.current *= state.scheduler.decay;
  return report;
}

Result<std::uint64_t> Training::agree_on_batch(State& state, const worker::Samples& samples) {
  std::uint64_t own = 0;
  for (RandomStream& stream : state.random) own = fold(own, stream.draw());
  for (const auto& [first, last] : samples) {
    own = fold(own, static_cast<std::uint64_t>(first));
    own = fold(own, static_cast<std::uint64_t>(last));
  }
  own = fold(own, static_cast<std::uint64_t>(state.counters.optimizer_step));
  Comms& comms = job_.device_comms != nullptr ? *job_.device_comms : job_.comms;
  SAVEGATE_TRY(const auto all,
               comms.all_gather(std::string(reinterpret_cast<const char*>(&own), sizeof(own))));
  std::uint64_t batch = 0;
  for (const std::string& each : all) {
    std::uint64_t word = 0;
    each.copy(reinterpret_cast<char*>(&word), sizeof(word));
    batch = fold(batch, word);
  }
  return batch;
}

// Wherever the tensors live, the host computes: its arithmetic is the same on every machine.
Result<bool> Training::update(State& state, const Parameter& parameter, std::uint64_t batch) const {
  const NamedTensor& value = state.tensors[parameter.value];
  const std::uint64_t count = gpu::elements(value.tensor.shape);
  Adam adam{static_cast<float>(state.scheduler.current), gradient_scale(),
            gpu::FillKey{batch, gpu::name_hash(value.name), 1},
            value.offset[0] * value.tensor.shape[1]};
  bool changed = false;
  for (std::uint64_t at = 0; at < count; at += kElementsTogether) {
    const std::uint64_t part = std::min(kElementsTogether, count - at);
    SAVEGATE_TRY(HostCopy values, HostCopy::of(job_.backend, value.tensor, at, part));
    if (!parameter.trained_by_adam) {
      changed = update_integers(values.data(), part, adam) || changed;
    } else {
      SAVEGATE_TRY(HostCopy averages,
                   HostCopy::of(job_.backend, state.tensors[parameter.average].tensor, at, part));
      SAVEGATE_TRY(
          HostCopy squares,
          HostCopy::of(job_.backend, state.tensors[parameter.average_of_squares].tensor, at, part));
      changed = update_part(value.tensor.dtype, values, averages, squares, part, adam) || changed;
      SAVEGATE_CHECK(averages.put_back());
      SAVEGATE_CHECK(squares.put_back());
    }
    SAVEGATE_CHECK(values.put_back());
    adam.first_index += part;
  }
  return changed;
}

}  // namespace savegate::reference
