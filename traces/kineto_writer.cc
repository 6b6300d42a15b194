#include "traces/kineto_writer.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "scheduler_core/random.h"
#include "traces/streamed_file.h"
#include "traces/torch_csv.h"

namespace rrfp {

namespace {

/// 2025-01-01, so that times have the size that they have in the field.
constexpr std::int64_t kEpochNs = 1'735'689'600'000'000'000;
/// Of the CPU, for one annotation; its launches lie within.
constexpr std::int64_t kCpuActionNs = 2000;
constexpr std::int64_t kBetweenStepsNs = 10'000;
constexpr int kComputeStream = 7;
constexpr int kCollectiveStream = 30;
constexpr int kFirstProcess = 1000;

struct Kernel {
  const char* name = "";
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  int stream = kComputeStream;
  std::string group;  ///< of a collective: more arguments
};

/// Something that a rank launches: its annotation and its kernels.
struct Action {
  std::int64_t start_ns = 0;  ///< on the GPU
  std::string name;
  std::string inner_name;  ///< of an annotation inside; may be empty
  bool other_thread = false;
  bool is_task = false;
  std::vector<Kernel> kernels;
};

void append_number(std::string* out, std::int64_t value) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  out->append(digits, end);
}

/// Microseconds with three decimals. REQUIRES: ns >= 0.
void append_time(std::string* out, std::int64_t ns) {
  append_number(out, ns / 1000);
  const auto rest = static_cast<int>(ns % 1000);
  *out += '.';
  *out += static_cast<char>('0' + rest / 100);
  *out += static_cast<char>('0' + rest / 10 % 10);
  *out += static_cast<char>('0' + rest % 10);
}

/// Spans of one name and group.
struct Collective {
  int number = 0;
  std::int64_t last_start_ns = 0;
  std::string ranks;  ///< of the job: "0, 4"
};

/// One rank's file.
class RankFile {
 public:
  RankFile(StreamedFile file, int rank, int world, std::int64_t base_ns, std::int64_t offset_ns)
      : file_(std::move(file)), process_(kFirstProcess + rank), to_file_ns_(offset_ns - base_ns) {
    line_ =
        "{\n  \"schemaVersion\": 1,\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " +
        std::to_string(rank) + ", \"world_size\": " + std::to_string(world) +
        "},\n  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": " +
        std::to_string(base_ns) +
        ",\n  \"traceEvents\": [\n  {\"ph\": \"M\", \"name\": "
        "\"process_name\", \"pid\": " +
        std::to_string(process_) + ", \"tid\": 0, \"args\": {\"name\": \"python\"}}";
    flush();
  }

  void annotate(std::string_view category, std::string_view name, int thread, std::int64_t start_ns,
                std::int64_t end_ns) {
    begin(category, name, process_, process_ + thread, start_ns, end_ns);
    line_ += ", \"args\": {\"External id\": ";
    append_number(&line_, ++correlation_);
    line_ += "}}";
    flush();
  }

  /// A launch and its kernel.
  void launch(const Kernel& kernel, int thread, std::int64_t time_ns) {
    ++correlation_;
    begin("cuda_runtime", "cudaLaunchKernel", process_, process_ + thread, time_ns, time_ns + 100);
    line_ += ", \"args\": {\"cbid\": 211, \"correlation\": ";
    append_number(&line_, correlation_);
    line_ += "}}";
    begin("kernel", kernel.name, 0, kernel.stream, kernel.start_ns, kernel.end_ns);
    line_ += ", \"args\": {\"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": ";
    append_number(&line_, kernel.stream);
    line_ += ", \"correlation\": ";
    append_number(&line_, correlation_);
    line_ += kernel.group;
    line_ += ", \"grid\": [512, 1, 1], \"block\": [256, 1, 1]}}";
    flush();
  }

  /// REQUIRES: nothing was recorded outside these times.
  Result<void> finish(std::int64_t first_ns, std::int64_t last_ns) {
    begin("Trace", "PyTorch Profiler (0)", process_, process_, first_ns, last_ns);
    line_ += ", \"args\": {\"Op count\": 0}}\n  ],\n  \"traceName\": \"rrfp export\"\n}\n";
    flush();
    return file_.finish();
  }

