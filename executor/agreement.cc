#include "executor/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace rrfp {

namespace {

constexpr std::size_t kMostText = 1024;  // all bring the same size

// What each of them says, by process.
Result<std::vector<std::string>> exchange_texts(LaneExchange& everyone, const std::string& mine) {
  Payload said(kMostText);
  std::memset(said.data(), 0, said.size());
  std::memcpy(said.data(), mine.data(), std::min(mine.size(), kMostText - 1));
  const Result<std::vector<Payload>> all = everyone.exchange(std::move(said));
  if (!all.ok()) return all.error();
  std::vector<std::string> texts;
  for (const Payload& one : *all) {
    const auto* text = reinterpret_cast<const char*>(one.data());
    texts.emplace_back(text, strnlen(text, one.size()));
  }
  return texts;
}

}  // namespace

Result<void> agree(LaneExchange& everyone, const Result<void>& mine) {
  const Result<std::vector<std::string>> reasons =
      exchange_texts(everyone, mine.ok() ? "" : mine.error().message);
  if (!reasons.ok()) return reasons.error();
  for (std::size_t process = 0; process < reasons->size(); ++process) {
    const std::string& reason = (*reasons)[process];
    if (reason.empty()) continue;
    return Error{process == 0 ? reason : "process " + std::to_string(process) + ": " + reason};
  }
  return {};
}

Result<int> processes_on_this_host(LaneExchange& everyone) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  const Result<std::vector<std::string>> hosts = exchange_texts(everyone, host);
  if (!hosts.ok()) return hosts.error();
  return static_cast<int>(std::count(hosts->begin(), hosts->end(), host));
}

}  // namespace rrfp
