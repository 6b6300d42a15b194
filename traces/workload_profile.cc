#include "traces/workload_profile.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <queue>
#include <string_view>

#include "scheduler_core/nearest.h"
#include "traces/line_source.h"

namespace rrfp {

namespace {

constexpr std::size_t kMostNodes = 20'000;
constexpr double kMostValue = 1e15;
constexpr double kBytesPerParameter = 4;
constexpr std::string_view kDash = " -- ";

struct Node {
  std::string id;
  std::string name;
  double forward_ms = 0;
  double backward_ms = 0;
  double output_bytes = 0;
  double parameter_bytes = 0;
  std::vector<std::size_t> next;
  std::size_t before = 0;  ///< nodes that it needs and that are not placed
};

struct Graph {
  std::vector<Node> nodes;
  std::map<std::string, std::size_t, std::less<>> by_id;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// A number of at least 0.
std::optional<double> parse_number(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= 0 && value <= kMostValue)) return std::nullopt;
  return value;
}

// A number, or the sum of "[a; b; c]".
std::optional<double> parse_sum(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with('[') || !text.ends_with(']')) return parse_number(text);
  text = text.substr(1, text.size() - 2);
  double sum = 0;
  while (true) {
    const std::size_t end = text.find(';');
    const std::optional<double> part = parse_number(text.substr(0, end));
    if (!part) return std::nullopt;
    sum += *part;
    if (end == std::string_view::npos) return sum;
    text.remove_prefix(end + 1);
  }
}

// The value after "key=" in a comma-separated list.
Result<double> find_value(const LineSource& lines, std::string_view costs, std::string_view key) {
  const std::string wanted = std::string(key) + "=";
  std::string_view rest = costs;
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    const std::string_view item = trimmed(rest.substr(0, end));
    if (item.starts_with(wanted)) {
      const std::string_view text = item.substr(wanted.size());
      if (const std::optional<double> value = parse_sum(text)) return *value;
      return lines.error(std::string(key) + ": found " + in_quotes(text) +
                         "; expected a number from 0 to 1e15, or a sum such as [1.0; 2.0]");
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return lines.error("a node without " + std::string(key));
}

Result<void> read_node(const LineSource& lines, std::string_view id, std::string_view rest,
                       Graph& graph) {
  const std::size_t dash = rest.rfind(kDash);
  if (dash == std::string_view::npos) {
    return lines.error("expected \"node -- layer -- forward_compute_time=...\"; found no costs");
  }
  Node node;
  node.id = std::string(id);
  node.name = std::string(trimmed(rest.substr(0, dash)));
  const std::string_view costs = rest.substr(dash + kDash.size());
  struct Field {
    std::string_view key;
    double* value;
  };
  for (const Field& field : {Field{"forward_compute_time", &node.forward_ms},
                             Field{"backward_compute_time", &node.backward_ms},
                             Field{"activation_size", &node.output_bytes},
                             Field{"parameter_size", &node.parameter_bytes}}) {
    const Result<double> value = find_value(lines, costs, field.key);
    if (!value.ok()) return value.error();
    *field.value = *value;
  }
  if (!graph.by_id.emplace(node.id, graph.nodes.size()).second) {
    return lines.error("node " + in_quotes(id) + " stands here a second time");
  }
  if (graph.nodes.size() == kMostNodes) {
    return lines.error("more than " + std::to_string(kMostNodes) + " nodes");
  }
  graph.nodes.push_back(std::move(node));
  return {};
}

Result<void> read_edge(const LineSource& lines, std::string_view from, std::string_view to,
                       Graph& graph) {
  const auto source = graph.by_id.find(from);
  const auto target = graph.by_id.find(to);
  if (source == graph.by_id.end() || target == graph.by_id.end()) {
    return lines.error("an edge of " + in_quotes(source == graph.by_id.end() ? from : to) +
                       ", which is no node above");
  }
  graph.nodes[source->second].next.push_back(target->second);
  ++graph.nodes[target->second].before;
  return {};
}

Result<Graph> read_graph(const std::string& path) {
  Result<LineSource> lines = LineSource::open(path);
  if (!lines.ok()) return lines.error();
  Graph graph;
  std::string_view line;
  while (true) {
    const Result<bool> more = lines->next(&line);
    if (!more.ok()) return more.error();
    if (!*more) break;
    if (trimmed(line).empty()) continue;
    const std::size_t dash = line.find(kDash);
    if (dash == std::string_view::npos) {
      return lines->error("found " + in_quotes(line) +
                          "; expected a node (\"id -- layer -- costs\") or an edge "
                          "(tab, \"id -- id\")");
    }
    const std::string_view id = trimmed(line.substr(0, dash));
    const std::string_view rest = line.substr(dash + kDash.size());
    Result<void> read = line.front() == '\t' ? read_edge(*lines, id, trimmed(rest), graph)
                                             : read_node(*lines, id, rest, graph);
    if (!read.ok()) return read.error();
  }
  if (graph.nodes.empty()) return Error{path + ": found no nodes; expected the graph of a profile"};
  return graph;
}

// "node9" before "node10".
bool numbered_before(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

Result<std::vector<std::size_t>> topological_order(const std::string& path, Graph& graph) {
  const auto later = [&graph](std::size_t a, std::size_t b) {
    return numbered_before(graph.nodes[b].id, graph.nodes[a].id);
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> ready(later);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].before == 0) ready.push(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const std::size_t next : graph.nodes[node].next) {
      if (--graph.nodes[next].before == 0) ready.push(next);
    }
  }
  for (const Node& node : graph.nodes) {
    if (node.before > 0) {
      return Error{path + ": node " + in_quotes(node.id) + " is in a cycle, or after one"};
    }
  }
  return order;
}

LayerCost to_layer(const Node& node, double weight_share) {
  LayerCost layer;
  layer.name = node.name;
  layer.parameters = node.parameter_bytes / kBytesPerParameter;
  layer.trained = true;
  const double weight = node.parameter_bytes > 0 ? weight_share : 0;
  layer.time_ns.forward.linear = 1e6 * node.forward_ms;
  layer.time_ns.input_gradient.linear = 1e6 * node.backward_ms * (1 - weight);
  layer.time_ns.weight_gradient.linear = 1e6 * node.backward_ms * weight;
  if (node.forward_ms + node.backward_ms > 0) layer.activation_bytes = node.output_bytes;
  layer.stash_bytes = layer.activation_bytes;
  return layer;
}

}  // namespace

Result<std::vector<LayerCost>> read_layer_profile(const std::string& path, double weight_share) {
  Result<Graph> graph = read_graph(path);
  if (!graph.ok()) return graph.error();
  const Result<std::vector<std::size_t>> order = topological_order(path, *graph);
  if (!order.ok()) return order.error();
  std::vector<std::size_t> place(order->size());
  for (std::size_t i = 0; i < order->size(); ++i) place[(*order)[i]] = i;
  std::vector<LayerCost> layers;
  std::vector<double> ended(order->size() + 1, 0);  // bytes that nobody reads after a place
  double live = 0;
  for (std::size_t i = 0; i < order->size(); ++i) {
    const Node& node = graph->nodes[(*order)[i]];
    std::size_t last = i;
    for (const std::size_t next : node.next) last = std::max(last, place[next]);
    live += node.output_bytes;
    ended[last] += node.output_bytes;
    live -= ended[i];
    layers.push_back(to_layer(node, weight_share));
    layers.back().output_bytes = live;
  }
  return layers;
}

}  // namespace rrfp
