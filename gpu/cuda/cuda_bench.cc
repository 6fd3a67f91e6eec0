// Speeds on one GPU, each beside its ceiling, which is measured in the same run on the same bytes:
// the counter `of_ceiling` is their ratio. Times are those of whole calls, the launch and the wait
// included.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <vector>

#include "gpu/backend.h"
#include "gpu/cuda/ceilings.h"
#include "gpu/staging_pool.h"

namespace savegate::gpu {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr FillKey kKey{.seed = 1, .name_hash = 2, .step = 3};

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// One backend and 16 GiB of random bytes for all benchmarks.
struct Bench {
  std::unique_ptr<Backend> backend;
  Buffer memory;
  Buffer scratch;

  Tensor tensor(std::uint64_t offset, std::uint64_t bytes) const {
    return {Dtype::kU8, {bytes}, memory.get() + offset};
  }
};

Bench& bench() {
  static Bench one = [] {
    Bench opened{.backend = must(open_backend("cuda", 0)), .memory = {}, .scratch = {}};
    opened.memory = must(opened.backend->allocate(16 * kGiB));
    opened.scratch = must(opened.backend->allocate(4096));
    must(opened.backend->fill({Dtype::kU64, {2 * kGiB}, opened.memory.get()}, kKey, 0));
    return opened;
  }();
  return one;
}

void expect(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::abort();
}

// Seconds of the median of many calls.
double median_seconds(const std::function<void()>& call) {
  std::vector<double> seconds;
  for (int i = 0; i < 15; ++i) {
    const auto began = std::chrono::steady_clock::now();
    call();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 7, seconds.end());
  return seconds[7];
}

double read_rate(std::uint64_t bytes) {
  static std::map<std::uint64_t, double> known;
  double& rate = known[bytes];
  if (rate == 0) {
    rate = static_cast<double>(bytes) / median_seconds([&] {
             expect(cuda::read_once(bench().memory.get(), bytes, bench().scratch.get(), nullptr));
             expect(cudaStreamSynchronize(nullptr));
           });
  }
  return rate;
}

double write_rate(std::uint64_t bytes) {
  static std::map<std::uint64_t, double> known;
  double& rate = known[bytes];
  if (rate == 0) {
    const Buffer target = must(bench().backend->allocate(bytes));
    rate = static_cast<double>(bytes) / median_seconds([&] {
             expect(cuda::write_once(target.get(), bytes, nullptr));
             expect(cudaStreamSynchronize(nullptr));
           });
  }
  return rate;
}

void report(benchmark::State& state, std::uint64_t bytes, double ceiling) {
  const double all = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(all / 1e9, benchmark::Counter::kIsRate);
  state.counters["of_ceiling"] =
      ceiling > 0 ? benchmark::Counter(all / ceiling, benchmark::Counter::kIsRate)
                  : benchmark::Counter(std::nan(""));
}

void read_ceiling(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  for ([[maybe_unused]] auto _ : state) {
    expect(cuda::read_once(bench().memory.get(), bytes, bench().scratch.get(), nullptr));
    expect(cudaStreamSynchronize(nullptr));
  }
  report(state, bytes, 0);
}
BENCHMARK(read_ceiling)->Arg(kGiB)->Arg(8 * kGiB)->UseRealTime();

void digest_one(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const double ceiling = read_rate(bytes);
  const Tensor tensor = bench().tensor(0, bytes);
  must(bench().backend->digest(tensor));
  for ([[maybe_unused]] auto _ : state) must(bench().backend->digest(tensor));
  report(state, bytes, ceiling);
}
BENCHMARK(digest_one)
    ->Arg(1 << 20)
    ->Arg(16 << 20)
    ->Arg(256 << 20)
    ->Arg(kGiB)
    ->Arg(4 * kGiB)
    ->Arg(8 * kGiB)
    ->UseRealTime();

// 64 KiB to 4 MiB, evenly spread in their logarithm; against one read of all their bytes.
void digest_thousand(benchmark::State& state) {
  std::vector<Tensor> tensors;
  std::uint64_t at = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto bytes = static_cast<std::uint64_t>(65536 * std::exp2(6.0 * i / 999)) / 16 * 16;
    tensors.push_back(bench().tensor(at, bytes));
    at += (bytes + 255) / 256 * 256;
  }
  const double ceiling = read_rate(at / 65536 * 65536);
  must(bench().backend->digests(tensors));
  for ([[maybe_unused]] auto _ : state) must(bench().backend->digests(tensors));
  report(state, at, ceiling);
}
BENCHMARK(digest_thousand)->UseRealTime();