 private:
  void begin(std::string_view category, std::string_view name, int process, int thread,
             std::int64_t start_ns, std::int64_t end_ns) {
    line_ += ",\n  {\"ph\": \"X\", \"cat\": \"";
    line_ += category;
    line_ += "\", \"name\": \"";
    line_ += name;
    line_ += "\", \"pid\": ";
    append_number(&line_, process);
    line_ += ", \"tid\": ";
    append_number(&line_, thread);
    line_ += ", \"ts\": ";
    append_time(&line_, start_ns + to_file_ns_);
    line_ += ", \"dur\": ";
    append_time(&line_, end_ns - start_ns);
  }
  void flush() {
    file_.append(line_);
    line_.clear();
  }

  StreamedFile file_;
  int process_;
  std::int64_t to_file_ns_;
  std::int64_t correlation_ = 0;
  std::string line_;
};

Result<void> check(const TraceHeader& header, const KinetoWriterOptions& options) {
  const Program& program = header.program;
  for (int stage = 0; stage < program.stages(); ++stage) {
    const auto before = program.predecessors(stage);
    const bool chained = stage == 0 ? before.empty() : before.size() == 1 && before[0] == stage - 1;
    if (!chained) {
      return Error{"stage " + std::to_string(stage) +
                   " does not follow the one before it: the names of a profile know chains only"};
    }
  }
  if (header.lanes > 1) return Error{"lanes are not exported to profiles"};
  if (options.names == KinetoNames::kMegatron &&
      (!program.one_stage_per_rank() || program.split_backward())) {
    return Error{
        "Megatron's names tell neither several stages of a rank nor I from W apart: use "
        "those of torch"};
  }
  return {};
}

}  // namespace

struct KinetoWriter::State {
  TraceHeader header;
  KinetoWriterOptions options;
  std::vector<RankFile> files;           ///< by rank of the job
  std::vector<std::int64_t> offsets_ns;  ///< of clocks, likewise
  std::int64_t first_ns = kEpochNs;
  std::int64_t next_ns = kEpochNs;  ///< where the CPU is, on all ranks

  int job_rank(int rank, int replica) const { return rank * header.replicas + replica; }

  Action action_of(const TraceTask& task) const;
  void add_span(const TraceSpan& span, const Collective& collective,
                std::vector<Action>* actions) const;
  Action end_of(const TraceMessage& message, bool sends) const;
  void write(RankFile* file, const std::vector<Action>& actions, std::int64_t cpu_ns,
             std::int64_t origin_ns) const;
};

Action KinetoWriter::State::action_of(const TraceTask& task) const {
  Action action;
  action.start_ns = task.start_ns;
  action.is_task = true;
  action.other_thread = task.task.kind != Kind::kForward;
  const bool torch = options.names == KinetoNames::kTorch;
  action.name = torch ? "PP:" + to_string(task.task)
                      : (action.other_thread ? "backward_step" : "forward_step");
  const std::int64_t length_ns = task.end_ns - task.start_ns;
  const auto border_ns = [&](int i) { return task.start_ns + length_ns * i / options.kernels; };
  for (int i = 0; i < options.kernels; ++i) {
    const char* name = i % 2 == 0 ? "ampere_bf16_s16816gemm" : "vectorized_elementwise_kernel";
    action.kernels.push_back({name, border_ns(i), border_ns(i + 1), kComputeStream, {}});
  }
  return action;
}

/// What an optimizer of the whole group waits for is a collective before it.
void KinetoWriter::State::add_span(const TraceSpan& span, const Collective& collective,
                                   std::vector<Action>* actions) const {
  const bool optimizer = span.name == "optimizer";
  const bool waits = !span.group.empty();
  std::int64_t begin_ns = span.start_ns;
  if (waits || !optimizer) {
    Action action;
    action.start_ns = span.start_ns;
    action.name = optimizer ? "nccl:all_reduce" : "nccl:_reduce_scatter_base";
    const std::int64_t end_ns = optimizer ? collective.last_start_ns : span.end_ns;
    Kernel kernel{"ncclDevKernel_ReduceScatter", span.start_ns, end_ns, kCollectiveStream, {}};
    if (optimizer) kernel.name = "ncclDevKernel_AllReduce";
    if (waits) {
      kernel.group = ", \"Process Group Name\": \"" + std::to_string(collective.number) +
                     "\", \"Process Group Ranks\": \"[" + collective.ranks + "]\"";
    }
    action.kernels.push_back(std::move(kernel));
    actions->push_back(std::move(action));
    begin_ns = end_ns;
  }
  if (!optimizer) return;
  Action action;
  action.start_ns = begin_ns;
  action.name = "Optimizer.step#AdamW.step";
  action.kernels.push_back(
      {"multi_tensor_apply_kernel", begin_ns, span.end_ns, kComputeStream, {}});
  actions->push_back(std::move(action));
}

