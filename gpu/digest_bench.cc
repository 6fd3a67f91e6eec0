#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "gpu/digest.h"
#include "gpu/fill.h"

namespace savegate::gpu {
namespace {

void digest_memory(benchmark::State& state) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
  fill_host({Dtype::kU8, {bytes.size()}, bytes.data()}, {.seed = 1, .name_hash = 1, .step = 0}, 0);
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(digest_of(bytes.data(), bytes.size()));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(digest_memory)->Arg(4096)->Arg(1 << 20)->Arg(64 << 20)->Arg(1 << 30);

// What one thread reads at best, as memcpy reads it: into a target that stays in the cache.
void read_memory(benchmark::State& state) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{1});
  std::vector<std::byte> target(16384);
  for ([[maybe_unused]] auto _ : state) {
    for (std::size_t at = 0; at < bytes.size(); at += target.size()) {
      std::memcpy(target.data(), bytes.data() + at, target.size());
      benchmark::DoNotOptimize(target.data());
      benchmark::ClobberMemory();
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(read_memory)->Arg(64 << 20)->Arg(1 << 30);

void digest_by_threads(benchmark::State& state) {
  std::vector<std::byte> bytes(std::size_t{1} << 30, std::byte{1});
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(
        digest_of(bytes.data(), bytes.size(), static_cast<unsigned>(state.range(0))));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}
BENCHMARK(digest_by_threads)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Arg(16)->UseRealTime();

void fill_memory(benchmark::State& state) {
  std::vector<std::byte> bytes(8 << 20);
  const Tensor tensor{Dtype::kBf16, {bytes.size() / 2}, bytes.data()};
  for ([[maybe_unused]] auto _ : state)
    fill_host(tensor, {.seed = 1, .name_hash = 1, .step = 0}, 0);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}
BENCHMARK(fill_memory);

}  // namespace
}  // namespace savegate::gpu
