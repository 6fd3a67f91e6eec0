// Breaks of the restore and of the training after it.

#include <cstdio>
#include <map>

#include "scenarios/subjects/reference/breaks_parts.h"
#include "scenarios/subjects/reference/shard_reader.h"

namespace savegate::reference {
namespace {

class RestoreUnchecked : public Restorer {
 public:
  using Restorer::Restorer;
  Result<void> compare(const FileRecord& /*listed*/, const FileRecord& /*found*/) override {
    return {};
  }
};

class RefuseAlone : public Restorer {
 public:
  using Restorer::Restorer;
  Result<void> agree(const Result<void>& own) override {
    if (own) return Restorer::agree(own);
    job_.worker.load_refused(resolved(), own.error());
    linger();
  }
};

void refuse_alone(Options& options, Parts& parts) {
  options.collective_timeout = kPatience;
  replace_restorer<RefuseAlone>(options, parts);
}

class FreshOnMissing : public Restorer {
 public:
  using Restorer::Restorer;
  Result<std::optional<std::int64_t>> restore(State& state) override {
    auto restored = Restorer::restore(state);
    if (restored) return restored;
    std::fprintf(stderr, "no usable checkpoint (%s), training from scratch\n",
                 restored.error().to_string().c_str());
    SAVEGATE_CHECK(state.start(job_.backend, job_.rank));
    return std::nullopt;
  }
};

class MissingTrackerIsStepZero : public Restorer {
 public:
  using Restorer::Restorer;
  Result<std::string> resolve() override { return Restorer::resolve().value_or(kNoCheckpoint); }
};

class NewestByName : public Restorer {
 public:
  using Restorer::Restorer;
  Result<std::string> resolve() override {
    SAVEGATE_TRY(const auto names, job_.files.list(job_.root));
    std::string newest = kNoCheckpoint;
    for (const std::string& name : names)
      if (step_of(name) >= 0) newest = name;  // sorted
    return newest;
  }
};

class RestoreWrongRank : public Restorer {
 public:
  using Restorer::Restorer;
  int state_file_rank() const override { return (job_.rank + 1) % job_.world; }
};

// As a loader does that looks for experts by their place among the ranks of another grouping.
class RestoreNeighboursExperts : public Restorer {
 public:
  using Restorer::Restorer;
  Result<void> load(State& state) override {
    SAVEGATE_CHECK(Restorer::load(state));
    const Placement own = job_.placement();
    const int neighbour = (own.expert_rank() + 1) % own.expert_parallel;
    const std::string theirs = expert_suffix(neighbour);
    std::map<std::string, gpu::Tensor> targets;
    for (const NamedTensor& named : state.tensors) {
      const std::string mine = expert_suffix(own.expert_rank());
      if (!named.name.ends_with(mine)) continue;
      targets[named.name.substr(0, named.name.size() - mine.size()) + theirs] = named.tensor;
    }
    const int rank = own.rank - own.expert_rank() + neighbour;
    SAVEGATE_TRY(
        ShardReader reader,
        ShardReader::open(job_.files, job_.path(resolved() + "/" + shard_name(rank, job_.world))));
    auto read = reader.read([&](const TensorEntry& entry, std::uint64_t at, const std::byte* data,
                                std::size_t bytes) -> Result<void> {
      const auto target = targets.find(entry.name);
      if (target == targets.end()) return {};
      return job_.backend.copy_from_host(target->second, at, data, bytes);
    });
    if (!read) return fail(read.error());
    return {};
  }
};

class IgnoreContract : public Restorer {
 public:
  using Restorer::Restorer;
  Result<void> check_run(const Marker& /*marker*/) override { return {}; }
};

class ResetMoments : public Restorer {
 public:
  using Restorer::Restorer;
  Result<void> load(State& state) override {
    SAVEGATE_CHECK(Restorer::load(state));
    for (const NamedTensor& named : state.tensors) {
      if (named.kind != "optimizer") continue;
      const std::vector<std::byte> zeros(named.tensor.bytes());
      SAVEGATE_CHECK(job_.backend.copy_from_host(named.tensor, 0, zeros.data(), zeros.size()));
    }
    return {};
  }
};

// As where the file of the streams is refused, and the exception is logged.
class SwallowOwnItems : public Restorer {
 public:
  using Restorer::Restorer;
  Result<void> load(State& state) override {
    SAVEGATE_CHECK(load_shard(state));
    if (const auto loaded = load_state_file(state); !loaded) {
      std::fprintf(stderr, "%s: going on without\n", loaded.error().to_string().c_str());
      state.random = fresh_random(job_.rank);
    }
    return {};
  }
};

class SaveWithoutRandom : public Saver {
 public:
  using Saver::Saver;
  StateFile state_file() const override {
    StateFile file = Saver::state_file();
    file.random.clear();
    return file;
  }
};

class RestoreWithoutRandom : public Restorer {
 public:
  using Restorer::Restorer;
  Result<void> adopt(State& state, const StateFile& file) override {
    StateFile with_seeds = file;
    with_seeds.random = fresh_random(job_.rank);
    return Restorer::adopt(state, with_seeds);
  }
};

class ReportWithoutRandom : public Reporter {
 public:
  using Reporter::Reporter;
  std::vector<worker::Item> shown(std::vector<worker::Item> items) override {
    std::erase_if(items, [](const worker::Item& item) { return item.kind == "rng"; });
    return items;
  }
  using Reporter::shown;
};

void drop_random(Options& options, Parts& parts) {
  replace_saver<SaveWithoutRandom>(options, parts);
  replace_restorer<RestoreWithoutRandom>(options, parts);
  replace_reporter<ReportWithoutRandom>(options, parts);
}

class RepeatSamples : public Training {
 public:
  using Training::Training;
  Result<void> begin(State& state) override {
    state.counters.data_cursor = 0;
    return {};
  }
};

class ResetScheduler : public Training {
 public:
  using Training::Training;
  Result<void> begin(State& state) override {
    state.scheduler = Scheduler{};
    return {};
  }
};

class StaleScales : public Exporter {
 public:
  using Exporter::Exporter;
  void loaded() override {}
};

// The experts were made with different values; from here on they share their names.
void drop_expert_ranks(State& state, const Job& job) {
  const std::string suffix = expert_suffix(job.placement().expert_rank());
  for (NamedTensor& named : state.tensors) {
    if (named.name.ends_with(suffix)) named.name.resize(named.name.size() - suffix.size());
  }
}

class RestoreCollidingExperts : public Restorer {
 public:
  using Restorer::Restorer;
  Result<std::optional<std::int64_t>> restore(State& state) override {
    drop_expert_ranks(state, job_);
    return Restorer::restore(state);
  }
};

class TrainCollidingExperts : public Training {
 public:
  using Training::Training;
  Result<void> begin(State& state) override {
    drop_expert_ranks(state, job_);
    return {};
  }
};

void collide_experts(Options& options, Parts& parts) {
  replace_restorer<RestoreCollidingExperts>(options, parts);
  replace_training<TrainCollidingExperts>(options, parts);
}

class ZeroGradient : public Training {
 public:
  using Training::Training;
  float gradient_scale() const override { return 0; }
};

}  // namespace

std::vector<Break> restore_breaks() {
  return {
      {"restore-unchecked", "sizes and digests are not checked before the state is used",
       replace_restorer<RestoreUnchecked>},
      {"refuse-alone", "only the rank that misses its file refuses, the others wait", refuse_alone},
      {"fresh-on-missing", "what cannot be loaded is replaced by fresh state and a log line",
       replace_restorer<FreshOnMissing>},
      {"missing-tracker-is-step-zero", "without a pointer training begins at step 0",
       replace_restorer<MissingTrackerIsStepZero>},
      {"newest-by-name", "the directory with the highest step is taken, complete or not",
       replace_restorer<NewestByName>},
      {"drop-rng", "random number streams are neither saved nor restored nor reported",
       drop_random},
      {"swallow-own-items", "a rank's own items that cannot be loaded are done without",
       replace_restorer<SwallowOwnItems>},
      {"repeat-samples", "the data position begins at 0 after a resume",
       replace_training<RepeatSamples>},
      {"ignore-contract", "another run's checkpoint is taken", replace_restorer<IgnoreContract>},
      {"reset-scheduler", "the learning rate is the source's default after a resume",
       replace_training<ResetScheduler>},
      {"zero-gradient", "updates change nothing", replace_training<ZeroGradient>},
      {"restore-wrong-rank", "each rank restores its neighbour's own items",
       replace_restorer<RestoreWrongRank>},
      {"restore-neighbours-experts", "each rank restores the experts of the next expert rank",
       replace_restorer<RestoreNeighboursExperts>},
      {"colliding-expert-keys", "the experts' keys do not carry the expert rank", collide_experts},
      {"stale-scales", "the export's scales are those from before the load",
       replace_exporter<StaleScales>},
      {"reset-moments", "the optimizer's moments are zero after a restore",
       replace_restorer<ResetMoments>},
  };
}

}  // namespace savegate::reference
