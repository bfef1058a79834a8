// What the tests of the tiers share: a folder that goes away, blocks whose bytes say what they are, and files that
// fail, wait and forget on demand.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "obs/metrics.h"
#include "tier/file_system.h"
#include "tier/tiers.h"

namespace coppice::tier {

class TempFolder {
 public:
  TempFolder() {
    // In memory if possible: the index is synced for each change, and these tests make thousands.
    const std::filesystem::path memory = "/dev/shm";
    const bool in_memory = ::access(memory.c_str(), W_OK) == 0;
    const auto parent = in_memory ? memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "coppice-tier-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string sub(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Bytes that depend on all that the block's KV would depend on.
inline Payload state_of(const BlockId& id, std::size_t n_bytes) {
  auto bytes = std::make_shared<std::vector<std::byte>>(n_bytes);
  for (std::size_t i = 0; i < n_bytes; ++i) {
    (*bytes)[i] = static_cast<std::byte>(id[i % id.size()] + static_cast<unsigned>(i / id.size()));
  }
  return bytes;
}

inline Block block_of(const BlockId& parent, TokenPos begin, Tokens tokens, std::size_t n_bytes,
                      BlockKind kind = BlockKind::cells) {
  const BlockId id = id_of(parent, tokens, kind);
  return {.id = id, .parent = parent, .begin = begin, .tokens = std::move(tokens), .state = state_of(id, n_bytes)};
}

inline Block checkpoint_of(const BlockId& parent, TokenPos begin, Tokens tokens, std::size_t n_bytes) {
  return block_of(parent, begin, std::move(tokens), n_bytes, BlockKind::checkpoint);
}

// A prompt cut into blocks.
inline std::vector<Block> chain_of(const BlockId& root, const Tokens& prompt, TokenPos block_tokens,
                                   std::size_t n_bytes) {
  std::vector<Block> chain;
  BlockId parent = root;
  for (std::size_t at = 0; at < prompt.size(); at += static_cast<std::size_t>(block_tokens)) {
    const std::size_t end = std::min(prompt.size(), at + static_cast<std::size_t>(block_tokens));
    Tokens tokens(prompt.begin() + static_cast<std::ptrdiff_t>(at), prompt.begin() + static_cast<std::ptrdiff_t>(end));
    chain.push_back(block_of(parent, static_cast<TokenPos>(at), std::move(tokens), n_bytes));
    parent = chain.back().id;
  }
  return chain;
}

// The same where a chain ends in a checkpoint.
inline std::vector<Block> checkpoint_chain_of(const BlockId& root, const Tokens& prompt, TokenPos block_tokens,
                                              std::size_t n_bytes) {
  std::vector<Block> chain = chain_of(root, prompt, block_tokens, n_bytes);
  Block& last = chain.back();
  last = checkpoint_of(last.parent, last.begin, std::move(last.tokens), n_bytes);
  return chain;
}

// What a sequence of the scheduler tells of the full blocks in its cells.
class CellsForTest {
 public:
  // Holds the full blocks of this chain from here on, which begins with what it holds already.
  void grow(Tiers& tiers, const std::vector<Block>& chain) {
    std::erase_if(held_, [&](const Lease::Held& held) { return !known(tiers, held); });
    for (std::size_t i = held_.size(); i < chain.size(); ++i) {
      const Block& block = chain[i];
      const bool full = static_cast<TokenPos>(block.tokens.size()) == tiers.block_tokens();
      if (!full || kind_of(block.id) == BlockKind::checkpoint) return;
      const auto serial = tiers.enter_cells(block);
      if (!serial) return;
      held_.push_back({block.id, *serial});
    }
  }
  void shrink(Tiers& tiers, std::size_t n_blocks) {
    for (; held_.size() > n_blocks; held_.pop_back()) tiers.leave_cells(held_.back().id, held_.back().serial);
  }
  std::size_t size() const { return held_.size(); }
  void forget() { held_.clear(); }  // the tiers are gone

 private:
  static bool known(const Tiers& tiers, const Lease::Held& held) {
    const Entry* entry = tiers.block(held.id);
    return entry != nullptr && entry->serial == held.serial;
  }
  std::vector<Lease::Held> held_;
};

inline Tokens numbers(Token first, int n) {
  Tokens tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(first + i);
  return tokens;
}

// The system's files with faults. Each call that changes or reads something has a number; `before` may fail it.
// It knows which bytes and names were synced, so that a power cut can be made of a folder's copy.
class FaultyFiles final : public FileSystem {
 public:
  enum class Call { create, append, sync, read, truncate, rename, remove, sync_folder };

  // Called before each; an error is returned instead of doing it. May wait.
  std::function<Result<void>(Call, const std::string& path)> before;
  // An append that fails still writes so many bytes.
  std::size_t torn_bytes = 0;
  std::uint64_t free = std::uint64_t{1} << 40;

  // Turns a copy of the folder into what a power cut might leave of it: bytes and names that were not synced are lost.
  void cut_power(const std::string& from, const std::string& copy) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, bytes] : synced_) {
      const std::string there = copy + path.substr(std::min(path.size(), from.size()));
      if (!path.starts_with(from + "/") || !std::filesystem::exists(there)) continue;
      std::filesystem::resize_file(there, std::min<std::uint64_t>(bytes, std::filesystem::file_size(there)));
      const auto old = old_names_.find(path);
      if (old == old_names_.end()) continue;
      if (old->second.empty()) {
        std::filesystem::remove(there);
      } else {
        std::filesystem::rename(there, copy + old->second.substr(from.size()));
      }
    }
  }

