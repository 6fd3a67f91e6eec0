// Whole saves of the reference save path into several directories in turn, and what each costs
// against the first: a plain directory beside a mount of it, say.
//
//   save_bench DEVICE RANKS MIB_A_RANK ROUNDS DIRECTORY…
//
// Ranks are threads. The state is filled, not trained. One save into the first directory does not
// count; then each round saves once into each, and empties it again.

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "scenarios/subjects/reference/file_writer.h"
#include "scenarios/subjects/reference/marker.h"
#include "scenarios/subjects/reference/save.h"

namespace savegate::reference {
namespace {

struct Arguments {
  std::string device;
  int world = 1;
  std::uint64_t bytes = 0;  // of all ranks
  int rounds = 1;
  std::vector<std::string> directories;
};

class Bench {
 public:
  Bench(Arguments arguments, std::string rendezvous)
      : arguments_(std::move(arguments)),
        rendezvous_(std::move(rendezvous)),
        all_(arguments_.world),
        seconds_(arguments_.directories.size()) {}

  Result<void> run() {
    std::vector<Result<void>> ended(static_cast<std::size_t>(arguments_.world));
    std::vector<std::thread> ranks;
    ranks.reserve(ended.size());
    for (int rank = 0; rank < arguments_.world; ++rank) {
      ranks.emplace_back([this, rank, &ended] {
        ended[static_cast<std::size_t>(rank)] = run_rank(rank);
        all_.arrive_and_drop();
      });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const Result<void>& each : ended) SAVEGATE_CHECK(each);
    return {};
  }

  void print() {
    const double gigabytes = static_cast<double>(arguments_.bytes) / 1e9;
    double first = 0;
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
      std::ranges::nth_element(seconds_[i], seconds_[i].begin() + std::ssize(seconds_[i]) / 2);
      const double median = seconds_[i][seconds_[i].size() / 2];
      if (i == 0) first = median;
      std::printf("%s: %.2f s, %.2f GB/s, %.3f of the first's speed\n",
                  arguments_.directories[i].c_str(), median, gigabytes / median, first / median);
    }
  }

 private:
  Result<void> run_rank(int rank) {
    SAVEGATE_TRY(const auto backend, gpu::open_backend(arguments_.device, rank));
    worker::Worker worker{worker::Environment{}};
    std::unique_ptr<gpu::Collectives> peers;
    if (arguments_.world > 1) {
      SAVEGATE_TRY(peers, gpu::open_gloo({.rank = rank,
                                          .world = arguments_.world,
                                          .rendezvous = rendezvous_,
                                          .timeout = std::chrono::minutes(2)}));
    }
    Comms comms(std::move(peers), worker);
    Files files(rank);
    const Placement placement{.rank = rank, .world = arguments_.world};
    SAVEGATE_TRY(State state, State::create(*backend, placement, arguments_.bytes));
    SAVEGATE_CHECK(state.start(*backend, rank));
    for (int round = -1; round < arguments_.rounds; ++round) {
      for (std::size_t i = 0; i < (round < 0 ? 1 : arguments_.directories.size()); ++i) {
        Job job{.rank = rank,
                .world = arguments_.world,
                .root = arguments_.directories[i],
                .comms = comms,
                .worker = worker,
                .files = files,
                .backend = *backend,
                .contract = {"bench", "bench", "bench", 1}};
        SAVEGATE_TRY(const double seconds, time_save(job, state));
        if (rank == 0 && round >= 0) seconds_[i].push_back(seconds);
      }
    }
    return {};
  }

  Result<double> time_save(Job& job, const State& state) {
    Saver saver(job);
    saver.begin_life(kNoCheckpoint);
    Result<void> own = job.rank == 0 ? empty(job) : Result<void>();
    SAVEGATE_TRY(const Votes ready, vote(job.comms, own, ""));
    SAVEGATE_CHECK(first_error(ready));
    all_.arrive_and_wait();
    const auto began = std::chrono::steady_clock::now();
    own = saver.save(state);
    all_.arrive_and_wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    SAVEGATE_CHECK(own);
    own = job.rank == 0 ? empty(job) : Result<void>();
    SAVEGATE_TRY(const Votes done, vote(job.comms, own, ""));
    SAVEGATE_CHECK(first_error(done));
    return took.count();
  }

  static Result<void> empty(Job& job) {
    SAVEGATE_TRY(const auto names, job.files.list(job.root));
    for (const std::string& name : names) {
      std::error_code error;
      std::filesystem::remove_all(job.path(name), error);
      if (error) return fail(system_error("remove", job.path(name), error.value()));
    }
    return write_file(job.files, job.path(kPointerName), std::string(kNoCheckpoint) + "\n")
        .transform([](const auto&) {});
  }

  Arguments arguments_;
  std::string rendezvous_;
  std::barrier<> all_;
  std::vector<std::vector<double>> seconds_;  // of each directory's saves
};

int run(int count, char** words) {
  if (count < 6) {
    std::fprintf(stderr, "usage: save_bench DEVICE RANKS MIB_A_RANK ROUNDS DIRECTORY…\n");
    return 2;
  }
  Arguments arguments{.device = words[1],
                      .world = std::stoi(words[2]),
                      .rounds = std::stoi(words[4]),
                      .directories = {words + 5, words + count}};
  arguments.bytes = (std::stoull(words[3]) << 20) * static_cast<unsigned>(arguments.world);
  std::string rendezvous = std::filesystem::temp_directory_path() / "save_bench-XXXXXX";
  if (::mkdtemp(rendezvous.data()) == nullptr) return 2;
  Bench bench(std::move(arguments), rendezvous);
  const Result<void> ran = bench.run();
  std::error_code ignored;  // a few small files in the temporary directory
  std::filesystem::remove_all(rendezvous, ignored);
  if (!ran) {
    std::fprintf(stderr, "save_bench: %s\n", ran.error().to_string().c_str());
    return 1;
  }
  bench.print();
  return 0;
}

}  // namespace
}  // namespace savegate::reference

int main(int argc, char** argv) { return savegate::reference::run(argc, argv); }