Action KinetoWriter::State::end_of(const TraceMessage& message, bool sends) const {
  const MessageTimes& times = sends ? message.send : message.receive;
  const int own_stage = sends ? message.from_stage : message.to_stage;
  const int own = header.program.rank_of(own_stage);
  const int peer = header.program.rank_of(sends ? message.to_stage : message.from_stage);
  Action action;
  action.start_ns = times.post_ns;
  const std::string nccl = sends ? "nccl:send " + std::to_string(own) + "->" + std::to_string(peer)
                                 : "nccl:recv " + std::to_string(own) + "<-" + std::to_string(peer);
  if (options.names == KinetoNames::kTorch) {
    TorchAction cell;
    cell.stage = own_stage;
    cell.op = message_op(sends, message.kind);
    cell.microbatch = message.microbatch;
    action.name = "PP:" + to_string(cell);
    action.inner_name = nccl;
  } else {
    action.name = nccl;
  }
  const int stream = (sends ? 20 : 21) + (message.kind == Kind::kForward ? 0 : 2);
  action.kernels.push_back({"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                            times.post_ns,
                            times.done_ns,
                            stream,
                            {}});
  return action;
}

/// The CPU begins at `cpu_ns`; times of the actions count from `origin_ns`.
void KinetoWriter::State::write(RankFile* file, const std::vector<Action>& actions,
                                std::int64_t cpu_ns, std::int64_t origin_ns) const {
  for (const Action& action : actions) {
    const std::int64_t end_ns = cpu_ns + kCpuActionNs - 100;
    file->annotate("user_annotation", action.name, 0, cpu_ns, end_ns);
    if (!action.inner_name.empty()) {
      file->annotate("user_annotation", action.inner_name, 0, cpu_ns + 100, end_ns - 100);
    }
    const int thread = action.other_thread ? 1 : 0;
    for (int i = 0; action.is_task && i < options.cpu_operators; ++i) {
      const std::int64_t at_ns = cpu_ns + 100 + std::int64_t{1500} * i / options.cpu_operators;
      file->annotate("cpu_op", "aten::addmm", thread, at_ns, at_ns + 1);
    }
    const auto kernels = static_cast<std::int64_t>(action.kernels.size());
    for (std::int64_t i = 0; i < kernels; ++i) {
      Kernel kernel = action.kernels[static_cast<std::size_t>(i)];
      kernel.start_ns += origin_ns;
      kernel.end_ns += origin_ns;
      file->launch(kernel, thread, cpu_ns + 200 + 1000 * i / kernels);
    }
    cpu_ns += kCpuActionNs;
  }
}

