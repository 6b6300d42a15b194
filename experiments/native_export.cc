#include "experiments/native_export.h"

#include <algorithm>
#include <utility>

#include "sim/simulate.h"
#include "traces/native_trace_writer.h"
#include "traces/prepared_case.h"

namespace rrfp {

namespace {

constexpr std::int64_t kNever = -1;

class IterationExport {
 public:
  IterationExport(const ScenarioResolver& resolver, int iteration)
      : scenario_(resolver.scenario()),
        program_(resolver.program()),
        iteration_(iteration),
        accumulated_ns_(static_cast<std::size_t>(program_.stages()), kNever) {}

  /// `world` is what was simulated.
  void add(int replica, const SimulationResult& result, const PreparedCase& world) {
    std::vector<std::int64_t>& last_ns = rank_end_ns_.emplace_back();
    for (std::size_t r = 0; r < result.ranks.size(); ++r) {
      const RankResult& rank = result.ranks[r];
      last_ns.push_back(0);
      for (std::size_t i = 0; i < rank.order.size(); ++i) {
        TraceTask task;
        task.iteration = iteration_;
        task.replica = replica;
        task.rank = static_cast<int>(r);
        task.task = rank.order[i];
        task.decided_ns = rank.decided_ns[i];
        task.ready_ns = task.start_ns = rank.start_ns[i];
        task.end_ns = rank.end_ns[i];
        last_ns.back() = std::max(last_ns.back(), task.end_ns);
        accumulate(task.task, task.end_ns);
        records_.push_back(task);
      }
    }
    for (const MessageRecord& message : result.messages) add_message(replica, message, world);
  }

  std::vector<TraceRecord> take() {
    add_spans();
    return std::move(records_);
  }

 private:
  void accumulate(const Task& task, std::int64_t end_ns) {
    const bool adds = task.kind == Kind::kWeightGradient || task.kind == Kind::kBackward;
    if (!adds || program_.backward_of(task.stage) != Backward::kFull) return;
    std::int64_t& last_ns = accumulated_ns_[static_cast<std::size_t>(task.stage)];
    last_ns = std::max(last_ns, end_ns);
  }

  void add_message(int replica, const MessageRecord& message, const PreparedCase& world) {
    const Edge& edge = program_.edge(message.edge);
    TraceMessage out;
    out.iteration = iteration_;
    out.replica = replica;
    out.kind = edge.kind;
    out.from_stage = edge.from;
    out.to_stage = edge.to;
    out.microbatch = message.microbatch;
    out.sequence = message.microbatch;
    out.bytes = world.message_bytes()[static_cast<std::size_t>(
        message.edge * program_.microbatches() + message.microbatch)];
    out.send = {message.sent_ns, message.sent_ns, message.arrival_ns};
    out.receive = out.send;
    records_.push_back(out);
  }

  void add_span(int replica, int rank, const std::string& name, const std::string& group,
                std::int64_t start_ns, std::int64_t end_ns) {
    TraceSpan span;
    span.iteration = iteration_;
    span.replica = replica;
    span.rank = rank;
    span.name = name;
    span.group = group;
    span.start_ns = start_ns;
    span.end_ns = std::max(start_ns, end_ns);
    records_.push_back(span);
    std::int64_t& last_ns =
        rank_end_ns_[static_cast<std::size_t>(replica)][static_cast<std::size_t>(rank)];
    last_ns = std::max(last_ns, span.end_ns);
  }

  void add_spans() {
    const auto replicas = static_cast<int>(rank_end_ns_.size());
    for (int stage = 0; stage < program_.stages(); ++stage) {
      const std::int64_t start_ns = accumulated_ns_[static_cast<std::size_t>(stage)];
      const std::int64_t sync_ns = sync_of(stage);
      if (start_ns == kNever || sync_ns == 0) continue;
      const int rank = program_.rank_of(stage);
      for (int replica = 0; replica < replicas; ++replica) {
        const std::int64_t free_ns =
            rank_end_ns_[static_cast<std::size_t>(replica)][static_cast<std::size_t>(rank)];
        add_span(replica, rank, "gradient-sync", "stage " + std::to_string(stage), free_ns,
                 start_ns + sync_ns);
      }
    }
    const std::int64_t optimizer_ns = scenario_.data_parallel.optimizer_ns;
    if (optimizer_ns == 0) return;
    std::int64_t all_ns = 0;
    for (const std::vector<std::int64_t>& of_replica : rank_end_ns_) {
      for (const std::int64_t end_ns : of_replica) all_ns = std::max(all_ns, end_ns);
    }
    for (int replica = 0; replica < replicas; ++replica) {
      for (int rank = 0; rank < program_.ranks(); ++rank) {
        const std::int64_t free_ns =
            rank_end_ns_[static_cast<std::size_t>(replica)][static_cast<std::size_t>(rank)];
        add_span(replica, rank, "optimizer", "world", free_ns, all_ns + optimizer_ns);
      }
    }
  }

