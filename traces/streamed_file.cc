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

#include "traces/atomic_file.h"

namespace rrfp {

namespace {

constexpr std::size_t kFlushBytes = std::size_t{256} << 10;

}  // namespace

struct StreamedFile::State {
  std::string path;
  std::string target;  ///< what gets the temporary name's file
  std::string temporary;
  std::ofstream file;
  // Anew for each part: one that was closed cannot be filled again.
  std::unique_ptr<boost::iostreams::filtering_streambuf<boost::iostreams::output>> chain;
  std::string buffer;
  std::string failure;  ///< of the first write that failed
  bool named = false;   ///< what is written is under its own name

  ~State() {
    try {
      if (chain) chain->reset();
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
      if (failure.empty() && (chain->sputn(buffer.data(), size) != size || !file)) {
        failure = std::strerror(errno);
      }
    } catch (const std::exception& failed) {
      if (failure.empty()) failure = failed.what();
    }
    buffer.clear();
  }

  void open_chain() {
    chain = std::make_unique<boost::iostreams::filtering_streambuf<boost::iostreams::output>>();
    if (path.ends_with(".gz")) chain->push(boost::iostreams::gzip_compressor());
    if (path.ends_with(".zst")) chain->push(boost::iostreams::zstd_compressor());
    chain->push(file);
  }
  Result<void> end_part();
};

Result<StreamedFile> StreamedFile::create(const std::string& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->named = is_written_in_place(path);
  state->target = state->named ? path : behind_links(path);
  const std::string name =
      state->named ? path : state->target + ".tmp-" + std::to_string(::getpid());
  state->file.open(name, std::ios::binary | std::ios::trunc);
  if (!state->file) return Error{path + ": cannot write: " + std::strerror(errno)};
  state->temporary = name;
  state->open_chain();
  return StreamedFile(std::move(state));
}

void StreamedFile::append(std::string_view text) {
  state_->buffer += text;
  if (state_->buffer.size() >= kFlushBytes) state_->flush();
}

// Everything is in the file, and the file has its name.
Result<void> StreamedFile::State::end_part() {
  flush();
  try {
    chain->reset();  // flushes what the compressor holds
  } catch (const std::exception& failed) {
    if (failure.empty()) failure = failed.what();
  }
  file.flush();
  if (!file && failure.empty()) failure = std::strerror(errno);
  if (!failure.empty()) return Error{path + ": cannot write: " + failure};
  if (!named && std::rename(temporary.c_str(), target.c_str()) != 0) {
    return Error{path + ": cannot rename " + temporary + ": " + std::strerror(errno)};
  }
  named = true;
  return {};
}

Result<void> StreamedFile::keep() {
  Result<void> ended = state_->end_part();
  if (ended.ok()) state_->open_chain();
  return ended;
}

Result<void> StreamedFile::finish() {
  Result<void> ended = state_->end_part();
  state_->file.close();
  return ended;
}

StreamedFile::StreamedFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamedFile::StreamedFile(StreamedFile&&) noexcept = default;
StreamedFile& StreamedFile::operator=(StreamedFile&&) noexcept = default;
StreamedFile::~StreamedFile() = default;

}  // namespace rrfp
