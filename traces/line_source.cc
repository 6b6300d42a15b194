#include "traces/line_source.h"

#include <cstring>
#include <utility>

namespace rrfp {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;

}  // namespace

LineSource::LineSource(std::string path, ByteSource bytes)
    : path_(std::move(path)), bytes_(std::move(bytes)), buffer_(kChunkBytes, '\0') {}

Result<LineSource> LineSource::open(const std::string& path, ReadProgress progress) {
  Result<ByteSource> bytes = ByteSource::open(path, std::move(progress));
  if (!bytes.ok()) return bytes.error();
  return LineSource(path, *std::move(bytes));
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
  const Result<std::size_t> count = bytes_.read(buffer_.data() + end_, buffer_.size() - end_);
  if (!count.ok()) {
    ++line_number_;
    return error(count.error().message);
  }
  if (*count == 0) return false;
  end_ += *count;
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
