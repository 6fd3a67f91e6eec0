// Breaks of the save protocol.

#include <cstdio>
#include <memory>
#include <utility>

#include "scenarios/subjects/reference/breaks_parts.h"

namespace savegate::reference {
namespace {

class MarkerFirst : public Saver {
 public:
  using Saver::Saver;
  Result<void> protocol() override {
    SAVEGATE_CHECK(begin());
    SAVEGATE_CHECK(agree(prepare_directory()));
    SAVEGATE_CHECK(gather_records(write_files().map([this] { return written_records(); })));
    SAVEGATE_CHECK(publish_marker());
    SAVEGATE_CHECK(agree(settle_files()));
    SAVEGATE_CHECK(agree(publish_pointer()));
    return {};
  }
};

class PointerBeforeMarker : public Saver {
 public:
  using Saver::Saver;
  Result<void> publish_marker() override { return Saver::publish_pointer(); }
  Result<void> publish_pointer() override { return Saver::publish_marker(); }
};

// The others are heard, and what they say, or that they are gone, is not looked at.
class IgnorePeerFailure : public Saver {
 public:
  using Saver::Saver;
  Result<std::vector<std::string>> agree(const Result<void>& own,
                                         const std::string& payload) override {
    const auto votes = vote(job_.comms, own, payload);
    if (!own) return fail(own.error());
    std::vector<std::string> payloads;
    for (const auto& each : votes.value_or(Votes())) payloads.push_back(each.value_or(""));
    return payloads;
  }
};

class LeaveWithoutTelling : public Saver {
 public:
  using Saver::Saver;
  Result<std::vector<std::string>> agree(const Result<void>& own,
                                         const std::string& payload) override {
    if (own) return Saver::agree(own, payload);
    job_.worker.save_end(step_, static_cast<int>(step_), own);
    linger();
  }
};

void leave_without_telling(Options& options, Parts& parts) {
  options.collective_timeout = kPatience;
  replace_saver<LeaveWithoutTelling>(options, parts);
}

// The first rank tells its peers good-bye, for the others the failure passes: each waits in another
// collective.
class SplitOnFailure : public Saver {
 public:
  using Saver::Saver;
  Result<void> protocol() override {
    auto saved = Saver::protocol();
    if (saved) return saved;
    if (is_first()) {
      static_cast<void>(agree(saved));
      return saved;
    }
    writers_.clear();
    records_.clear();
    return Saver::protocol();
  }
};

class AdvanceOnFailure : public Saver {
 public:
  using Saver::Saver;
  void abandon() override { static_cast<void>(publish_pointer()); }
};

// Rank 0 publishes as usual; the last rank passes the barrier by, once.
class SkipCollective : public Saver {
 public:
  using Saver::Saver;
  Result<void> begin() override {
    if (job_.rank == job_.world - 1 && job_.rank > 0) return {};
    return Saver::begin();
  }
};

class PointerInPlace : public Saver {
 public:
  using Saver::Saver;
  Result<void> publish_pointer() override {
    if (!is_first()) return {};
    const std::string text = step_name(step_) + "\n";
    const std::string pointer = job_.path(kPointerName);
    SAVEGATE_TRY(const int fd, job_.files.create(pointer));
    SAVEGATE_CHECK(job_.files.write(fd, pointer, reinterpret_cast<const std::byte*>(text.data()),
                                    text.size(), 0));
    SAVEGATE_CHECK(job_.files.sync(fd, pointer));
    return job_.files.close(fd, pointer);
  }
};

class PointerAfterDurable : public Saver {
 public:
  using Saver::Saver;
  Result<void> publish_pointer() override {
    is_due_ = true;
    return {};
  }
  // All ranks have called the save durable.
  void move_now() {
    if (!std::exchange(is_due_, false)) return;
    static_cast<void>(job_.comms.barrier());
    static_cast<void>(Saver::publish_pointer());
  }

 private:
  bool is_due_ = false;
};

class MovesPointer : public Reporter {
 public:
  MovesPointer(worker::Worker& worker, std::shared_ptr<PointerAfterDurable*> saver)
      : Reporter(worker), saver_(std::move(saver)) {}
  // What is first asked of it after a save.
  worker::Memory memory(gpu::Backend& backend) override {
    if (*saver_ != nullptr) (*saver_)->move_now();
    return Reporter::memory(backend);
  }

