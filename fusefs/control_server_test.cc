// Clients that break off, flood, do not read or are somebody else: the others are served.
#include "fusefs/control_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <vector>

#include "fusefs/control.h"

namespace savegate::fusefs {
namespace {

// A client that says what it likes.
class Raw {
 public:
  explicit Raw(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  Raw(Raw&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Raw& operator=(Raw&&) = delete;
  ~Raw() {
    if (fd_ >= 0) ::close(fd_);
  }

  void end_sending() const { ::shutdown(fd_, SHUT_WR); }
  // Bytes sent: fewer where the server has closed.
  std::size_t send(std::string_view bytes) const {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t part = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (part <= 0) break;
      sent += static_cast<std::size_t>(part);
    }
    return sent;
  }
  // As many as the socket takes without anybody who reads.
  std::size_t send_without_waiting(std::string_view bytes) const {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }
  std::string read_to_end() const {
    std::string all;
    std::vector<char> part(65536);
    for (ssize_t got; (got = ::recv(fd_, part.data(), part.size(), 0)) > 0;)
      all.append(part.data(), static_cast<std::size_t>(got));
    return all;
  }

 private:
  int fd_;
};

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() {
    folder_ = testing::TempDir() + "control-XXXXXX";
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    auto server =
        ControlServer::listen(path(), [this](const ControlRequest& request) { handle(request); });
    EXPECT_TRUE(server) << server.error().to_string();
    server_ = std::move(*server);
  }
  ~ControlServerTest() override {
    server_.reset();
    ::rmdir(folder_.c_str());
  }

  std::string path() const { return folder_ + "/socket"; }
  bool answers() const {
    auto client = ControlClient::connect(path());
    const auto reply = client ? client->call("hello") : fail(client.error());
    return reply && *reply == "hello";
  }
  void handle(const ControlRequest& request) {
    if (request.line == "hold") {
      request.on_hangup([this] { hung_up(); });
    } else if (request.line == "big") {
      request.reply(std::string(1 << 20, 'x'));
    } else {
      request.reply(request.line);
    }
  }
  void hung_up() {
    const std::lock_guard lock(mutex_);
    hangups_++;
    changed_.notify_all();
  }
  bool wait_for_hangups(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return hangups_ >= count; });
  }

  std::string folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int hangups_ = 0;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, LinesThatCameTogetherAreAnsweredInOrder) {
  const Raw client(path());
  client.send("a\nb\nc\n");
  client.end_sending();
  EXPECT_EQ(client.read_to_end(), "a\nb\nc\n");
}

TEST_F(ControlServerTest, ALineInPiecesIsOneLine) {
  const Raw client(path());
  for (const char* piece : {"a", "b", "c\n"}) client.send(piece);
  client.end_sending();
  EXPECT_EQ(client.read_to_end(), "abc\n");
}

TEST_F(ControlServerTest, HalfALineIsDroppedWithItsPeer) {
  {
    const Raw client(path());
    client.send("{\"cmd\":\"st");
  }
  const Raw client(path());
  client.send("half");
  client.end_sending();
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_TRUE(answers());
}

TEST_F(ControlServerTest, ALineWithoutEndIsRefusedAtItsLimit) {
  const Raw client(path());
  const std::string much(2 * ControlServer::kLongestLine, 'x');
  EXPECT_LT(client.send(much), much.size());
  EXPECT_NE(client.read_to_end().find("longer than 16 MiB"), std::string::npos);
  EXPECT_TRUE(answers());
}

TEST_F(ControlServerTest, APeerThatDoesNotReadHoldsNobodyUp) {
  const Raw deaf(path());
  std::string requests;
  for (int i = 0; i < 100; i++) requests += "big\n";
  EXPECT_EQ(deaf.send(requests), requests.size());
  EXPECT_TRUE(answers());
  deaf.end_sending();
  EXPECT_EQ(deaf.read_to_end().size(), 100 * ((std::size_t{1} << 20) + 1));
}

TEST_F(ControlServerTest, AHeldRequestIsToldThatItsPeerIsGone) {
  {
    const Raw client(path());
    client.send("hold\n");
    EXPECT_TRUE(answers());
  }
  EXPECT_TRUE(wait_for_hangups(1));
}

TEST_F(ControlServerTest, TwoHundredConnectionsAreServedAndTheirEndIsSeen) {
  std::vector<Raw> held;
  held.reserve(200);
  for (int i = 0; i < 200; i++) {
    held.emplace_back(path());
    held.back().send("hold\nhello\nrest of a li");
  }
  EXPECT_TRUE(answers());
  held.clear();
  EXPECT_TRUE(wait_for_hangups(200));
  EXPECT_TRUE(answers());
}

TEST_F(ControlServerTest, ASecondServerOnTheSameSocketIsRefused) {
  const auto second = ControlServer::listen(path(), [](const ControlRequest&) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().error, EADDRINUSE);
  EXPECT_TRUE(answers());
}

TEST_F(ControlServerTest, TheEndWaitsForAPeerThatLingers) {
  std::string got;
  {
    std::unique_ptr<ControlServer> server;
    const std::string other = folder_ + "/lingering";
    ControlRequest kept;
    std::condition_variable here;
    server = std::move(*ControlServer::listen(other, [&](const ControlRequest& request) {
      if (request.line == "last") return request.reply("granted");
      request.linger();
      const std::lock_guard lock(mutex_);
      kept = request;
      here.notify_all();
    }));
    auto client = ControlClient::connect(other);
    ASSERT_TRUE(client);
    std::thread asker([&] {
      EXPECT_TRUE(client->call("wait"));
      const auto last = client->call("last");
      got = last ? *last : last.error().to_string();
      const ControlClient gone = std::move(*client);
    });
    {
      std::unique_lock lock(mutex_);
      here.wait(lock, [&] { return kept.reply != nullptr; });
    }
    std::thread ending([&] { server.reset(); });
    kept.reply("now");
    asker.join();
    ending.join();
    kept = {};
  }
  EXPECT_EQ(got, "granted");
}

}  // namespace
}  // namespace savegate::fusefs
