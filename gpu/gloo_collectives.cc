#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <csignal>
#include <exception>

#include "gpu/collectives.h"
#include "gpu/directory_store.h"

namespace savegate::gpu {
namespace {

// Gloo speaks in exceptions; this is the only place that hears them. A peer of -1 is no certain
// one.
template <class Body>
Result<void> guarded(const char* operation, int peer, Body body) {
  try {
    body();
    return {};
  } catch (const std::exception& error) {
    Status status = internal_error(error.what());
    status.code = Code::kSystem;
    status.operation = operation;
    if (peer >= 0) status.text = "peer rank " + std::to_string(peer) + ": " + status.text;
    return fail(std::move(status));
  }
}

// Newer releases of Gloo share the store, older ones borrow it.
template <class Context>
void connect(Context& context, std::shared_ptr<gloo::rendezvous::Store> store,
             std::shared_ptr<gloo::transport::Device> device) {
  if constexpr (requires { context.connectFullMesh(store, device); }) {
    context.connectFullMesh(std::move(store), device);
  } else {
    context.connectFullMesh(*store, device);
  }
}

enum class Round : std::uint8_t { kBarrier, kSizes, kBytes, kBroadcastSize, kBroadcast };
constexpr std::uint64_t kRounds = 5;

const char* operation_of(Round round) {
  switch (round) {
    case Round::kBarrier:
      return "barrier";
    case Round::kSizes:
    case Round::kBytes:
      return "all_gather";
    default:
      return "broadcast";
  }
}

class GlooCollectives : public Collectives {
 public:
  explicit GlooCollectives(std::shared_ptr<gloo::rendezvous::Context> context)
      : context_(std::move(context)) {}

  int rank() const override { return context_->rank; }
  int world() const override { return context_->size; }

  Result<void> barrier() override {
    const std::string token(1, '\0');
    SAVEGATE_CHECK(exchange(Round::kBarrier, token, std::vector<std::uint64_t>(size(), 1)));
    return {};
  }

  Result<std::vector<std::string>> all_gather(const std::string& own) override {
    return exchange(Round::kBytes, own, std::vector<std::uint64_t>(size(), own.size()));
  }

  Result<std::vector<std::string>> all_gather_varied(const std::string& own) override {
    const std::uint64_t own_bytes = own.size();
    const std::string word(reinterpret_cast<const char*>(&own_bytes), sizeof(own_bytes));
    SAVEGATE_TRY(auto words, exchange(Round::kSizes, word,
                                      std::vector<std::uint64_t>(size(), sizeof(own_bytes))));
    std::vector<std::uint64_t> sizes(size());
    for (std::size_t i = 0; i < size(); ++i) words[i].copy(reinterpret_cast<char*>(&sizes[i]), 8);
    return exchange(Round::kBytes, own, sizes);
  }

  Result<std::string> broadcast(const std::string& own, int root) override {
    std::vector<std::uint64_t> sizes(size(), 0);
    const std::uint64_t own_bytes = rank() == root ? own.size() : 0;
    const std::string word(reinterpret_cast<const char*>(&own_bytes), sizeof(own_bytes));
    SAVEGATE_TRY(auto words, exchange(Round::kBroadcastSize, word,
                                      std::vector<std::uint64_t>(size(), sizeof(own_bytes))));
    const auto at = static_cast<std::size_t>(root);
    words[at].copy(reinterpret_cast<char*>(&sizes[at]), sizeof(own_bytes));
    SAVEGATE_TRY(auto all,
                 exchange(Round::kBroadcast, rank() == root ? own : std::string(), sizes));
    return std::move(all[at]);
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(context_->size); }

  struct Incoming {
    int peer;
    std::unique_ptr<gloo::transport::UnboundBuffer> sink;
  };

  // Sends `own` to every peer and takes sizes[i] bytes from each peer i; nothing travels where the
  // size is 0. Each exchange has its own slot, by number and kind, so that ranks out of step wait
  // instead of mixing.
  Result<std::vector<std::string>> exchange(Round round, const std::string& own,
                                            const std::vector<std::uint64_t>& sizes) {
    const char* operation = operation_of(round);
    const std::uint64_t slot = ++exchanges_ * kRounds + static_cast<std::uint64_t>(round);
    std::vector<std::string> all(size());
    all[static_cast<std::size_t>(rank())] = own;
    std::string outgoing = own;
    std::vector<Incoming> incoming;
    std::unique_ptr<gloo::transport::UnboundBuffer> source;
    for (int peer = 0; peer < world(); ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      if (peer == rank() || sizes[at] == 0) continue;
      all[at].resize(sizes[at]);
      SAVEGATE_CHECK(guarded(operation, peer, [&] {
        incoming.push_back({peer, context_->createUnboundBuffer(all[at].data(), sizes[at])});
        incoming.back().sink->recv(peer, slot);
      }));
    }
    SAVEGATE_CHECK(send_to_all(operation, outgoing, source, slot));
    for (const Incoming& each : incoming) {
      SAVEGATE_CHECK(guarded(operation, each.peer, [&] { each.sink->waitRecv(); }));
    }
    for (int sends = source == nullptr ? 0 : world() - 1; sends > 0; --sends) {
      SAVEGATE_CHECK(guarded(operation, -1, [&] { source->waitSend(); }));
    }
    return all;
  }

  Result<void> send_to_all(const char* operation, std::string& bytes,
                           std::unique_ptr<gloo::transport::UnboundBuffer>& source,
                           std::uint64_t slot) {
    if (bytes.empty()) return {};
    source = context_->createUnboundBuffer(bytes.data(), bytes.size());
    for (int peer = 0; peer < world(); ++peer) {
      if (peer == rank()) continue;
      SAVEGATE_CHECK(guarded(operation, peer, [&] { source->send(peer, slot); }));
    }
    return {};
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::uint64_t exchanges_ = 0;
};

}  // namespace

Result<std::unique_ptr<Collectives>> open_gloo(const GlooOptions& options) {
  // Gloo writes to a peer's socket as to any other: a peer that died must be an error, not our end.
  std::signal(SIGPIPE, SIG_IGN);
  std::shared_ptr<gloo::rendezvous::Context> context;
  SAVEGATE_CHECK(guarded("rendezvous", -1, [&] {
    gloo::transport::tcp::attr address("127.0.0.1");
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(address);
    auto store = std::make_shared<DirectoryStore>(options.rendezvous, options.timeout);
    context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.world);
    context->setTimeout(options.timeout);
    connect(*context, std::move(store), device);
  }));
  return std::make_unique<GlooCollectives>(std::move(context));
}

}  // namespace savegate::gpu
