#include "traces/streamed_file.h"

#include <unistd.h>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <utility>

namespace rrfp {

namespace {

constexpr std::size_t kFlushBytes = std::size_t{256} << 10;

}  // namespace

struct StreamedFile::State {
  std::string path;
  std::string temporary;
  std::ofstream file;
  boost::iostreams::filtering_streambuf<boost::iostreams::output> chain;
  std::string buffer;
  std::string failure;  ///< of the first write that failed
  bool named = false;

  ~State() {
    try {
      chain.reset();
    } catch (const std::exception&) {
      // The file is thrown away.
    }
    file.close();
    if (!named && !temporary.empty()) std::remove(temporary.c_str());
  }

  void flush() {
    if (buffer.empty()) return;
    try {
      const auto size = static_cast<std::streamsize>(buffer.size());
      if (failure.empty() && (chain.sputn(buffer.data(), size) != size || !file)) {
        failure = std::strerror(errno);
      }
    } catch (const std::exception& failed) {
      if (failure.empty()) failure = failed.what();
    }
    buffer.clear();
  }
};

Result<StreamedFile> StreamedFile::create(const std::string& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  const std::string temporary = path + ".tmp-" + std::to_string(::getpid());
  state->file.open(temporary, std::ios::binary | std::ios::trunc);
  if (!state->file) return Error{path + ": cannot write: " + std::strerror(errno)};
  state->temporary = temporary;
  if (path.ends_with(".gz")) state->chain.push(boost::iostreams::gzip_compressor());
  if (path.ends_with(".zst")) state->chain.push(boost::iostreams::zstd_compressor());
  state->chain.push(state->file);
  return StreamedFile(std::move(state));
}

void StreamedFile::append(std::string_view text) {
  state_->buffer += text;
  if (state_->buffer.size() >= kFlushBytes) state_->flush();
}

Result<void> StreamedFile::finish() {
  State& state = *state_;
  state.flush();
  try {
    state.chain.reset();  // flushes what the compressor holds
  } catch (const std::exception& failed) {
    if (state.failure.empty()) state.failure = failed.what();
  }
  state.file.flush();
  if (!state.file && state.failure.empty()) state.failure = std::strerror(errno);
  state.file.close();
  if (!state.failure.empty()) return Error{state.path + ": cannot write: " + state.failure};
  if (std::rename(state.temporary.c_str(), state.path.c_str()) != 0) {
    return Error{state.path + ": cannot rename " + state.temporary + ": " + std::strerror(errno)};
  }
  state.named = true;
  return {};
}

StreamedFile::StreamedFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamedFile::StreamedFile(StreamedFile&&) noexcept = default;
StreamedFile& StreamedFile::operator=(StreamedFile&&) noexcept = default;
StreamedFile::~StreamedFile() = default;

}  // namespace rrfp