void digest_unaligned(benchmark::State& state) {
  const Tensor tensor = bench().tensor(static_cast<std::uint64_t>(state.range(0)), kGiB);
  for ([[maybe_unused]] auto _ : state) must(bench().backend->digest(tensor));
  report(state, kGiB, read_rate(kGiB));
}
BENCHMARK(digest_unaligned)->Arg(4)->Arg(1)->UseRealTime();

// Two tensors that are equal: both are read.
void compare_two(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0)) / 2;
  const double ceiling = read_rate(2 * bytes);
  const Tensor left = bench().tensor(0, bytes);
  const Tensor right = bench().tensor(8 * kGiB, bytes);
  must(bench().backend->fill({Dtype::kU64, {bytes / 8}, left.data}, kKey, 0));
  must(bench().backend->fill({Dtype::kU64, {bytes / 8}, right.data}, kKey, 0));
  for ([[maybe_unused]] auto _ : state) must(bench().backend->compare(left, right));
  report(state, 2 * bytes, ceiling);
}
BENCHMARK(compare_two)->Arg(2 * kGiB)->Arg(8 * kGiB)->UseRealTime();

void fill_one(benchmark::State& state) {
  const auto dtype = static_cast<Dtype>(state.range(0));
  constexpr std::uint64_t kBytes = 8 * kGiB;
  state.SetLabel(std::string(dtype_name(dtype)));
  const Tensor tensor{dtype, {kBytes / dtype_bytes(dtype)}, bench().memory.get()};
  const double ceiling = write_rate(kBytes);
  for ([[maybe_unused]] auto _ : state) must(bench().backend->fill(tensor, kKey, 0));
  report(state, kBytes, ceiling);
}
BENCHMARK(fill_one)
    ->Arg(static_cast<int>(Dtype::kU64))
    ->Arg(static_cast<int>(Dtype::kF64))
    ->Arg(static_cast<int>(Dtype::kF32))
    ->Arg(static_cast<int>(Dtype::kBf16))
    ->Arg(static_cast<int>(Dtype::kF8E4m3))
    ->UseRealTime();

// 2 GiB in tensors of 64 MiB from the device into the pool's blocks, against one plain copy.
void stage_to_host(benchmark::State& state) {
  constexpr std::uint64_t kPart = 64 << 20;
  constexpr std::uint64_t kBytes = 2 * kGiB;
  Backend& backend = *bench().backend;
  StagingPool pool(backend, Rounding::kExact);
  double ceiling = 0;
  {
    const StagingBlock whole = must(pool.take(kBytes));
    ceiling =
        static_cast<double>(kBytes) / median_seconds([&] {
          expect(cudaMemcpy(whole.data(), bench().memory.get(), kBytes, cudaMemcpyDeviceToHost));
        });
  }
  std::vector<StagingBlock> blocks;
  for (std::uint64_t at = 0; at < kBytes; at += kPart) blocks.push_back(must(pool.take(kPart)));
  for ([[maybe_unused]] auto _ : state) {
    std::vector<std::unique_ptr<Pending>> copies;
    for (std::uint64_t i = 0; i < blocks.size(); ++i) {
      const Tensor tensor = bench().tensor(i * kPart, kPart);
      copies.push_back(must(backend.start_copy_to_host(blocks[i].data(), tensor, 0, kPart, {})));
    }
    for (const auto& copy : copies) must(copy->wait());
  }
  report(state, kBytes, ceiling);
}
BENCHMARK(stage_to_host)->UseRealTime();

void copy_to_pageable(benchmark::State& state) {
  std::vector<std::byte> target(kGiB);
  const Tensor tensor = bench().tensor(0, kGiB);
  for ([[maybe_unused]] auto _ : state) {
    must(bench().backend->copy_to_host(target.data(), tensor, 0, kGiB));
  }
  report(state, kGiB, 0);
}
BENCHMARK(copy_to_pageable)->UseRealTime();

}  // namespace
}  // namespace savegate::gpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (auto opened = savegate::gpu::open_backend("cuda", 0); !opened) {
    std::printf("skipped: %s\n", opened.error().to_string().c_str());
    return 0;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
