// Keeping large CPU blocks, and giving them back.
#include "core/block_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "core/container.h"

namespace taeda::detail {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kMapped =
    size_t(1) << 20;  // from here on blocks are maps of their own, which go back to the system at once
constexpr size_t kHugePage = size_t(2) << 20;
constexpr size_t kAlways = size_t(64) << 20;
constexpr size_t kMost = size_t(4) << 30;
constexpr size_t kTurns = 8;
constexpr size_t kSizes = 256;  // entries of sizes that are not kept just now stay, up to this many
constexpr auto kPeriod = std::chrono::seconds(10);

void* map(size_t size) noexcept {
  void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

/// A map of whole pages that begins at a huge page, and asks for them: what streams over it does so by half as much
/// again to two thirds faster. Where the system has none, or is out of them, it is a map like others.
void* map_huge(size_t size) noexcept {
  auto* const start = static_cast<char*>(map(size + kHugePage));
  if (!start) return map(size);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
  char* const block = start + before;
  if (before) munmap(start, before);
  munmap(block + size, kHugePage - before);
#ifdef MADV_HUGEPAGE
  madvise(block, size, MADV_HUGEPAGE);
#endif
  return block;
}

}  // namespace

void* BlockCache::make(size_t size) noexcept {
  if (size < kMapped) return std::aligned_alloc(kAlign, size);
  return size < kHugePage ? map(size) : map_huge(size);
}
void BlockCache::drop(void* block, size_t size) noexcept {
  if (size < kMapped) std::free(block);
  else munmap(block, size);
}
void BlockCache::drop_chain(Kept* chain) noexcept {
  while (chain) {
    Kept* next = chain->newer;
    drop(chain, chain->size);
    chain = next;
  }
}

void* BlockCache::take(size_t size) {
  Kept* chain;
  {
    const std::lock_guard guard(lock_);
    note(size);
    if (const auto found = by_size_.find(size); found != by_size_.end() && found->second.newest) {
      Kept* block = found->second.newest;
      detach(block);
      return block;
    }
    chain = cut(allowance());
  }
  drop_chain(chain);
  return nullptr;
}
size_t BlockCache::give(void* block, size_t size) {
  Kept* chain;
  size_t left;
  {
    const std::lock_guard guard(lock_);
    ++uses_;
    live_ -= size;
    auto* kept = new (block) Kept{};
    kept->size = size;
    attach(kept);
    chain = cut(allowance());
    left = cached_;
  }
  drop_chain(chain);
  return left;
}
void BlockCache::fail(size_t size) {
  const std::lock_guard guard(lock_);
  live_ -= size;
}
size_t BlockCache::cached() {
  const std::lock_guard guard(lock_);
  return cached_;
}
uint64_t BlockCache::uses() {
  const std::lock_guard guard(lock_);
  return uses_;
}
void BlockCache::set_limit(size_t bytes) {
  {
    const std::lock_guard guard(lock_);
    limit_ = bytes;
  }
  trim(bytes);
}
void BlockCache::trim(size_t bytes) {
  Kept* chain;
  {
    const std::lock_guard guard(lock_);
    chain = cut(bytes);
  }
  drop_chain(chain);
}

void BlockCache::note(size_t size) {
  ++uses_;
  live_ += size;
  taken_ += size;
  peak_ = std::max(peak_, live_);
  if (!limit_) limit_ = std::min(kMost, container_memory("") / 4);
  if (taken_ / kTurns <= std::max(peak_, kAlways)) return;
  taken_ = 0;
  const auto now = std::chrono::steady_clock::now();
  if (now - since_ < kPeriod) return;
  since_ = now;
  peak_before_ = peak_;
  peak_ = live_;
}
size_t BlockCache::allowance() const {
  const size_t peak = std::max(peak_, peak_before_);  // never less than live_
  return std::min(*limit_, std::max(peak + peak / 2, kAlways) - live_);
}

void BlockCache::attach(Kept* block) {
  Alike& alike = by_size_[block->size];
  block->older = newest_;
  block->older_alike = alike.newest;
  (newest_ ? newest_->newer : oldest_) = block;
  (alike.newest ? alike.newest->newer_alike : alike.oldest) = block;
  newest_ = alike.newest = block;
  cached_ += block->size;
}
void BlockCache::detach(Kept* block) {
  const auto alike = by_size_.find(block->size);
  (block->newer ? block->newer->older : newest_) = block->older;
  (block->older ? block->older->newer : oldest_) = block->newer;
  (block->newer_alike ? block->newer_alike->older_alike : alike->second.newest) = block->older_alike;
  (block->older_alike ? block->older_alike->newer_alike : alike->second.oldest) = block->newer_alike;
  if (!alike->second.newest && by_size_.size() > kSizes) by_size_.erase(alike);
  cached_ -= block->size;
}
BlockCache::Kept* BlockCache::cut(size_t bytes) {
  Kept* chain = nullptr;
  while (cached_ > bytes) {
    Kept* block = oldest_;
    detach(block);
    block->newer = chain;
    chain = block;
  }
  return chain;
}

}  // namespace taeda::detail
