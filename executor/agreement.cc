#include "executor/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "scheduler_core/random.h"

namespace rrfp {

namespace {

constexpr std::size_t kMostText = 1024;  // all bring the same size
// Terms are told in full only where they differ, and only so far.
constexpr std::size_t kMostTerms = std::size_t{1} << 16;

// What each of them says, by process; what is longer than `most` less one is cut.
Result<std::vector<std::string>> exchange_texts(LaneExchange& everyone, const std::string& mine,
                                                std::size_t most = kMostText) {
  Payload said(most);
  std::memset(said.data(), 0, said.size());
  std::memcpy(said.data(), mine.data(), std::min(mine.size(), most - 1));
  const Result<std::vector<Payload>> all = everyone.exchange(std::move(said));
  if (!all.ok()) return all.error();
  std::vector<std::string> texts;
  for (const Payload& one : *all) {
    const auto* text = reinterpret_cast<const char*>(one.data());
    texts.emplace_back(text, strnlen(text, one.size()));
  }
  return texts;
}

std::uint64_t fingerprint(std::string_view text) {
  std::uint64_t state = text.size();
  for (const char c : text) state = mix_bits(state * 31 + static_cast<unsigned char>(c) + 1);
  return state;
}

// One term a line; what an option is given may itself have several.
std::string as_line(const Term& term) {
  std::string line = "no " + term.name;
  if (term.value) line = term.value->empty() ? term.name : term.name + " " + *term.value;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return line;
}

// Long ones are told by their beginning.
std::string in_short(const std::string& line) {
  constexpr std::size_t kMost = 200;
  return line.size() <= kMost ? line
                              : line.substr(0, kMost) + "... (" + describe_content(line) + ")";
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string first_difference(const std::vector<std::string>& of_process) {
  const std::vector<std::string> first = split_lines(of_process.front());
  for (std::size_t process = 1; process < of_process.size(); ++process) {
    const std::vector<std::string> other = split_lines(of_process[process]);
    for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
      if (first[i] == other[i]) continue;
      return "process " + std::to_string(process) + " has " + other[i] + ", process 0 has " +
             first[i];
    }
  }
  return "they differ in more than can be told here";
}

}  // namespace

std::string describe_content(std::string_view text) {
  std::array<char, 64> words{};
  std::snprintf(words.data(), words.size(), "%zu bytes, fingerprint %016llx", text.size(),
                static_cast<unsigned long long>(fingerprint(text)));
  return words.data();
}

Result<std::string> shared_reason(LaneExchange& everyone, const Result<void>& mine) {
  const Result<std::vector<std::string>> reasons =
      exchange_texts(everyone, mine.ok() ? "" : mine.error().message);
  if (!reasons.ok()) return reasons.error();
  const auto found = std::find_if(reasons->begin(), reasons->end(),
                                  [](const std::string& reason) { return !reason.empty(); });
  if (found == reasons->end()) return std::string();
  const bool everywhere = static_cast<std::size_t>(std::count(reasons->begin(), reasons->end(),
                                                              *found)) == reasons->size();
  if (everywhere) return *found;
  return "process " + std::to_string(found - reasons->begin()) + ": " + *found;
}

Result<std::string> shared_difference(LaneExchange& everyone, const Terms& mine) {
  std::string exact;
  std::string told;
  for (const Term& term : mine) {
    const std::string line = as_line(term);
    exact += line + "\n";
    told += in_short(line) + "\n";
  }
  const Result<std::vector<std::string>> contents =
      exchange_texts(everyone, describe_content(exact));
  if (!contents.ok()) return contents.error();
  const bool alike = std::all_of(contents->begin(), contents->end(),
                                 [&](const std::string& of) { return of == contents->front(); });
  if (alike) return std::string();
  const Result<std::vector<std::string>> texts = exchange_texts(everyone, told, kMostTerms);
  if (!texts.ok()) return texts.error();
  return "the processes of this job were not started alike: " + first_difference(*texts);
}

Result<void> agree(LaneExchange& everyone, const Result<void>& mine) {
  const Result<std::string> reason = shared_reason(everyone, mine);
  if (!reason.ok()) return reason.error();
  return reason->empty() ? Result<void>() : Error{*reason};
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

Result<HostShare> share_of_host(LaneExchange& everyone, int process) {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  const std::string host = std::string(name) + " " + boot_id();
  const Result<std::vector<std::string>> hosts = exchange_texts(everyone, host);
  if (!hosts.ok()) return hosts.error();
  HostShare share;
  share.processes = static_cast<int>(std::count(hosts->begin(), hosts->end(), host));
  share.before = static_cast<int>(std::count(hosts->begin(), hosts->begin() + process, host));
  return share;
}

}  // namespace rrfp
