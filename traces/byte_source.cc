#include "traces/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <limits>
#include <utility>

namespace rrfp {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;

Error damaged(const std::string& what) {
  return Error{"the compressed data is damaged or ends too early: " + what};
}

/// zlib's own reader: it hands out what stands before the damage.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : file_(gzopen(path.c_str(), "rb")) {
    if (file_ != nullptr) gzbuffer(file_, kChunkBytes);
  }
  ~GzipFile() {
    if (file_ != nullptr) gzclose(file_);
  }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  bool is_open() const { return file_ != nullptr; }
  std::int64_t position() const { return gzoffset(file_); }

  Result<std::size_t> read(char* data, std::size_t size) {
    const auto most = std::min<std::size_t>(size, std::numeric_limits<int>::max());
    const int count = gzread(file_, data, static_cast<unsigned>(most));
    if (count > 0) return static_cast<std::size_t>(count);
    int code = Z_OK;
    const char* message = gzerror(file_, &code);
    if (code == Z_ERRNO) return Error{std::string("cannot read: ") + std::strerror(errno)};
    if (code != Z_OK && code != Z_STREAM_END) return damaged(message);
    return std::size_t{0};
  }

 private:
  gzFile file_;
};

}  // namespace

struct ByteSource::Stream {
  std::ifstream file;
  boost::iostreams::filtering_streambuf<boost::iostreams::input> chain;  ///< plain and zstd
  std::unique_ptr<GzipFile> gzip;                                        ///< instead of the chain
  ReadProgress progress;
  std::int64_t told_bytes = 0;

  Result<std::size_t> read(char* data, std::size_t size) {
    if (gzip != nullptr) return gzip->read(data, size);
    try {
      const std::streamsize count = chain.sgetn(data, static_cast<std::streamsize>(size));
      return static_cast<std::size_t>(std::max<std::streamsize>(count, 0));
    } catch (const std::exception& error) {
      return damaged(error.what());
    }
  }

  void tell_progress() {
    if (!progress) return;
    // Asked of the buffer: the stream itself answers no more at its end.
    const std::int64_t position =
        gzip != nullptr ? gzip->position()
                        : std::int64_t{file.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in)};
    if (position <= told_bytes) return;
    progress(position - told_bytes);
    told_bytes = position;
  }
};

ByteSource::ByteSource(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

Result<ByteSource> ByteSource::open(const std::string& path, ReadProgress progress) {
  auto stream = std::make_unique<Stream>();
  stream->file.open(path, std::ios::binary);
  if (!stream->file) return Error{path + ": cannot open: " + std::strerror(errno)};
  unsigned char magic[4] = {};
  stream->file.read(reinterpret_cast<char*>(magic), sizeof magic);
  if (stream->file.bad()) return Error{path + ": cannot read: " + std::strerror(errno)};
  stream->file.clear();
  stream->file.seekg(0);
  if (!stream->file) return Error{path + ": cannot read: it must be a file, not a pipe"};
  stream->progress = std::move(progress);
  const bool gzip = magic[0] == 0x1f && magic[1] == 0x8b;
  const bool zstd = magic[0] == 0x28 && magic[1] == 0xb5 && magic[2] == 0x2f && magic[3] == 0xfd;
  if (gzip) {
    stream->gzip = std::make_unique<GzipFile>(path);
    if (!stream->gzip->is_open()) return Error{path + ": cannot open: " + std::strerror(errno)};
    return ByteSource(std::move(stream));
  }
  if (zstd) stream->chain.push(boost::iostreams::zstd_decompressor());
  stream->chain.push(stream->file, static_cast<std::streamsize>(kChunkBytes));
  return ByteSource(std::move(stream));
}

Result<std::size_t> ByteSource::read(char* data, std::size_t size) {
  const Result<std::size_t> count = stream_->read(data, size);
  stream_->tell_progress();
  return count;
}

}  // namespace rrfp
