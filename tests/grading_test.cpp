// SPDX-License-Identifier: MIT
// What the grader believes of a process that says how long it took, and what the two say to each
// other. The rest of ./run grade is tested by tests/grading.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "tools/grading/message.hpp"
#include "tools/grading/speed.hpp"

namespace cookbook::grading {
namespace {

// Times are in microseconds.
std::string judged(const std::vector<Sample>& submission, double least_us = 0) {
  // The baseline: its device is idle 3 later than its stream, and its answer there 100 later.
  return not_believed({{200, 203, 300}}, submission, least_us);
}

bool names(const std::string& reason, const char* part) {
  return reason.find(part) != std::string::npos;
}

TEST(NotBelieved, HonestTimesAre) {
  EXPECT_EQ(judged({{200, 203, 300}}), "");
  EXPECT_EQ(judged({{10, 11, 60}}), "");  // faster, and less around it
  EXPECT_EQ(judged({{9000, 9003, 9100}}, 8000), "");
}

TEST(NotBelieved, ATimeAboveTheRoof) {
  EXPECT_EQ(judged({{100, 103, 200}}, 104.9), "");  // roofs vary by 5 %
  EXPECT_TRUE(names(judged({{100, 103, 200}}, 105.1),
                    "above the roof: 100.0 us where the measured "
                    "roof allows 105.1 us"));
  EXPECT_TRUE(names(judged({{0, 3, 100}}), "above the roof"));  // no roof is known: not nothing
  EXPECT_TRUE(names(judged({{-1, 3, 100}}), "above the roof"));
  EXPECT_NE(judged({{std::nan(""), 3, 100}}), "");
}

// 25, and 5 % of the time, more than the baseline's are the machine's.
TEST(NotBelieved, WorkOnAnotherStream) {
  EXPECT_EQ(judged({{100, 132.9, 230}}), "");  // 32.9 after it, of 3 + 25 + 5
  EXPECT_TRUE(names(judged({{100, 133.1, 230}}), "on another stream: 33 us; 3 us are usual"));
  EXPECT_EQ(judged({{1000, 1077.9, 1100}}), "");
  EXPECT_TRUE(names(judged({{1000, 1078.1, 1100}}), "on another stream"));
}

TEST(NotBelieved, ATimeThatTheGradersClockDoesNotKnow) {
  EXPECT_EQ(judged({{100, 103, 229.9}}), "");  // 129.9 around it, of 100 + 25 + 5
  EXPECT_TRUE(names(judged({{100, 103, 230.1}}),
                    "its process says 100.0 us, and the grader's clock 130 us more; 100 us more "
                    "are usual"));
  EXPECT_EQ(judged({{1000, 1003, 1174.9}}), "");
  EXPECT_TRUE(names(judged({{1000, 1003, 1175.1}}), "the grader's clock"));
}

TEST(NotBelieved, GoesByMedians) {
  const Sample good{100, 103, 200}, late{100, 180, 280};
  EXPECT_EQ(judged({good, late, good}), "");
  EXPECT_TRUE(names(judged({late, good, late}), "on another stream"));
  EXPECT_EQ(not_believed({good, late, late}, {late}, 0), "");  // usual for the baseline too
  EXPECT_TRUE(names(not_believed({late, good, good}, {late}, 0), "on another stream"));
}

// ---- messages ----

class Message : public ::testing::Test {
 protected:
  Message() { EXPECT_EQ(pipe(ends_), 0); }
  ~Message() override {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  void end() {
    close(ends_[1]);
    ends_[1] = -1;
  }
  void put(const void* data, std::size_t bytes) {
    EXPECT_EQ(write(ends_[1], data, bytes), static_cast<ssize_t>(bytes));
  }
  std::string failure(std::uint64_t most_bytes) {
    nlohmann::json message;
    try {
      return receive(ends_[0], most_bytes, message) ? "received" : "ended";
    } catch (const BrokenPipe& error) {
      return error.what();
    }
  }
  int ends_[2] = {-1, -1};
};

TEST_F(Message, ArrivesWhole) {
  nlohmann::json sent{{"do", "go"}, {"size", {3, 4}}};
  // More than a pipe holds, so that it is written and read in pieces.
  sent["data"] = nlohmann::json::binary(std::vector<std::uint8_t>(1 << 20, 7));
  std::thread sender([&] {
    send(ends_[1], sent);
    send(ends_[1], {{"last", true}});
  });
  nlohmann::json message;
  EXPECT_TRUE(receive(ends_[0], 2 << 20, message));
  EXPECT_EQ(message, sent);
  EXPECT_TRUE(receive(ends_[0], 100, message));
  EXPECT_EQ(message, nlohmann::json({{"last", true}}));
  sender.join();
  end();
  EXPECT_FALSE(receive(ends_[0], 100, message));
}

TEST_F(Message, IsAtMostAsLongAsItMayBe) {
  const auto bytes = nlohmann::json::to_cbor({{"do", "go"}});
  send(ends_[1], {{"do", "go"}});
  EXPECT_EQ(failure(bytes.size()), "received");
  send(ends_[1], {{"do", "go"}});
  EXPECT_EQ(failure(bytes.size() - 1), "a message is longer than it may be");
}

TEST_F(Message, BrokenOnesAreNamed) {
  const std::uint64_t length = 3;
  const unsigned char no_cbor[] = {0xff, 0xff, 0xff};
  put(&length, sizeof length);
  put(no_cbor, 3);
  EXPECT_EQ(failure(100), "a message is not CBOR");
  put(&length, sizeof length);
  put(no_cbor, 2);
  end();
  EXPECT_EQ(failure(100), "a message ended early");
}

TEST_F(Message, EndsWithinItsLength) {
  const std::uint64_t length = 3;
  put(&length, 5);
  end();
  EXPECT_EQ(failure(100), "a message ended early");
}

TEST_F(Message, EndsBeforeItsContent) {
  const std::uint64_t length = 3;
  put(&length, sizeof length);
  end();
  EXPECT_EQ(failure(100), "a message ended early");
}

}  // namespace
}  // namespace cookbook::grading
