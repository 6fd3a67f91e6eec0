#include "scenarios/subjects/reference/exporter.h"

#include <gtest/gtest.h>

namespace savegate::reference {
namespace {

class ExporterTest : public testing::Test {
 protected:
  std::string digest(Exporter& exporter) { return exporter.digest(state_).value().hex(); }
  std::string fresh_digest() {
    Exporter fresh(*backend_);
    return digest(fresh);
  }

  std::unique_ptr<gpu::Backend> backend_ = gpu::open_backend("cpu").value();
  State state_ = State::create(*backend_, {}, 1 << 16).value();
};

TEST_F(ExporterTest, OneStateHasOneExport) {
  ASSERT_TRUE(state_.start(*backend_, 0));
  Exporter exporter(*backend_);
  EXPECT_EQ(digest(exporter), digest(exporter));
  EXPECT_EQ(digest(exporter), fresh_digest());
}

// R4: the scales of an engine that was built before the load are not those of the loaded weights.
TEST_F(ExporterTest, ALoadMakesTheScalesInvalid) {
  Exporter exporter(*backend_);
  ASSERT_TRUE(exporter.built(state_));
  ASSERT_TRUE(state_.start(*backend_, 0));
  EXPECT_NE(digest(exporter), fresh_digest());
  exporter.loaded();
  EXPECT_EQ(digest(exporter), fresh_digest());
}

TEST_F(ExporterTest, AnUpdateMakesTheScalesInvalid) {
  Exporter exporter(*backend_);
  ASSERT_TRUE(exporter.built(state_));
  ASSERT_TRUE(state_.start(*backend_, 0));
  exporter.updated();
  EXPECT_EQ(digest(exporter), fresh_digest());
}

// Only bits of the parameters count: moments, counters and random numbers are not exported.
TEST_F(ExporterTest, TheOptimizerIsNotExported) {
  ASSERT_TRUE(state_.start(*backend_, 0));
  const std::string before = fresh_digest();
  for (const NamedTensor& named : state_.tensors) {
    if (named.kind == "optimizer") named.tensor.data[0] = std::byte{1};
  }
  EXPECT_EQ(fresh_digest(), before);
  state_.tensors[state_.parameters[0].value].tensor.data[1] ^= std::byte{0x40};
  EXPECT_NE(fresh_digest(), before);
}

}  // namespace
}  // namespace savegate::reference
