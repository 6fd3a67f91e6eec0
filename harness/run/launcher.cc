#include "harness/run/launcher.h"

#include <cstdint>
#include <sstream>

#include "harness/run/files.h"

namespace savegate::harness {
namespace {

// A record that ends in the middle of a line is one whose writer was killed.
RankProcess read_record(int rank, const std::string& text) {
  RankProcess process;
  process.rank = rank;
  std::istringstream in(text);
  bool told = false;
  for (std::string word; in >> word;) {
    std::uint64_t value = 0;
    in >> value;
    if (word == "start") {
      process.pid = static_cast<std::int64_t>(value);
      in >> process.start_ticks >> process.started_ns;
    } else if (word == "told") {
      told = true;
    } else if (word == "exit") {
      process.exit_status = static_cast<int>(value);
      in >> process.ended_ns;
    } else if (word == "signal") {
      process.signal = static_cast<int>(value);
      in >> process.ended_ns;
    }
  }
  if (told) process.ended_by = "launcher";
  return process;
}

}  // namespace

std::vector<std::string> launcher_command(const LauncherSetup& setup,
                                          const std::vector<std::string>& command) {
  const std::string world = std::to_string(setup.world);
  std::vector<std::string> words;
  std::vector<std::string> own;
  if (setup.name == "torchrun") {
    words = {setup.python, "-m", "torch.distributed.run"};
    own = {"--nnodes=1",
           "--nproc-per-node=" + world,
           "--max-restarts=0",
           "--master-addr=127.0.0.1",
           "--master-port=" + std::to_string(setup.port),
           "--log-dir=" + setup.logs + "/torchrun",
           "--no-python"};
  } else if (setup.name == "mpirun") {
    words = {"mpirun"};
    own = {"-n", world};
  } else {
    words = {"srun"};
    own = {"--ntasks=" + world, "--kill-on-bad-exit=0"};
  }
  words.insert(words.end(), setup.options.begin(), setup.options.end());
  words.insert(words.end(), own.begin(), own.end());
  words.insert(words.end(), {setup.bin + "/savegate-rank", "--"});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::vector<std::string> launcher_environment(const LauncherSetup& setup) {
  if (setup.name == "torchrun")
    return {"TORCHELASTIC_ERROR_FILE=" + setup.logs + "/torchrun-error.json", "OMP_NUM_THREADS=1"};
  if (setup.name == "mpirun")  // Open MPI: as root, and more ranks than cores
    return {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
            "OMPI_MCA_rmaps_base_oversubscribe=1"};
  return {};
}

std::vector<RankProcess> read_ranks(const std::string& folder, int world) {
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < world; ++rank) {
    const auto text = read_file(folder + "/rank-" + std::to_string(rank));
    if (text) ranks.push_back(read_record(rank, *text));
  }
  return ranks;
}

}  // namespace savegate::harness