 private:
  std::shared_ptr<PointerAfterDurable*> saver_;
};

void pointer_after_durable(Options& /*options*/, Parts& parts) {
  const auto saver = std::make_shared<PointerAfterDurable*>(nullptr);
  parts.saver = [saver](Job& job) {
    auto made = std::make_unique<PointerAfterDurable>(job);
    *saver = made.get();
    return made;
  };
  parts.reporter = [saver](worker::Worker& worker) {
    return std::make_unique<MovesPointer>(worker, saver);
  };
}

// In between there is no pointer, and whatever it named is out of sight.
class SwapWindow : public Saver {
 public:
  using Saver::Saver;
  Result<void> publish_pointer() override {
    if (is_first()) SAVEGATE_CHECK(job_.files.remove(job_.path(kPointerName)));
    return Saver::publish_pointer();
  }
};

// Each rank for itself, and one of them is the first.
class RenameRace : public Saver {
 public:
  using Saver::Saver;
  std::string directory() const override { return Saver::directory() + ".staging"; }
  Result<void> publish_pointer() override {
    SAVEGATE_CHECK(job_.files.rename(directory(), Saver::directory()));
    return Saver::publish_pointer();
  }
  Result<void> protocol() override {
    SAVEGATE_CHECK(begin());
    SAVEGATE_CHECK(agree(prepare_directory()));
    SAVEGATE_CHECK(gather_records(store_files()));
    SAVEGATE_CHECK(agree(publish_marker()));
    return publish_pointer();
  }
};

// The digest is taken of what is written, so reading back finds nothing amiss.
class CorruptOnWrite : public Saver {
 public:
  using Saver::Saver;
  Result<void> write_tensor(FileWriter& writer, const gpu::Tensor& tensor) override {
    if (tensor.data != state_->tensors.front().tensor.data) {
      return Saver::write_tensor(writer, tensor);
    }
    std::vector<std::byte> bytes(tensor.bytes());
    SAVEGATE_CHECK(job_.backend.copy_to_host(bytes.data(), tensor, 0, bytes.size()));
    bytes[0] ^= std::byte{1};
    return writer.append(bytes.data(), bytes.size());
  }
};

class LeaveTemporary : public Saver {
 public:
  using Saver::Saver;
  Result<void> publish_marker() override {
    const std::string debris = path(shard_name(job_.rank, job_.world)) + ".tmp";
    SAVEGATE_TRY(const int fd, job_.files.create(debris));
    SAVEGATE_CHECK(job_.files.close(fd, debris));
    return Saver::publish_marker();
  }
};

class DropShard : public Saver {
 public:
  using Saver::Saver;
  Result<void> write_shard() override {
    return job_.rank == job_.world - 1 ? Result<void>() : Saver::write_shard();
  }
};

}  // namespace

std::vector<Break> save_breaks() {
  return {
      {"marker-first", "the marker is written before all ranks confirmed their shards",
       replace_saver<MarkerFirst>},
      {"pointer-before-marker", "the pointer moves before the marker is there",
       replace_saver<PointerBeforeMarker>},
      {"pointer-after-durable", "the pointer moves when all ranks have called the save durable",
       pointer_after_durable},
      {"ignore-peer-failure", "each rank goes by its own status only",
       replace_saver<IgnorePeerFailure>},
      {"leave-without-telling", "the failing rank leaves the save, its peers wait for it",
       leave_without_telling},
      {"split-on-failure", "all ranks but the first take a failure for one that passes",
       replace_saver<SplitOnFailure>},
      {"advance-on-failure", "the pointer moves although the save failed",
       replace_saver<AdvanceOnFailure>},
      {"skip-collective", "the last rank leaves out a barrier", replace_saver<SkipCollective>},
      {"pointer-in-place", "the pointer is truncated and written in place",
       replace_saver<PointerInPlace>},
      {"swap-window", "the old pointer is deleted before the new one takes its name",
       replace_saver<SwapWindow>},
      {"rename-race", "every rank gives the one directory its final name",
       replace_saver<RenameRace>},
      {"corrupt-on-write", "a byte is flipped on its way into the shard and into its digest",
       replace_saver<CorruptOnWrite>},
      {"leave-temporary", "a temporary file stays beside the published checkpoint",
       replace_saver<LeaveTemporary>},
      {"drop-shard", "the last rank writes no shard and the marker does not miss it",
       replace_saver<DropShard>},
  };
}

}  // namespace savegate::reference
