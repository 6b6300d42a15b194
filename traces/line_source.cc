#include "traces/line_source.h"

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <utility>

namespace rrfp {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;

}  // namespace

struct LineSource::Stream {
  std::ifstream file;
  boost::iostreams::filtering_streambuf<boost::iostreams::input> chain;
};

LineSource::LineSource(std::string path, std::unique_ptr<Stream> stream)
    : path_(std::move(path)), stream_(std::move(stream)), buffer_(kChunkBytes, '\0') {}
LineSource::LineSource(LineSource&&) noexcept = default;
LineSource& LineSource::operator=(LineSource&&) noexcept = default;
LineSource::~LineSource() = default;

Result<LineSource> LineSource::open(const std::string& path, ReadProgress progress) {
  auto stream = std::make_unique<Stream>();
  stream->file.open(path, std::ios::binary);
  if (!stream->file) return Error{path + ": cannot open: " + std::strerror(errno)};
  unsigned char magic[4] = {};
  stream->file.read(reinterpret_cast<char*>(magic), sizeof magic);
  if (stream->file.bad()) return Error{path + ": cannot read: " + std::strerror(errno)};
  stream->file.clear();
  stream->file.seekg(0);
  if (!stream->file) return Error{path + ": cannot read: it must be a file, not a pipe"};
  const bool gzip = magic[0] == 0x1f && magic[1] == 0x8b;
  const bool zstd = magic[0] == 0x28 && magic[1] == 0xb5 && magic[2] == 0x2f && magic[3] == 0xfd;
  if (gzip) stream->chain.push(boost::iostreams::gzip_decompressor());
  if (zstd) stream->chain.push(boost::iostreams::zstd_decompressor());
  stream->chain.push(stream->file, static_cast<std::streamsize>(kChunkBytes));
  LineSource source(path, std::move(stream));
  source.progress_ = std::move(progress);
  return source;
}

void LineSource::tell_progress() {
  if (!progress_) return;
  // Asked of the buffer: the stream itself answers no more at its end.
  const std::streamoff position = stream_->file.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in);
  if (position <= told_bytes_) return;
  progress_(position - told_bytes_);
  told_bytes_ = position;
}

Error LineSource::error(const std::string& what) const {
  return Error{path_ + ": line " + std::to_string(line_number_) + ": " + what};
}

Result<bool> LineSource::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= kMaxLineBytes) {
      ++line_number_;
      return error("is longer than " + std::to_string(kMaxLineBytes) + " bytes");
    }
    buffer_.resize(buffer_.size() * 2);
  }
  std::streamsize count = 0;
  try {
    count = stream_->chain.sgetn(buffer_.data() + end_,
                                 static_cast<std::streamsize>(buffer_.size() - end_));
  } catch (const std::exception& damaged) {
    ++line_number_;
    return error(std::string("the compressed data is damaged or ends too early: ") +
                 damaged.what());
  }
  tell_progress();
  if (count <= 0) return false;
  end_ += static_cast<std::size_t>(count);
  return true;
}

Result<bool> LineSource::next(std::string_view* line) {
  std::size_t searched = begin_;
  while (true) {
    const char* data = buffer_.data();
    const void* found = std::memchr(data + searched, '\n', end_ - searched);
    if (found != nullptr) {
      const auto stop = static_cast<std::size_t>(static_cast<const char*>(found) - data);
      *line = std::string_view(data + begin_, stop - begin_);
      begin_ = stop + 1;
      break;
    }
    searched = end_ - begin_;  // fill() moves what is left to the front
    const Result<bool> more = fill();
    if (!more.ok()) return more.error();
    if (*more) continue;
    if (begin_ == end_) return false;
    *line = std::string_view(buffer_.data() + begin_, end_ - begin_);
    begin_ = end_;
    break;
  }
  ++line_number_;
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  return true;
}

}  // namespace rrfp
