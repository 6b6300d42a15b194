// Goal: processes that have a GPU each find each other and pass tensors through
// NCCL as the executor's ordering rules want it: whatever order tensors are sent
// in, whoever is slow and whoever is lost. On the double, with threads in place
// of processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

#include "executor/cuda_check.h"
#include "executor/cuda_double_devices.h"
#include "executor/cuda_double_streams.h"
#include "executor/cuda_launchers.h"
#include "executor/cuda_nccl_connections.h"
#include "executor/cuda_nccl_transport.h"
#include "executor/cuda_synthetic_device.h"
#include "tests/executor/runs_for_tests.h"

namespace rrfp {
namespace {

constexpr std::int64_t kPatienceNs = 5'000 * kMillisecond;

// What the processes have said to each other can be looked at, and changed.
class WatchedExchange final : public LaneExchange {
 public:
  using Watch = std::function<void(int endpoint, int number, std::vector<Payload>& all)>;

  WatchedExchange(std::shared_ptr<ThreadsLaneGroup> everyone, int endpoint, const Watch& watch)
      : exchange_(std::move(everyone), endpoint), endpoint_(endpoint), watch_(watch) {}
  int lanes() const override { return exchange_.lanes(); }
  Result<std::vector<Payload>> exchange(Payload mine) override {
    Result<std::vector<Payload>> all = exchange_.exchange(std::move(mine));
    if (all.ok() && watch_) watch_(endpoint_, number_++, *all);
    return all;
  }

 private:
  ThreadsLaneExchange exchange_;
  const int endpoint_;
  const Watch& watch_;
  int number_ = 0;
};

class CudaNccl : public testing::Test {
 protected:
  void SetUp() override {
    setenv("RRFP_DOUBLE_DEVICES", "8", 1);
    DoubleMachine::get().reset();
  }
  void TearDown() override {
    transports_.clear();
    connections_.clear();
    partitions_.clear();
    DoubleMachine::get().check([](DoubleChecks& checks) {
      EXPECT_EQ(checks.blocks_out(), 0U);
      EXPECT_EQ(checks.communicators_out(), 0U);
    });
    EXPECT_EQ(DoubleMachine::get().objection(), "");
    DoubleMachine::get().reset();
    unsetenv("RRFP_DOUBLE_DEVICES");
  }

  CudaSettings settings(int endpoint) const {
    CudaSettings settings;
    settings.device = endpoint;
    settings.grid = grid_;
    settings.first_endpoint = endpoint;
    settings.patience_ns = patience_ns_;
    settings.connect_ns = connect_ns_;
    settings.look_every_ns = 20 * kMicrosecond;
    settings.name_of_task = [](TaskId task) { return "task " + std::to_string(task); };
    return settings;
  }

  static std::shared_ptr<CudaDevicePartitions> partitions_of(const CudaSettings& settings) {
    Result<CudaDevicePartitions> made = CudaDevicePartitions::create(settings.device, 1);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::make_shared<CudaDevicePartitions>(std::move(*made));
  }