namespace {

// "rank07.json.gz"; as wide as the number of the last.
std::string rank_file_name(int rank, int world, bool gzip) {
  const std::string digits = std::to_string(rank);
  const std::size_t width = std::to_string(world - 1).size();
  return "rank" + std::string(width - digits.size(), '0') + digits + (gzip ? ".json.gz" : ".json");
}

bool is_rank_file_name(std::string name) {
  for (const std::string_view ending : {".gz", ".json"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name.starts_with("rank") && name.size() > 4 &&
         name.find_first_not_of("0123456789", 4) == name.npos;
}

// Whoever reads a folder takes all its files for ranks of one job, so that none of a larger one may
// stand beside `names`.
Result<void> check_no_other_ranks(const std::string& folder, const std::set<std::string>& names) {
  std::set<std::string> others;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (is_rank_file_name(name) && names.count(name) == 0) others.insert(name);
  }
  if (failed) return Error{folder + ": cannot be listed: " + failed.message()};
  if (others.empty()) return {};
  return Error{folder + ": holds " + *others.begin() +
               (others.size() == 1 ? "" : " and others (" + std::to_string(others.size()) + ")") +
               " of another export, which would be read with this one; remove it or name another "
               "folder"};
}

}  // namespace

Result<KinetoWriter> KinetoWriter::create(const std::string& folder, const TraceHeader& header,
                                          const KinetoWriterOptions& options) {
  if (const Result<void> fits = check(header, options); !fits.ok()) return fits.error();
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error{folder + ": cannot be made: " + failed.message()};
  auto state = std::make_unique<State>(State{header, options, {}, {}, kEpochNs, kEpochNs});
  const int world = header.program.ranks() * header.replicas;
  std::set<std::string> names;
  for (int rank = 0; rank < world; ++rank) names.insert(rank_file_name(rank, world, options.gzip));
  if (Result<void> alone = check_no_other_ranks(folder, names); !alone.ok()) return alone.error();
  for (int rank = 0; rank < world; ++rank) {
    Result<StreamedFile> file =
        StreamedFile::create(folder + "/" + rank_file_name(rank, world, options.gzip));
    if (!file.ok()) return file.error();
    std::int64_t offset_ns = 0;
    if (rank > 0 && options.clock_skew_ns > 0) {
      RandomStream draws({.index = static_cast<std::uint64_t>(rank)});
      const auto range = static_cast<std::uint64_t>(2 * options.clock_skew_ns + 1);
      offset_ns = static_cast<std::int64_t>(draws.below(range)) - options.clock_skew_ns;
    }
    state->offsets_ns.push_back(offset_ns);
    // Bases lie before the job, as they do in the field.
    constexpr std::int64_t kBaseNs = kEpochNs - 86'400'000'000'000;
    state->files.emplace_back(*std::move(file), rank, world, kBaseNs - rank * options.base_shift_ns,
                              offset_ns);
  }
  return KinetoWriter(std::move(state));
}

void KinetoWriter::add(const TraceStep& step) {
  State& state = *state_;
  std::vector<std::vector<Action>> actions(state.files.size());
  const auto of = [&](int rank, int replica) -> std::vector<Action>& {
    return actions[static_cast<std::size_t>(state.job_rank(rank, replica))];
  };
  std::int64_t last_ns = 0;
  for (const TraceTask& task : step.tasks) {
    of(task.rank, task.replica).push_back(state.action_of(task));
    last_ns = std::max(last_ns, task.end_ns);
  }
  for (const TraceMessage& message : step.messages) {
    const Program& program = state.header.program;
    of(program.rank_of(message.from_stage), message.replica).push_back(state.end_of(message, true));
    of(program.rank_of(message.to_stage), message.replica).push_back(state.end_of(message, false));
    last_ns = std::max({last_ns, message.send.done_ns, message.receive.done_ns});
  }
  std::map<std::pair<std::string, std::string>, Collective> collectives;
  for (const TraceSpan& span : step.spans) {
    const auto number = static_cast<int>(collectives.size());
    const auto [at, added] = collectives.try_emplace({span.name, span.group});
    Collective& collective = at->second;
    if (added) collective.number = number;
    collective.last_start_ns = std::max(collective.last_start_ns, span.start_ns);
    collective.ranks +=
        (added ? "" : ", ") + std::to_string(state.job_rank(span.rank, span.replica));
  }
  for (const TraceSpan& span : step.spans) {
    state.add_span(span, collectives[{span.name, span.group}], &of(span.rank, span.replica));
    last_ns = std::max(last_ns, span.end_ns);
  }
  std::size_t most = 0;
  for (std::vector<Action>& of_rank : actions) {
    std::stable_sort(of_rank.begin(), of_rank.end(),
                     [](const Action& a, const Action& b) { return a.start_ns < b.start_ns; });
    most = std::max(most, of_rank.size());
  }
  const std::int64_t cpu_ns = state.next_ns;
  const std::int64_t origin_ns = cpu_ns + static_cast<std::int64_t>(most + 1) * kCpuActionNs;
  const std::int64_t end_ns = origin_ns + last_ns;
  const std::string name = "ProfilerStep#" + std::to_string(step.iteration);
  for (std::size_t rank = 0; rank < actions.size(); ++rank) {
    state.files[rank].annotate("user_annotation", name, 0, cpu_ns, end_ns);
    state.write(&state.files[rank], actions[rank], cpu_ns + kCpuActionNs / 2, origin_ns);
  }
  state.next_ns = end_ns + kBetweenStepsNs;
}

Result<void> KinetoWriter::finish() {
  for (RankFile& file : state_->files) {
    const Result<void> written = file.finish(state_->first_ns, state_->next_ns);
    if (!written.ok()) return written;
  }
  return {};
}

std::int64_t KinetoWriter::clock_offset_ns(int job_rank) const {
  return state_->offsets_ns[static_cast<std::size_t>(job_rank)];
}

KinetoWriter::KinetoWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
KinetoWriter::KinetoWriter(KinetoWriter&&) noexcept = default;
KinetoWriter& KinetoWriter::operator=(KinetoWriter&&) noexcept = default;
KinetoWriter::~KinetoWriter() = default;

}  // namespace rrfp
