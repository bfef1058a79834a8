// The right to use a sequence's KV: while a lease lives, the sequence is not evicted, trimmed or handed to another
// owner. A running request holds one on its sequence, a pool on its prefix, and admission one on the donor while it
// makes room beside it.
//
// Leases move and release themselves, so that every way out of an owner, an early return or a cancel included, gives
// the right back.
// Owner: sched::Sequences. Threading: the engine thread. The book must outlive its leases.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace coppice::kv {

class Lease;

// Counts the leases on each sequence.
class LeaseBook {
 public:
  explicit LeaseBook(std::int32_t n_seqs) : counts_(static_cast<std::size_t>(n_seqs), 0) {}
  LeaseBook(const LeaseBook&) = delete;  // leases point here
  LeaseBook& operator=(const LeaseBook&) = delete;
  ~LeaseBook() { assert(total_ == 0); }

  [[nodiscard]] Lease take(SeqId seq);
  bool held(SeqId seq) const { return counts_[static_cast<std::size_t>(seq.value)] > 0; }
  std::int32_t count(SeqId seq) const { return counts_[static_cast<std::size_t>(seq.value)]; }
  std::int64_t total() const { return total_; }

 private:
  friend class Lease;
  void add(SeqId seq, std::int32_t change) {
    std::int32_t& count = counts_[static_cast<std::size_t>(seq.value)];
    count += change;
    total_ += change;
    assert(count >= 0);
  }

  std::vector<std::int32_t> counts_;
  std::int64_t total_ = 0;
};

class Lease {
 public:
  Lease() = default;  // a right to nothing
  Lease(Lease&& from) noexcept : book_(std::exchange(from.book_, nullptr)), seq_(from.seq_) {}
  Lease& operator=(Lease&& from) noexcept {
    if (this == &from) return *this;
    release();
    book_ = std::exchange(from.book_, nullptr);
    seq_ = from.seq_;
    return *this;
  }
  ~Lease() { release(); }

  explicit operator bool() const { return book_ != nullptr; }
  SeqId seq() const { return assert(book_ != nullptr), seq_; }
  void release() {
    if (LeaseBook* book = std::exchange(book_, nullptr)) book->add(seq_, -1);
  }

 private:
  friend class LeaseBook;
  Lease(LeaseBook& book, SeqId seq) : book_(&book), seq_(seq) { book.add(seq, 1); }

  LeaseBook* book_ = nullptr;
  SeqId seq_;
};

inline Lease LeaseBook::take(SeqId seq) { return {*this, seq}; }

}  // namespace coppice::kv
