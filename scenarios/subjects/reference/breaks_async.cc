// Breaks of asynchronous saves.

#include "scenarios/subjects/reference/breaks_parts.h"

namespace savegate::reference {
namespace {

// The state that training works on, as the last call saw it.
struct Live {
  gpu::Backend* device = nullptr;
  const State* state = nullptr;
};

class LiveStaging : public Staging {
 public:
  LiveStaging(gpu::Backend& device, std::shared_ptr<Live> live)
      : Staging(device), own_device_(device), live_(std::move(live)) {}
  Result<State> snapshot(const State& state) override {
    *live_ = {.device = &own_device_, .state = &state};
    return Staging::snapshot(state);
  }

 private:
  gpu::Backend& own_device_;
  std::shared_ptr<Live> live_;
};

class LateSaver : public Saver {
 public:
  LateSaver(Job& job, std::shared_ptr<Live> live) : Saver(job), live_(std::move(live)) {}
  Result<void> write_tensor(FileWriter& writer, const gpu::Tensor& tensor) override {
    for (std::size_t i = 0; i < state_->tensors.size(); ++i) {
      if (state_->tensors[i].tensor.data != tensor.data) continue;
      SAVEGATE_CHECK(live_->device->copy_to_host(tensor.data, live_->state->tensors[i].tensor, 0,
                                                 tensor.bytes()));
    }
    return Saver::write_tensor(writer, tensor);
  }

 private:
  std::shared_ptr<Live> live_;
};

void late_snapshot(Options& /*options*/, Parts& parts) {
  const auto live = std::make_shared<Live>();
  parts.staging = [live](gpu::Backend& device) {
    return std::make_unique<LiveStaging>(device, live);
  };
  parts.saver = [live](Job& job) { return std::make_unique<LateSaver>(job, live); };
}

// The blocks go back to the pool at the call; the writer reads them all the same.
class ReuseStagingEarly : public Staging {
 public:
  using Staging::Staging;
  Result<State> snapshot(const State& state) override {
    SAVEGATE_TRY(State taken, Staging::snapshot(state));
    taken.memory.clear();
    return taken;
  }
  void trim() override {}
};

class KeepStaging : public Staging {
 public:
  using Staging::Staging;
  void trim() override {}
};

class ForgetBackgroundFailure : public Saver {
 public:
  using Saver::Saver;
  Result<void> protocol() override {
    static_cast<void>(Saver::protocol());
    return {};
  }
};

class PointerAtDispatch : public Saver {
 public:
  using Saver::Saver;
  Result<void> begin() override {
    SAVEGATE_CHECK(agree(publish_pointer()));
    return Saver::begin();
  }
};

template <class Broken>
void replace_staging(Options& /*options*/, Parts& parts) {
  parts.staging = [](gpu::Backend& device) { return std::make_unique<Broken>(device); };
}

}  // namespace

std::vector<Break> async_breaks() {
  return {
      {"late-snapshot", "the tensors are read as they are written, not at the call", late_snapshot},
      {"reuse-staging-early", "a staging buffer takes the next snapshot before it is written",
       replace_staging<ReuseStagingEarly>},
      {"forget-background-failure", "a failure after the call has returned is not kept",
       replace_saver<ForgetBackgroundFailure>},
      {"pointer-at-dispatch", "the pointer moves when the save begins to be written",
       replace_saver<PointerAtDispatch>},
      {"keep-staging", "staging blocks are never given back to the system",
       replace_staging<KeepStaging>},
  };
}

}  // namespace savegate::reference