  // Every endpoint in a thread of its own; what each is told, by endpoint. `change`: what is wrong.
  std::vector<std::string> try_to_connect(const std::function<void(CudaSettings&)>& change =
                                              [](CudaSettings&) {}) {
    const auto size = static_cast<std::size_t>(grid_.size());
    auto everyone = std::make_shared<ThreadsLaneGroup>(grid_.size(), kPatienceNs);
    partitions_.resize(size);
    connections_.resize(size);
    std::vector<std::string> errors(size);
    std::vector<std::thread> threads;
    for (int endpoint = 0; endpoint < grid_.size(); ++endpoint) {
      threads.emplace_back([&, endpoint] {
        const auto index = static_cast<std::size_t>(endpoint);
        CudaSettings mine = settings(endpoint);
        change(mine);
        partitions_[index] = partitions_of(mine);
        WatchedExchange exchange(everyone, endpoint, on_exchange_);
        Result<std::shared_ptr<CudaNcclConnections>> made = CudaNcclConnections::connect(
            mine, {endpoint, channels_, &exchange}, partitions_[index]);
        if (made.ok()) connections_[index] = std::move(*made);
        if (!made.ok()) errors[index] = made.error().message;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  void connect(const Grid& grid) {
    grid_ = grid;
    channels_.clear();
    for (int rank = 0; rank + 1 < grid.ranks; ++rank) {
      for (int lane = 0; lane < grid.lanes; ++lane) {
        const int here = grid.endpoint({0, rank, lane});
        const int next = grid.endpoint({0, rank + 1, lane});
        channels_.push_back({here, next});
        channels_.push_back({next, here});
      }
    }
    for (const std::string& error : try_to_connect()) EXPECT_EQ(error, "");
    // As devices do, for what tests send; on one that no process has.
    cudaSetDevice(7);
    for (const auto& of : partitions_) {
      EXPECT_TRUE(of->partition(0).blocks().reserve(std::vector<std::size_t>(16, 1'000'001)).ok());
    }
    std::vector<std::pair<int, int>> pairs;
    for (int a = 0; a < grid.size(); ++a) {
      for (int b = 0; b < grid.size(); ++b) {
        if (a != b) pairs.push_back({a, b});
      }
    }
    network_ = std::make_unique<ThreadsNetwork>(grid.size(), pairs, ThreadsTuning{});
    for (int endpoint = 0; endpoint < grid.size(); ++endpoint) {
      transports_.push_back(std::make_unique<CudaNcclTransport>(
          connections_[static_cast<std::size_t>(endpoint)], network_->transport(endpoint)));
    }
  }

  Transport& transport(int endpoint) { return *transports_[static_cast<std::size_t>(endpoint)]; }
  CudaPartition& partition(int endpoint) {
    return partitions_[static_cast<std::size_t>(endpoint)]->partition(0);
  }

  // A tensor of `bytes` that holds `word`, as a device hands it on.
  void send(int from, int to, std::size_t bytes, std::uint64_t word) {
    CudaPartition& of = partition(from);
    const Result<void*> block = of.blocks().take(bytes);
    ASSERT_TRUE(block.ok());
    ASSERT_EQ(launch_fill_pattern(*block, bytes, word, of.compute()), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(of.compute()), cudaSuccess);
    Payload payload = to_payload(CudaMessage{*block, bytes, &of.blocks()});
    Letter letter;
    letter.tag = Tag::kMessage;
    letter.from = from;
    letter.to = to;
    letter.task = 7;
    letter.time_ns = static_cast<std::int64_t>(word);
    letter.bytes = static_cast<std::int64_t>(payload.size());
    transport(from).send(letter, std::move(payload));
  }

  // Looks once; what came is given back, and its letter kept. False where nothing did.
  bool look(int endpoint, std::vector<Letter>& came) {
    Delivery delivery;
    if (!transport(endpoint).poll(delivery)) return false;
    if (delivery.event == Delivery::Event::kAnnounced) {
      transport(endpoint).receive(delivery.letter);
      return true;
    }
    came.push_back(delivery.letter);
    const std::optional<CudaMessage> message = to_cuda_message(delivery.payload);
    if (!message) return true;
    EXPECT_EQ(delivery.letter.bytes, static_cast<std::int64_t>(message->bytes));
    CudaPartition& of = partition(endpoint);
    const auto word = static_cast<std::uint64_t>(delivery.letter.time_ns);
    launch_check_pattern(message->block, message->bytes, word, {of.fault().get(), 1}, of.compute());
    cudaStreamSynchronize(of.compute());
    EXPECT_EQ(of.fault().load(), 0U) << "another tensor came in place of this one";
    message->give_back();
    return true;
  }

  // Until `done` or an error or the patience's end.
  void look_until(const std::vector<int>& endpoints, std::vector<Letter>& came,
                  const std::function<bool()>& done) {
    const std::int64_t give_up_ns = MonotonicClock::read_ns() + kPatienceNs;
    while (!done() && MonotonicClock::read_ns() < give_up_ns) {
      bool moved = false;
      for (const int endpoint : endpoints) moved = look(endpoint, came) || moved;
      if (!moved) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    EXPECT_TRUE(done());
  }

  Grid grid_{1, 2, 1};
  std::vector<std::pair<int, int>> channels_ = {{0, 1}, {1, 0}};
  std::int64_t patience_ns_ = kPatienceNs;
  std::int64_t connect_ns_ = kPatienceNs;
  WatchedExchange::Watch on_exchange_;
  std::vector<std::shared_ptr<CudaDevicePartitions>> partitions_;
  std::vector<std::shared_ptr<CudaNcclConnections>> connections_;
  std::unique_ptr<ThreadsNetwork> network_;
  std::vector<std::unique_ptr<CudaNcclTransport>> transports_;
};

TEST_F(CudaNccl, TensorsOfAllSizesComeInTheOrderOfTheirSendingBothWays) {
  connect({1, 2, 1});
  const std::size_t sizes[] = {1, 300'000, 8, 65'536, 65'537, 3, 1'000'001, 512};
  std::uint64_t word = 1;
  for (const std::size_t bytes : sizes) {
    send(0, 1, bytes, word++);
    send(1, 0, bytes, word++);
  }
  std::vector<Letter> came[2];
  look_until({0, 1}, came[0], [&] { return came[0].size() == 2 * std::size(sizes); });
  std::int64_t last[2] = {0, 0};
  for (const Letter& letter : came[0]) {
    EXPECT_GT(letter.time_ns, last[letter.to]);
    last[letter.to] = letter.time_ns;
  }
  look_until({0, 1}, came[1], [&] { return transport(0).flushed() && transport(1).flushed(); });
}

// Nothing that rank 0 has sent is taken, and yet all else moves.
TEST_F(CudaNccl, ASendThatIsNotTakenYetHoldsUpNothingElse) {
  connect({1, 3, 1});
  send(1, 2, 1'000'000, 1);
  send(1, 0, 1'000'000, 2);
  send(0, 1, 1'000'000, 3);
  Letter letter;
  letter.tag = Tag::kBeat;
  letter.to = 0;
  transport(1).tell(letter);
  std::vector<Letter> came;
  look_until({0, 1}, came, [&] { return came.size() == 3; });
  EXPECT_FALSE(transport(1).flushed());
  look_until({1, 2}, came, [&] { return came.size() == 4; });
  EXPECT_EQ(came.back().to, 2);
  look_until({1}, came, [&] { return transport(1).flushed(); });
}

TEST_F(CudaNccl, APeerThatDoesNotComeIsNamedByItsChannel) {
  patience_ns_ = 200 * kMillisecond;
  connect({1, 2, 1});
  send(0, 1, 1'000'000, 1);
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  std::vector<Letter> came;
  look_until({0}, came, [&] { return !transport(0).status().ok(); });
  const std::string error = transport(0).status().error().message;
  EXPECT_NE(
      error.find("channel rank 0 -> rank 1: the send of 1000000 bytes for task 7 (number 0 of "
                 "the channel): the other end has not come within 2"),
      std::string::npos)
      << error;
  EXPECT_NE(error.find("; a --patience-ms above "), std::string::npos) << error;
  // The blocked send is woken, so that nobody hangs.
  transports_.clear();
  connections_.clear();
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 4'000 * kMillisecond);
}

// One after the other, the first abort would wait for the second channel's send: the double
// objects.
TEST_F(CudaNccl, AllChannelsAreGivenUpAtOnce) {
  for (const char* nccl : {"", "nccl-2.21"}) {
    setenv("RRFP_DOUBLE_WITH", nccl, 1);
    connect({1, 3, 1});
    send(1, 0, 1'000'000, 1);
    send(1, 2, 1'000'000, 2);
    std::vector<Letter> came;
    look_until({1}, came, [] { return spinning_kernels(1) == 2; });
    connections_[1]->abort();
    EXPECT_EQ(spinning_kernels(1), 0);
    EXPECT_EQ(DoubleMachine::get().objection(), "") << nccl;
    look_until({1}, came, [&] { return !transport(1).status().ok(); });
    transports_.clear();
    connections_.clear();
  }
  unsetenv("RRFP_DOUBLE_WITH");
}

// The first of two calls is accepted, and the group then does nothing for either.
TEST_F(CudaNccl, AChannelThatAGroupRefusesToAbortIsAbortedAlone) {
  connect({1, 3, 1});
  send(1, 0, 1'000'000, 1);
  send(1, 2, 1'000'000, 2);
  std::vector<Letter> came;
  look_until({1}, came, [] { return spinning_kernels(1) == 2; });
  setenv("RANK", "1", 1);
  setenv("RRFP_DOUBLE_FAULT", "1,ncclCommAbort,2,fail", 1);
  connections_[1]->abort();
  unsetenv("RRFP_DOUBLE_FAULT");
  unsetenv("RANK");
  EXPECT_EQ(spinning_kernels(1), 0);
}

// As above, by whoever lets go of connections that are not idle.
TEST_F(CudaNccl, ConnectionsThatAreLetGoOfGiveUpAllChannelsAtOnce) {
  connect({1, 3, 1});
  for (const int to : {0, 2}) {
    const Result<void*> block = partition(1).blocks().take(1'000'000);
    ASSERT_TRUE(block.ok());
    connections_[1]->to(to)->push({Letter{}, {*block, 1'000'000, &partition(1).blocks()}});
  }
  const std::int64_t give_up_ns = MonotonicClock::read_ns() + kPatienceNs;
  while (spinning_kernels(1) < 2 && MonotonicClock::read_ns() < give_up_ns) {
    for (const int to : {0, 2}) ASSERT_TRUE(connections_[1]->to(to)->step().ok());
  }
  transports_.erase(transports_.begin() + 1);
  connections_[1].reset();
  EXPECT_EQ(spinning_kernels(1), 0);
}

// Keeps what is told until it is flushed for the second time.
class SlowControl final : public CudaCarriedTransport {
 public:
  explicit SlowControl(Transport& below) : CudaCarriedTransport(below, 0) {}
  void tell(const Letter& letter) override { kept_.push_back(letter); }
  void send(const Letter& letter, Payload payload) override {
    control().send(letter, std::move(payload));
  }
  bool poll(Delivery& delivery) override { return control().poll(delivery); }
  void receive(const Letter& announced) override { control().receive(announced); }
  bool flushed() override {
    if (asked_++ == 0) return false;
    for (const Letter& letter : kept_) control().tell(letter);
    kept_.clear();
    return control().flushed();
  }

 private:
  bool idle() const override { return true; }
  std::vector<Letter> kept_;
  int asked_ = 0;
};

TEST_F(CudaNccl, TheLastLettersLeaveAfterAFailureToo) {
  connect({1, 2, 1});
  SlowControl slow(network_->transport(0));
  CudaNcclTransport failing(connections_[0], slow);
  Letter letter;
  letter.tag = Tag::kMessage;
  letter.from = 1;
  letter.device_bytes = 8;
  letter.sequence = 7;  // not the next
  network_->transport(1).tell(letter);
  Delivery delivery;
  EXPECT_FALSE(failing.poll(delivery));
  ASSERT_FALSE(failing.status().ok());
  Letter last;
  last.tag = Tag::kEnd;
  last.to = 1;
  failing.tell(last);
  EXPECT_FALSE(failing.flushed()) << "the control plane still has it";
  EXPECT_TRUE(failing.flushed());
  ASSERT_TRUE(network_->transport(1).poll(delivery));
  EXPECT_EQ(delivery.letter.tag, Tag::kEnd);
}

TEST_F(CudaNccl, AnAnnouncementOutOfOrderIsRefused) {
  connect({1, 2, 1});
  Letter letter;
  letter.tag = Tag::kMessage;
  letter.from = 0;
  letter.to = 1;
  letter.device_bytes = 8;
  letter.sequence = 1;
  network_->transport(0).tell(letter);
  std::vector<Letter> came;
  look_until({1}, came, [&] { return !transport(1).status().ok(); });
  EXPECT_EQ(transport(1).status().error().message,
            "process 0 announces tensor 1, which is not the next of a channel");
}

// The receive would be of as many bytes as there are addresses, into a block of none.
TEST_F(CudaNccl, AnAnnouncementOfWhatIsNoSizeIsRefused) {
  for (const auto& [tag, bytes] :
       {std::pair(Tag::kMessage, std::int64_t{-1}),
        std::pair(Tag::kMessage, std::numeric_limits<std::int64_t>::min()),
        std::pair(Tag::kNotice, std::int64_t{8})}) {
    connect({1, 2, 1});
    Letter letter;
    letter.tag = tag;
    letter.from = 0;
    letter.to = 1;
    letter.device_bytes = bytes;
    network_->transport(0).tell(letter);
    std::vector<Letter> came;
    look_until({1}, came, [&] { return !transport(1).status().ok(); });
    EXPECT_EQ(transport(1).status().error().message, "process 0 announces a tensor of " +
                                                         std::to_string(bytes) +
                                                         " bytes with a letter that can have none");
    transports_.clear();
    connections_.clear();
  }
}

TEST_F(CudaNccl, AnAnnouncementOfMoreThanAnyTensorIsRefused) {
  connect({1, 2, 1});
  Letter letter;
  letter.tag = Tag::kMessage;
  letter.from = 0;
  letter.to = 1;
  letter.device_bytes = std::numeric_limits<std::int64_t>::max();
  network_->transport(0).tell(letter);
  std::vector<Letter> came;
  look_until({1}, came, [&] { return !transport(1).status().ok(); });
  EXPECT_EQ(transport(1).status().error().message.rfind(
                "no block of 9223372036854775807 bytes is left: it is for none", 0),
            0U)
      << transport(1).status().error().message;
}

// What rrfp devices --check does, where all is well and where an abort is refused.
TEST_F(CudaNccl, TheCheckOfOneProcessSeesAnAbortThatFails) {
  const Result<std::string> well = check_cuda_nccl(1 << 20);
  ASSERT_TRUE(well.ok()) << well.error().message;
  EXPECT_NE(well->find("two are aborted together"), std::string::npos) << *well;
  setenv("RANK", "0", 1);
  for (const char* fault : {"0,ncclCommAbort,1,fail", "0,ncclCommAbort,2,fail"}) {
    setenv("RRFP_DOUBLE_FAULT", fault, 1);
    const Result<std::string> refused = check_cuda_nccl(1 << 20);
    ASSERT_FALSE(refused.ok()) << fault;
    EXPECT_EQ(refused.error().message.rfind(
                  "the abort of two communicators: ncclCommAbort in a group: ", 0),
              0U)
        << refused.error().message;
  }
  unsetenv("RRFP_DOUBLE_FAULT");
  unsetenv("RANK");
}

TEST_F(CudaNccl, TwoProcessesWithOneGpuAreToldSo) {
  const std::vector<std::string> errors =
      try_to_connect([](CudaSettings& mine) { mine.device = 3; });
  for (const std::string& error : errors) {
    EXPECT_EQ(error.rfind("processes 0 and 1 both have GPU 0000:", 0), 0U) << error;
    EXPECT_NE(error.find("NCCL wants one for each"), std::string::npos) << error;
  }
}

TEST_F(CudaNccl, ProcessesThatWereStartedDifferentlyAreToldSo) {
  std::vector<std::string> errors(2);
  auto everyone = std::make_shared<ThreadsLaneGroup>(2, kPatienceNs);
  std::vector<std::thread> threads;
  for (int endpoint = 0; endpoint < 2; ++endpoint) {
    threads.emplace_back([&, endpoint] {
      const CudaSettings mine = settings(endpoint);
      ThreadsLaneExchange exchange(everyone, endpoint);
      std::vector<std::pair<int, int>> channels = channels_;
      if (endpoint == 1) channels.pop_back();
      errors[static_cast<std::size_t>(endpoint)] =
          CudaNcclConnections::connect(mine, {endpoint, channels, &exchange}, partitions_of(mine))
              .error()
              .message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_NE(error, "");
}

// To process 2 the channel from process 1 has an identifier that cannot be, so process 1 waits for
// it in vain; and process 0 has all its channels.
TEST_F(CudaNccl, WhereOneCannotBeConnectedAllAreToldWhy) {
  grid_ = {1, 3, 1};
  channels_ = {{0, 1}, {1, 0}, {1, 2}, {2, 1}};
  connect_ns_ = patience_ns_ = 300 * kMillisecond;
  on_exchange_ = [](int endpoint, int number, std::vector<Payload>& all) {
    if (endpoint != 2 || number != 1) return;
    std::memset(all[1].data() + sizeof(CudaGreeting), 0, 2 * sizeof(ncclUniqueId));
  };
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  for (const std::string& error : try_to_connect()) {
    EXPECT_EQ(error.rfind("process 2: channel rank 1 -> rank 2 cannot be connected: nccl", 0), 0U)
        << error;
  }
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 4'000 * kMillisecond);
}

// Lane 0 is in the first sum by then.
TEST_F(CudaNccl, WhereOneLaneCannotSumAllAreToldWhy) {
  grid_ = {1, 1, 2};
  channels_.clear();
  connect_ns_ = patience_ns_ = 300 * kMillisecond;
  const std::vector<std::string> errors = try_to_connect([](CudaSettings& mine) {
    if (mine.first_endpoint == 1) mine.largest_part_bytes = 2 * DoubleMachine::kBytes;
  });
  for (const std::string& error : errors) {
    EXPECT_EQ(error.find("process 1: the lanes of rank 0 cannot be connected: device 1 has no room "
                         "for the first of the lanes' sums: 25770 MB are needed, "),
              0U)
        << error;
  }
}

// 512 processes with all channels' identifiers each would bring 134 MB to each.
TEST_F(CudaNccl, AProcessBringsItsOwnChannelsAlone) {
  grid_ = {1, 5, 1};
  channels_.clear();
  for (int rank = 0; rank + 1 < grid_.ranks; ++rank) {
    channels_.push_back({rank, rank + 1});
    channels_.push_back({rank + 1, rank});
  }
  std::atomic<std::size_t> most{0};
  on_exchange_ = [&](int, int number, const std::vector<Payload>& all) {
    if (number == 1) most = std::max(most.load(), all.front().size());
  };
  for (const std::string& error : try_to_connect()) EXPECT_EQ(error, "");
  EXPECT_EQ(most.load(), sizeof(CudaGreeting) + 2 * sizeof(ncclUniqueId));
}

TEST_F(CudaNccl, ALaneThatDoesNotComeIsNoHangOnceTheRunIsGivenUp) {
  connect({1, 1, 2});
  Result<std::unique_ptr<CudaCompute>> compute = CudaCompute::create(partition(0).compute(), false);
  ASSERT_TRUE(compute.ok());
  const Result<CudaMemory> memory = CudaMemory::create(3 * 64 * sizeof(float), "a test");
  ASSERT_TRUE(memory.ok());
  auto* const numbers = reinterpret_cast<float*>(memory->data());
  const std::unique_ptr<CudaLaneGather> gather = connections_[0]->lane_gather(connections_[0]);
  EXPECT_TRUE(gather->waits_in_stream());
  ASSERT_TRUE(gather->gather(**compute, CudaMatrix::dense(numbers, 8, 8), numbers + 64).ok());
  EXPECT_EQ(cudaStreamQuery(partition(0).compute()), cudaErrorNotReady);
  connections_[0]->abort();
  EXPECT_EQ(cudaStreamSynchronize(partition(0).compute()), cudaSuccess);
  const Result<void> later =
      gather->gather(**compute, CudaMatrix::dense(numbers, 8, 8), numbers + 64);
  EXPECT_FALSE(later.ok());
  connections_[1]->abort();
}

// All its tasks enqueue one and the same work.
class SummingDevice final : public CudaQueueDevice {
 public:
  SummingDevice(std::shared_ptr<CudaDevicePartitions> partitions, const CudaSettings& settings,
                std::function<Result<void>()> work)
      : CudaQueueDevice(partitions, partitions->partition(0), {}, settings),
        work_(std::move(work)) {}

  Result<void> begin(const PreparedCase&, int) override { return {}; }
  Result<void> take_input(TaskId, int, Payload) override { return {}; }
  Result<Payload> output(TaskId, EdgeId) override { return Payload(); }
  Result<Payload> gradient(int) override { return Payload(); }
  Result<Payload> reduce(int, std::span<Payload>) override { return Payload(); }
  Result<void> take_gradient(int, Payload) override { return {}; }
  Result<void> finish_iteration() override {
    if (failure()) return *failure();
    return {};
  }

 private:
  std::string name_of(TaskId) const override { return "0F0"; }
  bool waits_for_lanes() const override { return true; }
  std::size_t block_bytes(EdgeId, int) const override { return 0; }
  Result<void> enqueue(TaskId) override { return work_(); }
  Result<void> finish(TaskId) override { return {}; }

  const std::function<Result<void>()> work_;
};

TEST_F(CudaNccl, ATaskWhoseLanesDoNotComeEndsInItsName) {
  patience_ns_ = 200 * kMillisecond;
  connect({1, 1, 2});
  Result<std::unique_ptr<CudaCompute>> compute = CudaCompute::create(partition(0).compute(), false);
  ASSERT_TRUE(compute.ok());
  const Result<CudaMemory> memory = CudaMemory::create(3 * 64 * sizeof(float), "a test");
  ASSERT_TRUE(memory.ok());
  const std::unique_ptr<CudaLaneGather> gather = connections_[0]->lane_gather(connections_[0]);
  {
    auto* const numbers = reinterpret_cast<float*>(memory->data());
    SummingDevice device(partitions_[0], settings(0), [&] {
      return gather->gather(**compute, CudaMatrix::dense(numbers, 8, 8), numbers + 64);
    });
    device.set_on_stop([this] { connections_[0]->abort(); });
    device.launch(0, 0, 0);
    device.on_group_start(0, 0);
    Result<void> finished;
    const std::int64_t begin_ns = MonotonicClock::read_ns();
    while (finished.ok() && MonotonicClock::read_ns() < begin_ns + kPatienceNs) {
      static_cast<void>(device.poll(MonotonicClock::read_ns()));
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      finished = device.finish_iteration();
    }
    ASSERT_FALSE(finished.ok());
    EXPECT_EQ(finished.error().message,
              "0F0 has been running for 200 ms: another lane of its group has not come to "
              "one of its sums; a larger --patience-ms waits longer");
    device.stop();
    // What the work in the stream uses outlives it.
    EXPECT_EQ(cudaStreamSynchronize(partition(0).compute()), cudaSuccess);
  }
  connections_[1]->abort();
}

// A task's blocks stay on their SMs, where no transfer finds room beside them.
TEST_F(CudaNccl, TasksLeaveSmsToTheTransfersOfAllChannels) {
  connect({1, 3, 1});
  EXPECT_EQ(connections_[0]->sms(), 2 * CudaNcclChannel::kMostBlocks);
  EXPECT_EQ(connections_[1]->sms(), 4 * CudaNcclChannel::kMostBlocks);
  EXPECT_EQ(chain_blocks(132, 16), 116) << "one for each SM that is used";
  EXPECT_EQ(chain_blocks(132, 100), 66) << "half of the device is left to tasks";
  EXPECT_EQ(chain_blocks(1, 4), 1);
  EXPECT_EQ(chain_blocks(132, 0), 264) << "nobody else is there";
}

// Two at a time are in the stream; each takes more than half of the patience.
TEST_F(CudaNccl, APatienceWithATaskBeginsWhenItRuns) {
  patience_ns_ = 400 * kMillisecond;
  connect({1, 1, 2});
  SummingDevice device(partitions_[0], settings(0), [&]() -> Result<void> {
    return check_cuda("a chain", launch_matrix_chain(1, 250'000, {}, partition(0).compute()));
  });
  for (const TaskId task : {0, 1}) {
    device.launch(task, 0, MonotonicClock::read_ns());
    device.on_group_start(task, 0);
  }
  const std::int64_t give_up_ns = MonotonicClock::read_ns() + kPatienceNs;
  while (device.busy() && MonotonicClock::read_ns() < give_up_ns) {
    static_cast<void>(device.poll(MonotonicClock::read_ns()));
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  const Result<void> finished = device.finish_iteration();
  EXPECT_TRUE(finished.ok()) << finished.error().message;
}

// A whole run, each rank and lane on a GPU of its own.
TEST_F(CudaNccl, PassesAWholeRunWhichGivesBackEveryBlock) {
  Case input = chain_case(3, 8, true, 500 * kMicrosecond);
  input.tensor_parallel.lanes = 2;
  input.network.message_bytes.assign(static_cast<std::size_t>(input.program.task_ids()), 100'003);
  TestRun run;
  run.prepare(input, 2);
  connect(run.plan->grid);
  run.outcome = run_on_threads(
      run.plan,
      [&](const Place& place) {
        const int endpoint = grid_.endpoint(place);
        return std::make_unique<CudaSyntheticDevice>(
            partitions_[static_cast<std::size_t>(endpoint)], partition(endpoint), place,
            settings(endpoint));
      },
      run.sink, default_tuning(grid_.size()), run.stop,
      [&](const Place& place, Transport& control) {
        return std::make_unique<CudaNcclTransport>(
            connections_[static_cast<std::size_t>(grid_.endpoint(place))], control);
      });
  EXPECT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  ASSERT_EQ(run.sink->iterations.size(), 2U);
  for (const WorkerRecord& worker : run.sink->iterations[1].workers) {
    EXPECT_EQ(worker.tasks.size(), 24U);
    for (const ArrivalRecord& arrival : worker.arrivals) EXPECT_EQ(arrival.bytes, 100'003);
  }
  expect_decisions_replay(*run.plan, run.sink->iterations);
}

}  // namespace
}  // namespace rrfp