  Result<void> make_folder(const std::string& path) override { return real_->make_folder(path); }
  Result<std::vector<FileInfo>> list(const std::string& folder) override { return real_->list(folder); }
  Result<std::unique_ptr<AppendFile>> create(const std::string& path) override {
    if (auto ok = ask(Call::create, path); !ok) return std::unexpected(ok.error());
    auto file = real_->create(path);
    if (!file) return file;
    note(path, 0);
    const std::lock_guard lock(mutex_);
    old_names_[path] = "";
    return std::make_unique<File>(*this, path, std::move(*file));
  }
  Result<std::size_t> read(const std::string& path, std::uint64_t offset, std::span<std::byte> to) override {
    if (auto ok = ask(Call::read, path); !ok) return std::unexpected(ok.error());
    return real_->read(path, offset, to);
  }
  Result<void> truncate(const std::string& path, std::uint64_t bytes) override {
    if (auto ok = ask(Call::truncate, path); !ok) return ok;
    return real_->truncate(path, bytes);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    if (auto ok = ask(Call::rename, from); !ok) return ok;
    const std::lock_guard lock(mutex_);  // the names are only asked for between calls
    if (const auto found = synced_.find(from); found != synced_.end()) {
      const auto older = old_names_.find(from);
      old_names_[to] = older == old_names_.end() ? from : older->second;
      old_names_.erase(from);
      synced_[to] = found->second;
      synced_.erase(from);
    }
    return real_->rename(from, to);
  }
  Result<void> remove(const std::string& path) override {
    if (auto ok = ask(Call::remove, path); !ok) return ok;
    return real_->remove(path);
  }
  Result<void> sync_folder(const std::string& path) override {
    if (auto ok = ask(Call::sync_folder, path); !ok) return ok;
    const std::lock_guard lock(mutex_);
    old_names_.clear();
    return {};
  }
  Result<std::uint64_t> free_bytes(const std::string&) override { return free; }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override { return real_->lock(path); }

 private:
  class File final : public AppendFile {
   public:
    File(FaultyFiles& files, std::string path, std::unique_ptr<AppendFile> real)
        : files_(files), path_(std::move(path)), real_(std::move(real)) {}
    Result<void> append(std::span<const std::byte> bytes) override {
      if (auto ok = files_.ask(Call::append, path_); !ok) {
        (void)real_->append(bytes.first(std::min(bytes.size(), files_.torn_bytes)));
        return ok;
      }
      written_ += bytes.size();
      return real_->append(bytes);
    }
    Result<void> sync() override {
      if (auto ok = files_.ask(Call::sync, path_); !ok) return ok;
      files_.note(path_, written_);
      return {};
    }

   private:
    FaultyFiles& files_;
    std::string path_;
    std::unique_ptr<AppendFile> real_;
    std::uint64_t written_ = 0;
  };

  Result<void> ask(Call call, const std::string& path) { return before ? before(call, path) : Result<void>{}; }
  void note(const std::string& path, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    synced_[path] = bytes;
  }

  std::shared_ptr<FileSystem> real_ = system_files();
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> synced_;   // bytes of each file written here
  std::map<std::string, std::string> old_names_;  // new name: the one that is synced, if any
};

inline std::unexpected<Error> disk_error(const char* what, const char* code = "") {
  return std::unexpected(Error{ErrorKind::internal, what, {}, code});
}

// Tiers on a folder, with what they need. Blocks of 4 tokens unless said otherwise.
struct World {
  explicit World(const std::string& dir) {
    options.host_bytes_max = 1 << 20;
    options.block_tokens = 4;
    options.disk = DiskOptions{.dir = dir, .bytes_max = 1 << 20, .segment_bytes = 4096, .files = files};
    options.disk->own_thread = false;
    options.wake = [this] { woken.release(); };
  }
  Tiers& open() {
    auto opened = Tiers::open(options, clock, metrics);
    if (!opened) throw std::runtime_error(opened.error().message);
    tiers = std::move(*opened);
    return *tiers;
  }
  void put_all(const std::vector<Block>& chain, bool durable = true) {
    for (const Block& block : chain) {
      if (!tiers->put(block, durable)) throw std::runtime_error("no room");
    }
  }
  // Waits for the disk's thread, if it has one.
  FlushResult flush() {
    const std::uint64_t ticket = tiers->flush_begin();
    while (true) {
      tiers->poll();
      if (const auto result = tiers->flush_result(ticket)) return *result;
      if (options.disk->own_thread) woken.acquire();
    }
  }
  // All of a prompt's blocks in host memory, or as far as it goes; how many.
  std::size_t restore(const BlockId& root, const Tokens& prompt) {
    const Found found = tiers->find(root, prompt);
    const Lease lease = tiers->lease(found.blocks);
    tiers->prefetch(lease);
    while (tiers->ready(lease) == Ready::waiting) {
      if (!tiers->poll() && options.disk->own_thread) woken.acquire();
    }
    std::size_t n = 0;
    for (const BlockId& id : found.blocks) {
      const Payload payload = tiers->payload(id);
      if (payload == nullptr) break;
      if (*payload != *state_of(id, payload->size())) throw std::runtime_error("wrong bytes");
      ++n;
    }
    tiers->check_invariants();
    return n;
  }

  std::shared_ptr<FaultyFiles> files = std::make_shared<FaultyFiles>();
  ManualClock clock;
  obs::Metrics metrics;
  Options options;
  std::counting_semaphore<> woken{0};
  std::unique_ptr<Tiers> tiers;
};

}  // namespace coppice::tier
