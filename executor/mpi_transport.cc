#include "executor/mpi_transport.h"

#include <algorithm>
#include <limits>

#include "executor/clock.h"

namespace rrfp {

MpiTransport::MpiTransport(MPI_Comm communicator, const MpiSettings& settings)
    : communicator_(communicator), settings_(settings) {
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator_, &endpoint_);
  MPI_Comm_size(communicator_, &endpoints_);
  for (std::size_t slot = 0; slot < kPosted; ++slot) post_letter(slot);
}

MpiTransport::~MpiTransport() { close(); }

void MpiTransport::close() {
  for (MPI_Request& request : posted_) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

void MpiTransport::check(int code, const char* call, int peer) {
  if (code == MPI_SUCCESS || !status_.ok()) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  status_ = Error{std::string(call) + " with process " + std::to_string(peer) + ": " + text};
}

void MpiTransport::post_letter(std::size_t slot) {
  check(MPI_Irecv(&letters_[slot], sizeof(Letter), MPI_BYTE, MPI_ANY_SOURCE, kLetterTag,
                  communicator_, &posted_[slot]),
        "MPI_Irecv", endpoint_);
}

void MpiTransport::tell(const Letter& letter) {
  finish_sends();
  Sent& sent = sent_.emplace_back();
  sent.letter = letter;
  check(MPI_Isend(&sent.letter, sizeof(Letter), MPI_BYTE, letter.to, kLetterTag, communicator_,
                  &sent.request),
        "MPI_Isend", letter.to);
}

void MpiTransport::send(const Letter& letter, Payload payload) {
  tell(letter);
  Sent& sent = sent_.emplace_back();
  sent.letter = letter;
  sent.payload = std::move(payload);
  check(MPI_Isend(sent.payload.data(), static_cast<int>(sent.payload.size()), MPI_BYTE, letter.to,
                  kPayloadTag, communicator_, &sent.request),
        "MPI_Isend", letter.to);
}

void MpiTransport::finish_sends() {
  for (auto sent = sent_.begin(); sent != sent_.end();) {
    int done = 0;
    check(MPI_Test(&sent->request, &done, MPI_STATUS_IGNORE), "MPI_Test", sent->letter.to);
    // One that waits for its receiver stands for those behind it.
    if (done == 0) {
      if (sent->payload.empty()) break;
      ++sent;
      continue;
    }
    sent = sent_.erase(sent);
  }
}

bool MpiTransport::flushed() {
  finish_sends();
  return sent_.empty() || !status_.ok();
}

bool MpiTransport::poll(Delivery& delivery) {
  if (!status_.ok()) return false;
  if (take_letter(delivery)) return true;
  if (!incoming_.empty() && take_payload(delivery)) return true;
  if (!sent_.empty()) finish_sends();
  return false;
}

// What the receive of its payload, if any, relies on.
bool MpiTransport::is_as_sent(const Letter& letter, const MPI_Status& status) const {
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  return size == static_cast<int>(sizeof(Letter)) && letter.from == status.MPI_SOURCE &&
         letter.to == endpoint_ && letter.bytes >= 0 &&
         letter.bytes <= std::numeric_limits<int>::max();
}

bool MpiTransport::take_letter(Delivery& delivery) {
  int done = 0;
  MPI_Status status;
  check(MPI_Test(&posted_[oldest_], &done, &status), "MPI_Test", endpoint_);
  if (done == 0 || !status_.ok()) return false;
  delivery.letter = letters_[oldest_];
  if (!is_as_sent(delivery.letter, status)) {
    status_ = Error{"process " + std::to_string(status.MPI_SOURCE) +
                    " has sent a letter that is none of this job"};
    return false;
  }
  delivery.payload = Payload();
  delivery.event =
      delivery.letter.bytes > 0 ? Delivery::Event::kAnnounced : Delivery::Event::kLetter;
  post_letter(oldest_);
  oldest_ = (oldest_ + 1) % kPosted;
  return true;
}

bool MpiTransport::take_payload(Delivery& delivery) {
  for (auto coming = incoming_.begin(); coming != incoming_.end(); ++coming) {
    int done = 0;
    check(MPI_Test(&coming->request, &done, MPI_STATUS_IGNORE), "MPI_Test", coming->letter.from);
    if (done == 0) continue;
    delivery.event = Delivery::Event::kReceived;
    delivery.letter = coming->letter;
    delivery.payload = std::move(coming->payload);
    incoming_.erase(coming);
    return true;
  }
  return false;
}

void MpiTransport::receive(const Letter& announced) {
  Incoming& coming = incoming_.emplace_back();
  coming.letter = announced;
  coming.payload = Payload(static_cast<std::size_t>(announced.bytes));
  check(MPI_Irecv(coming.payload.data(), static_cast<int>(announced.bytes), MPI_BYTE,
                  announced.from, kPayloadTag, communicator_, &coming.request),
        "MPI_Irecv", announced.from);
}

void MpiTransport::wait(std::int64_t until_ns) {
  if (settings_.sleep_ns == 0) return;
  // A payload under way, or a send that moves in steps, needs MPI to be called.
  const std::int64_t most_ns = incoming_.empty() ? settings_.sleep_ns : 1'000;
  const std::int64_t left_ns = until_ns - MonotonicClock::read_ns();
  const std::int64_t sleep_ns = std::min(most_ns, left_ns);
  if (sleep_ns > 0) sleep_for_ns(sleep_ns);
}

}  // namespace rrfp
