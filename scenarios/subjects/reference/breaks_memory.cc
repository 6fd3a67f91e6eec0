// Breaks of the host memory contract: something small is kept at each
// save, or a save or load takes more than its share.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <thread>

#include "scenarios/subjects/reference/breaks_parts.h"
#include "scenarios/subjects/reference/second_set.h"

namespace savegate::reference {
namespace {

Result<void> leak_descriptor(const Job& /*job*/) {
  if (::open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) return fail(system_error("open", "/dev/null"));
  return {};
}

Result<void> leak_deleted_file(const Job& job) {
  const std::string path = job.path("scratch-" + std::to_string(job.rank) + ".tmp");
  if (::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600) < 0) {
    return fail(system_error("open", path));
  }
  if (::unlink(path.c_str()) != 0) return fail(system_error("unlink", path));
  return {};
}

Result<void> leak_thread(const Job& /*job*/) {
  std::thread([] {
    for (;;) ::pause();
  }).detach();
  return {};
}

// It ends with its parent.
Result<void> leak_child(const Job& /*job*/) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail(system_error("fork", ""));
  if (child > 0) return {};
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (::getppid() == parent) ::pause();
  ::_exit(0);
}

Result<void> leak_memory(const Job& /*job*/) {
  static std::vector<std::vector<char>> kept;
  kept.emplace_back(std::size_t{1} << 20, 'x');
  return {};
}

template <Result<void> (*leak)(const Job& job)>
class LeakingSaver : public Saver {
 public:
  using Saver::Saver;
  Result<void> begin() override {
    SAVEGATE_CHECK(Saver::begin());
    return leak(job_);
  }
};

// One block of each snapshot never goes back to the pool.
class LeakStagingBlock : public Staging {
 public:
  using Staging::Staging;
  Result<State> snapshot(const State& state) override {
    SAVEGATE_TRY(State taken, Staging::snapshot(state));
    kept_.push_back(std::move(taken.memory.back()));
    taken.memory.pop_back();
    return taken;
  }

 private:
  std::vector<gpu::Buffer> kept_;
};

class SaveFromSecondCopy : public Saver {
 public:
  using Saver::Saver;
  Result<void> begin() override {
    SAVEGATE_CHECK(Saver::begin());
    SAVEGATE_TRY(copy_, second_set_with_values(job_.backend, *state_));
    state_ = &copy_;
    return {};
  }
  Result<void> release_copy() override {
    copy_ = State{};
    return {};
  }
};

class DieBeforeTheGuard : public Saver {
 public:
  using Saver::Saver;
  Result<void> begin() override {
    if (job_.rank == 1) ::raise(SIGKILL);
    return Saver::begin();
  }
};

class LoadIntoSecondCopy : public Restorer {
 public:
  using Restorer::Restorer;
  Result<void> load(State& state) override {
    SAVEGATE_TRY(State whole, second_set(job_.backend, state));
    SAVEGATE_CHECK(load_shard(whole));
    for (std::size_t i = 0; i < state.tensors.size(); ++i) {
      SAVEGATE_CHECK(job_.backend.copy(state.tensors[i].tensor, whole.tensors[i].tensor));
    }
    return load_state_file(state);
  }
};

void leak_staging_block(Options& /*options*/, Parts& parts) {
  parts.staging = [](gpu::Backend& device) { return std::make_unique<LeakStagingBlock>(device); };
}

}  // namespace

std::vector<Break> memory_breaks() {
  return {
      {"leak-descriptor", "each save leaves a file open",
       replace_saver<LeakingSaver<leak_descriptor>>},
      {"leak-deleted-file", "each save leaves a file open that it has deleted",
       replace_saver<LeakingSaver<leak_deleted_file>>},
      {"leak-thread", "each save leaves a thread behind", replace_saver<LeakingSaver<leak_thread>>},
      {"leak-child", "each save leaves a child process behind",
       replace_saver<LeakingSaver<leak_child>>},
      {"leak-memory", "each save keeps 1 MiB", replace_saver<LeakingSaver<leak_memory>>},
      {"leak-staging-block", "each snapshot keeps a block of the staging memory",
       leak_staging_block},
      {"save-from-second-copy", "a save makes a second copy of the state and writes from that",
       replace_saver<SaveFromSecondCopy>},
      {"die-before-the-guard", "rank 1 dies of a SIGKILL of its own in its first save",
       replace_saver<DieBeforeTheGuard>},
      {"load-into-second-copy",
       "a load reads all of the state into memory of its own first, and copies it from there",
       replace_restorer<LoadIntoSecondCopy>},
  };
}

}  // namespace savegate::reference