  std::int64_t sync_of(int stage) const {
    const std::vector<std::int64_t>& values = scenario_.data_parallel.gradient_sync_ns.values;
    if (values.empty()) return 0;
    return values.size() == 1 ? values[0] : values[static_cast<std::size_t>(stage)];
  }

  const Scenario& scenario_;
  const Program& program_;
  int iteration_;
  std::vector<std::int64_t> accumulated_ns_;            ///< by stage, over all replicas
  std::vector<std::vector<std::int64_t>> rank_end_ns_;  ///< [replica][rank]
  std::vector<TraceRecord> records_;
};

}  // namespace

Result<std::vector<TraceRecord>> native_records(const ScenarioResolver& resolver, int policy,
                                                int iteration) {
  IterationExport made(resolver, iteration);
  SimulateOptions detail;
  detail.idle_causes = false;
  detail.messages = true;
  for (int replica = 0; replica < resolver.scenario().data_parallel.replicas; ++replica) {
    const Result<Case> given = resolver.resolve(policy, iteration, replica);
    if (!given.ok()) return given.error();
    const Result<std::unique_ptr<const PreparedCase>> world = PreparedCase::create(*given);
    if (!world.ok()) return world.error();
    const Result<SimulationResult> result = simulate(**world, detail);
    if (!result.ok()) return result.error();
    if (!result->completed) {
      return Error{"policy \"" +
                   resolver.scenario().policies[static_cast<std::size_t>(policy)].name +
                   "\" blocks in iteration " + std::to_string(iteration) + ", replica " +
                   std::to_string(replica) + "; `rrfp simulate` says why"};
    }
    made.add(replica, *result, **world);
  }
  return made.take();
}

namespace {

TraceHeader header_of(const ScenarioResolver& resolver, int policy) {
  const Scenario& scenario = resolver.scenario();
  const std::string& policy_name = scenario.policies[static_cast<std::size_t>(policy)].name;
  TraceHeader header(resolver.program());
  header.name = scenario.name.empty() ? policy_name : scenario.name + ", " + policy_name;
  header.replicas = scenario.data_parallel.replicas;
  header.versions = {{"from", "rrfp export, a simulation"}};
  return header;
}

}  // namespace

Result<void> export_native_trace(const ScenarioResolver& resolver, int policy,
                                 const std::string& path, const std::function<void()>& done) {
  const TraceHeader header = header_of(resolver, policy);
  Result<NativeTraceWriter> writer = NativeTraceWriter::create(path, header);
  if (!writer.ok()) return writer.error();
  for (int iteration = 0; iteration < resolver.scenario().iterations; ++iteration) {
    const Result<std::vector<TraceRecord>> records = native_records(resolver, policy, iteration);
    if (!records.ok()) return records.error();
    for (const TraceRecord& record : *records) writer->add(record);
    if (done) done();
  }
  return writer->finish();
}

Result<void> export_kineto(const ScenarioResolver& resolver, int policy, const std::string& folder,
                           const KinetoWriterOptions& options, const std::function<void()>& done) {
  Result<KinetoWriter> writer = KinetoWriter::create(folder, header_of(resolver, policy), options);
  if (!writer.ok()) return writer.error();
  for (int iteration = 0; iteration < resolver.scenario().iterations; ++iteration) {
    const Result<std::vector<TraceRecord>> records = native_records(resolver, policy, iteration);
    if (!records.ok()) return records.error();
    TraceStep step;
    step.iteration = iteration;
    for (const TraceRecord& record : *records) step.add(record);
    for (TraceMessage& message : step.messages) {
      std::int64_t& post_ns = message.receive.post_ns;
      post_ns = std::max<std::int64_t>(0, 2 * post_ns - message.receive.done_ns);
    }
    writer->add(step);
    if (done) done();
  }
  return writer->finish();
}

}  // namespace rrfp
