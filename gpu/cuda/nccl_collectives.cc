#include "gpu/cuda/nccl_collectives.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "gpu/cuda/nccl_library.h"

namespace savegate::gpu::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kLookEvery{20};
constexpr std::chrono::seconds kAbortPatience{10};
constexpr std::chrono::seconds kOpenPatience{60};  // kernels are loaded, devices connected

class NcclCollectives : public Collectives {
 public:
  NcclCollectives(const NcclLibrary& nccl, std::shared_ptr<Device> device, int world,
                  std::chrono::milliseconds timeout)
      : nccl_(nccl), device_(std::move(device)), world_(world), timeout_(timeout) {}
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  // Not ncclCommFinalize, which waits for peers that may be dead or silent.
  ~NcclCollectives() override {
    abort();
    if (stuck_) return;  // the device may still write to what is below
    if (stream_ != nullptr) static_cast<void>(cudaStreamSynchronize(stream_));
    if (memory_ != nullptr) device_->give_back(memory_);
    if (staging_ != nullptr) device_->give_back_pinned(staging_);
    if (done_ != nullptr) static_cast<void>(cudaEventDestroy(done_));
    if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
  }

  int rank() const override { return device_->rank(); }
  int world() const override { return world_; }

  Result<void> open(Collectives& side) {
    SAVEGATE_CHECK(device_->check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                                  "cudaStreamCreateWithFlags"));
    SAVEGATE_CHECK(device_->check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming),
                                  "cudaEventCreateWithFlags"));
    ncclUniqueId id{};
    if (rank() == 0) SAVEGATE_CHECK(accepted("ncclGetUniqueId", nccl_.get_unique_id(&id)));
    SAVEGATE_TRY(const std::string heard,
                 side.broadcast(std::string(id.internal, sizeof(id.internal)), 0));
    if (heard.size() != sizeof(id.internal)) {
      return fail(device_->error("ncclGetUniqueId", "rank 0 sent no id"));
    }
    std::memcpy(id.internal, heard.data(), sizeof(id.internal));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const std::chrono::milliseconds patience = std::exchange(timeout_, kOpenPatience);
    SAVEGATE_CHECK(accepted("ncclCommInitRankConfig",
                            nccl_.init_rank(&communicator_, world_, id, rank(), &config)));
    SAVEGATE_CHECK(settle("ncclCommInitRankConfig", Clock::now() + timeout_));
    SAVEGATE_CHECK(barrier());  // the first collective connects the devices
    timeout_ = patience;
    return {};
  }

  Result<void> barrier() override {
    SAVEGATE_TRY(const auto all, gather("barrier", std::string(1, 'b')));
    return all.size() == static_cast<std::size_t>(world_)
               ? Result<void>()
               : fail(device_->error("barrier", "a rank was not heard"));
  }

  Result<std::vector<std::string>> all_gather(const std::string& own) override {
    return gather("all_gather", own);
  }

  Result<std::vector<std::string>> all_gather_varied(const std::string& own) override {
    const std::uint64_t own_bytes = own.size();
    SAVEGATE_TRY(const auto words,
                 gather("all_gather",
                        std::string(reinterpret_cast<const char*>(&own_bytes), sizeof(own_bytes))));
    std::vector<std::uint64_t> sizes(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i].copy(reinterpret_cast<char*>(&sizes[i]), sizeof(sizes[i]));
    }
    std::string padded = own;
    padded.resize(*std::max_element(sizes.begin(), sizes.end()));
    SAVEGATE_TRY(auto all, gather("all_gather", padded));
    for (std::size_t i = 0; i < all.size(); ++i) all[i].resize(sizes[i]);
    return all;
  }

  Result<std::string> broadcast(const std::string& own, int root) override {
    SAVEGATE_TRY(auto all, all_gather_varied(rank() == root ? own : std::string()));
    return std::move(all[static_cast<std::size_t>(root)]);
  }

 private:
  Result<std::vector<std::string>> gather(const char* operation, const std::string& own) {
    if (communicator_ == nullptr) {
      return fail(device_->error(operation, "the communicator is broken by an earlier error"));
    }
    const std::uint64_t bytes = own.size();
    const std::uint64_t all_bytes = bytes * static_cast<std::uint64_t>(world_);
    std::vector<std::string> all(static_cast<std::size_t>(world_));
    if (bytes == 0) return all;
    SAVEGATE_CHECK(make_room(bytes + all_bytes));
    own.copy(reinterpret_cast<char*>(staging_), bytes);
    std::uint8_t* received = memory_ + bytes;
    const auto deadline = Clock::now() + timeout_;
    SAVEGATE_CHECK(
        device_->check(cudaMemcpyAsync(memory_, staging_, bytes, cudaMemcpyHostToDevice, stream_),
                       "cudaMemcpyAsync"));
    SAVEGATE_CHECK(accepted(
        operation, nccl_.all_gather(memory_, received, bytes, ncclUint8, communicator_, stream_)));
    SAVEGATE_CHECK(settle(operation, deadline));
    SAVEGATE_CHECK(device_->check(
        cudaMemcpyAsync(staging_ + bytes, received, all_bytes, cudaMemcpyDeviceToHost, stream_),
        "cudaMemcpyAsync"));
    SAVEGATE_CHECK(device_->check(cudaEventRecord(done_, stream_), "cudaEventRecord"));
    SAVEGATE_CHECK(finish(operation, deadline));
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].assign(reinterpret_cast<const char*>(staging_ + bytes + i * bytes), bytes);
    }
    return all;
  }

  // Device and pinned memory of so many bytes each.
  Result<void> make_room(std::uint64_t bytes) {
    if (bytes <= room_) return {};
    room_ = 0;
    if (memory_ != nullptr) device_->give_back(std::exchange(memory_, nullptr));
    if (staging_ != nullptr) device_->give_back_pinned(std::exchange(staging_, nullptr));
    const std::uint64_t wanted = std::max<std::uint64_t>(bytes, 1 << 16);
    SAVEGATE_TRY(void* memory, device_->allocate(wanted));
    memory_ = static_cast<std::uint8_t*>(memory);
    SAVEGATE_TRY(void* staging, device_->allocate_pinned(wanted));
    staging_ = static_cast<std::uint8_t*>(staging);
    SAVEGATE_CHECK(device_->synchronize());  // the pool's memory is ordered on another stream
    room_ = wanted;
    return {};
  }

  // A call was taken on: NCCL says at once that it failed, or goes on with it.
  Result<void> accepted(const char* operation, ncclResult_t result) {
    if (result == ncclSuccess || result == ncclInProgress) return {};
    return broken(operation, nccl_.error_string(result));
  }

  // What was taken on by the communicator is under way on the device.
  Result<void> settle(const char* operation, Clock::time_point deadline) {
    while (true) {
      ncclResult_t state = ncclInProgress;
      SAVEGATE_CHECK(accepted(operation, nccl_.async_error(communicator_, &state)));
      if (state == ncclSuccess) return {};
      SAVEGATE_CHECK(accepted(operation, state));
      SAVEGATE_CHECK(in_time(operation, deadline));
    }
  }

  // The device is done with it.
  Result<void> finish(const char* operation, Clock::time_point deadline) {
    while (true) {
      const cudaError_t state = cudaEventQuery(done_);
      if (state == cudaSuccess) return {};
      if (state != cudaErrorNotReady) return device_->check(state, operation);
      ncclResult_t error = ncclSuccess;
      SAVEGATE_CHECK(accepted(operation, nccl_.async_error(communicator_, &error)));
      SAVEGATE_CHECK(accepted(operation, error));
      SAVEGATE_CHECK(in_time(operation, deadline));
    }
  }

  Result<void> in_time(const char* operation, Clock::time_point deadline) {
    if (Clock::now() < deadline) {
      std::this_thread::sleep_for(kLookEvery);
      return {};
    }
    return broken(operation,
                  "no answer of some peer for " + std::to_string(timeout_.count()) + " ms");
  }

  tl::unexpected<Status> broken(const char* operation, const std::string& why) {
    std::string text = "NCCL: " + why;
    if (const char* last = nccl_.last_error(communicator_); last != nullptr && *last != '\0') {
      text += std::string(": ") + last;
    }
    abort();
    text += stuck_ ? "; the communicator does not even abort" : "; the communicator is aborted";
    return fail(device_->error(operation, text));
  }

  // On a thread of its own, which is left behind if NCCL never comes back: a hang of the abort must
  // not be a hang of the save path.
  void abort() {
    if (communicator_ == nullptr) return;
    auto aborted = std::make_shared<std::promise<void>>();
    std::future<void> done = aborted->get_future();
    std::thread([aborted, call = nccl_.abort, communicator = communicator_,
                 ordinal = device_->ordinal()] {
      static_cast<void>(cudaSetDevice(ordinal));
      static_cast<void>(call(communicator));
      aborted->set_value();
    }).detach();
    stuck_ = done.wait_for(kAbortPatience) != std::future_status::ready;
    communicator_ = nullptr;
  }

  const NcclLibrary& nccl_;
  std::shared_ptr<Device> device_;
  int world_;
  std::chrono::milliseconds timeout_;
  ncclComm_t communicator_ = nullptr;  // null: not open, or broken
  bool stuck_ = false;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t done_ = nullptr;
  std::uint8_t* memory_ = nullptr;   // of the device
  std::uint8_t* staging_ = nullptr;  // pinned
  std::uint64_t room_ = 0;           // bytes of each
};

}  // namespace

Result<std::unique_ptr<Collectives>> open_nccl(std::shared_ptr<Device> device, Collectives& side,
                                               std::chrono::milliseconds timeout) {
  SAVEGATE_TRY(const NcclLibrary* nccl, nccl_library());
  auto collectives =
      std::make_unique<NcclCollectives>(*nccl, std::move(device), side.world(), timeout);
  SAVEGATE_CHECK(collectives->open(side));
  return collectives;
}

}  // namespace savegate::gpu::cuda
