// Trace files in Chrome's JSON format, event by event, as they are found in
// the field: an object with "traceEvents" or a bare array, keys before and
// after the events, literal nan, control characters in strings, missing and
// surplus commas, no closing bracket, cut off anywhere. A strict parser stops
// at the first of these, so this one only finds where members begin and end;
// what a value means is left to its reader.
//
// Invariants
//  1. Memory is bounded by kMostEventBytes, whatever the length of the file.
//  2. Every byte is looked at once (but for an event that straddles a refill).
//  3. A file that ends too early gives all events that are whole, and says in
//     cut() where it ended.
//
// Thread safety: one file, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/byte_source.h"

namespace rrfp {

/// An event of this size is an error, a longer value beside the events is not
/// kept.
inline constexpr std::size_t kMostEventBytes = std::size_t{16} << 20;

/// A member of an object as it stands in the file: the key without its quotes,
/// the value with them. Escapes are left as they are.
struct LooseMember {
  std::string_view key;
  std::string_view value;
  bool nested = false;  ///< of an object that is itself a value ("args")
};

/// The members of one object, those of its objects behind each of them; deeper
/// ones are left in their value. False where `text` is no whole object.
bool split_object(std::string_view text, std::vector<LooseMember>* members);

/// The value without its quotes, where it has them.
std::string_view unquoted(std::string_view value);
/// The same with escapes resolved.
std::string unescaped(std::string_view value);

class LooseJsonFile {
 public:
  enum class Item : std::uint8_t {
    kEvent,   ///< an element of the array: members()
    kMember,  ///< a member beside the array: key(), value()
    kEnd,
  };

  static Result<LooseJsonFile> open(const std::string& path, ReadProgress progress = {});

  /// The error names path and byte: text that is no JSON in any reading.
  Result<Item> next();

  /// Valid until the next call.
  std::span<const LooseMember> members() const { return members_; }
  const std::string& key() const { return key_; }
  const std::string& value() const { return value_; }  ///< empty where above kMostEventBytes

  /// The byte at which the item that came last begins.
  std::int64_t item() const { return item_; }
  /// The same as "byte 17".
  std::string place() const;
  /// Whether the array of events was found.
  bool has_events() const { return has_events_; }
  /// Elements of the array that are no objects.
  std::int64_t other_elements() const { return other_elements_; }
  /// Where and why the file ended too early; empty where it did not.
  const std::string& cut() const { return cut_; }
  std::int64_t bytes() const { return base_ + static_cast<std::int64_t>(at_); }

 private:
  enum class State : std::uint8_t { kStart, kMembers, kEvents, kEnd };
  enum class Found : std::uint8_t { kWhole, kIncomplete, kWrong };

  LooseJsonFile(std::string path, ByteSource source);

  // Nothing where the next state has to be asked.
  using Step = std::optional<Item>;
  Result<Step> start();
  Result<Step> next_event();
  Result<Step> next_member();
  Found read_event();
  Found read_key();
  bool skip_value(bool keep);
  Step cut_here(const std::string& inside);
  Error wrong(const std::string& expected) const;

  /// Passes over white space and commas; the byte that follows stays.
  /// False at the end of the file.
  bool skip_blanks();
  /// One more piece of the file behind what is not consumed; false at its end.
  bool refill();

  std::string path_;
  ByteSource source_;
  std::string buffer_;
  std::size_t at_ = 0;     ///< of what is not consumed
  std::size_t end_ = 0;    ///< of what is filled
  std::int64_t base_ = 0;  ///< where in the file the buffer begins
  std::string damage_;     ///< of compressed data
  std::int64_t item_ = 0;  ///< where in the file the last item begins
  State state_ = State::kStart;
  bool bare_ = false;  ///< an array without an object around it
  bool has_events_ = false;
  std::int64_t other_elements_ = 0;
  std::string cut_;
  std::string key_;
  std::string value_;
  std::vector<LooseMember> members_;
};

}  // namespace rrfp
