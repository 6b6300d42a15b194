#include "executor/cuda_double_nccl_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

constexpr char kPrefix[] = "rrfp-double-nccl-";
constexpr char kDigits[] = "0123456789abcdef";
constexpr std::size_t kRandomDigits = 32;
constexpr std::size_t kFailureBytes = 256;
constexpr std::size_t kPageBytes = 4096;

enum class Failure : std::uint32_t { kNone, kBeingWritten, kWritten };

std::string path_of(const std::string& name) { return "/dev/shm/" + name; }

std::string system_error(const std::string& call, const std::string& path) {
  return call + " of " + path + ": " + std::strerror(errno);
}

// A name that create() may have given, which stays in its folder.
bool is_name(const std::string& name) {
  const std::size_t prefix = std::strlen(kPrefix);
  return name.size() == prefix + kRandomDigits && name.compare(0, prefix, kPrefix) == 0 &&
         name.find_first_not_of(kDigits, prefix) == std::string::npos;
}

void* map(int file, std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

struct OpenFile {
  int number = -1;
  ~OpenFile() {
    if (number >= 0) close(number);
  }
};

}  // namespace

// All zero is right at first.
struct DoubleNcclBoard::Head {
  std::atomic<std::uint32_t> members;
  std::atomic<std::uint32_t> attached;
  std::atomic<std::uint32_t> left;
  std::atomic<Failure> failed;
  char failure[kFailureBytes];
  std::atomic<std::uint32_t> seats[kMostMembers];  // the member's device + 1
};

std::size_t DoubleNcclBoard::bytes_for(int members) {
  const auto count = static_cast<std::size_t>(members);
  return kPageBytes + count * count * sizeof(DoubleNcclRing);
}

std::string DoubleNcclBoard::new_name() {
  std::random_device random;
  std::string name = kPrefix;
  for (std::size_t digit = 0; digit < kRandomDigits; ++digit) name += kDigits[random() % 16];
  return name;
}

Result<std::unique_ptr<DoubleNcclBoard>> DoubleNcclBoard::attach(const std::string& name,
                                                                 int members, int rank,
                                                                 int device) {
  static_assert(sizeof(Head) <= kPageBytes);
  if (members < 1 || members > kMostMembers) {
    return Error{"invalid number of ranks " + std::to_string(members) +
                 " (the double takes from 1 to " + std::to_string(kMostMembers) + ")"};
  }
  if (rank < 0 || rank >= members) {
    return Error{"invalid rank " + std::to_string(rank) + " (should be >= 0 and < " +
                 std::to_string(members) + ")"};
  }
  if (!is_name(name)) return Error{"the unique id is none that ncclGetUniqueId gave"};
  std::unique_ptr<DoubleNcclBoard> made(new DoubleNcclBoard);
  made->path_ = path_of(name);
  // Whoever comes first makes it.
  const OpenFile file{open(made->path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (file.number < 0) return Error{system_error("open", made->path_)};
  made->members_ = members;
  if (Result<void> taken = made->take_seat(file.number, rank, device); !taken.ok()) {
    return taken.error();
  }
  return made;
}

// The number of members is agreed upon before the file grows to what that needs. It never shrinks.
Result<void> DoubleNcclBoard::take_seat(int file, int rank, int device) {
  if (const int code = posix_fallocate(file, 0, kPageBytes); code != 0) {
    return Error{"posix_fallocate of " + path_ + ": " + std::strerror(code)};
  }
  void* const page = map(file, kPageBytes);
  if (page == nullptr) return Error{system_error("mmap", path_)};
  std::uint32_t agreed = 0;
  const auto wanted = static_cast<std::uint32_t>(members_);
  std::atomic<std::uint32_t>& of_all = static_cast<Head*>(page)->members;
  const bool agrees = of_all.compare_exchange_strong(agreed, wanted) || agreed == wanted;
  munmap(page, kPageBytes);
  if (!agrees) {
    return Error{"rank " + std::to_string(rank) + " says that there are " +
                 std::to_string(members_) + " ranks, where another said " + std::to_string(agreed)};
  }
  const std::size_t bytes = bytes_for(members_);
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return Error{system_error("ftruncate", path_)};
  }
  void* const memory = map(file, bytes);
  if (memory == nullptr) return Error{system_error("mmap", path_)};
  auto* const head = static_cast<Head*>(memory);
  std::uint32_t free_seat = 0;
  if (!head->seats[rank].compare_exchange_strong(free_seat,
                                                 static_cast<std::uint32_t>(device) + 1)) {
    munmap(memory, bytes);
    return Error{"rank " + std::to_string(rank) + " is there already"};
  }
  head_ = head;
  rings_ = reinterpret_cast<DoubleNcclRing*>(static_cast<std::byte*>(memory) + kPageBytes);
  if (head_->attached.fetch_add(1) + 1 == wanted) unlink(path_.c_str());
  return {};
}

DoubleNcclBoard::~DoubleNcclBoard() {
  if (head_ == nullptr) return;
  const std::uint32_t left = head_->left.fetch_add(1) + 1;
  if (!all_attached() && left == head_->attached.load()) unlink(path_.c_str());
  munmap(head_, bytes_for(members_));
}

bool DoubleNcclBoard::all_attached() const {
  return head_->attached.load() == static_cast<std::uint32_t>(members_);
}

int DoubleNcclBoard::device_of(int rank) const {
  RRFP_CHECK(all_attached());
  return static_cast<int>(head_->seats[rank].load()) - 1;
}

DoubleNcclRing& DoubleNcclBoard::ring(int from, int to) { return rings_[from * members_ + to]; }

void DoubleNcclBoard::fail(const std::string& what) {
  Failure none = Failure::kNone;
  if (!head_->failed.compare_exchange_strong(none, Failure::kBeingWritten)) return;
  std::snprintf(head_->failure, kFailureBytes, "%s", what.c_str());
  head_->failed.store(Failure::kWritten);
}

std::string DoubleNcclBoard::failure() const {
  return head_->failed.load() == Failure::kWritten ? head_->failure : "";
}

}  // namespace rrfp
