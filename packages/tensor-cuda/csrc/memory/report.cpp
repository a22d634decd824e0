// What the allocator says of itself: statistics, snapshot, the text of an error, and whether it is in order.
#include <algorithm>
#include <cstdio>

#include "memory/allocator.h"

namespace taeda::cuda {
namespace {

constexpr Count Counts::* kCounts[] = {&Counts::allocations,     &Counts::segments,       &Counts::active,
                                       &Counts::allocated_bytes, &Counts::reserved_bytes, &Counts::active_bytes,
                                       &Counts::requested_bytes};

}  // namespace

std::string size_text(uint64_t n) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = double(n);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}
namespace {

template <class... Part>
std::string joined(const Part&... part) {
  return (std::string() + ... + part);
}

}  // namespace

std::string Allocator::refusal(size_t nbytes) const {
  const Counts& all = statistics_.pools[0];
  const uint64_t used = all.allocated_bytes.current, reserved = all.reserved_bytes.current;
  std::string text = joined(source_->name(), ": out of memory: tried to allocate ", size_text(nbytes));
  if (const auto room = source_->room()) {
    const uint64_t taken = room->total - room->free;
    text += joined("; of ", size_text(room->total), " are free ", size_text(room->free), ", others hold ",
                   size_text(taken > reserved ? taken - reserved : 0));
    if (fraction_ < 1) text += joined(", this process may take ", size_text(uint64_t(fraction_ * double(room->total))));
  }
  text += joined("; this process holds ", size_text(reserved), ": ", size_text(used), " in tensors, ",
                 size_text(reserved - used), " kept for reuse");
  uint64_t graphs = 0;
  for (const auto& [address, segment] : segments_) graphs += is_kept(*segment->pool) ? segment->size : 0;
  if (graphs > 0) text += joined("; of it ", size_text(graphs), " are private to graphs");
  return recording() ? text + "; work is being recorded, so nothing can be given back" : text;
}

Statistics Allocator::statistics() const {
  const std::lock_guard held(lock_);
  return statistics_;
}
std::vector<std::pair<uint64_t, uint64_t>> Allocator::holders() const {
  const std::lock_guard held(lock_);
  std::map<uint64_t, uint64_t> bytes;
  for (const auto& [address, block] : given_)
    if (block->site) bytes[block->site] += block->size;
  std::vector<std::pair<uint64_t, uint64_t>> sorted(bytes.begin(), bytes.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}
void Allocator::reset_peaks() {
  const std::lock_guard held(lock_);
  for (Counts& counts : statistics_.pools)
    for (const auto what : kCounts) (counts.*what).peak = (counts.*what).current;
}
void Allocator::reset_totals() {
  const std::lock_guard held(lock_);
  for (Counts& counts : statistics_.pools)
    for (const auto what : kCounts) (counts.*what).gained = (counts.*what).lost = 0;
  statistics_.retries = statistics_.out_of_memory = 0;
}

std::string Allocator::trace() const {
  const std::lock_guard held(lock_);
  return trace_.text();
}
std::string Allocator::snapshot() const {
  static constexpr const char* kStates[] = {"inactive", "active_allocated", "active_pending_free", "lost"};
  const std::lock_guard held(lock_);
  std::string text = "[";
  for (const auto& [address, segment] : segments_) {
    const Pool& pool = *segment->pool;
    text += joined(text.size() > 1 ? ", " : "", "{\"address\": ", std::to_string(address),
                   ", \"total_size\": ", std::to_string(segment->size),
                   ", \"stream\": ", std::to_string(uintptr_t(pool.stream)), ", \"segment_pool_id\": [0, ",
                   std::to_string(pool.owner), "], \"is_expandable\": ", segment->reserved ? "true" : "false",
                   ", \"segment_type\": ", pool.small ? "\"small\"" : "\"large\"", ", \"blocks\": [");
    for (const Block* block = segment->first; block; block = block->after)
      text += joined(block->before ? ", " : "", "{\"address\": ", std::to_string(block->address),
                     ", \"size\": ", std::to_string(block->size),
                     ", \"requested_size\": ", std::to_string(block->requested), ", \"state\": \"",
                     kStates[size_t(block->state)],
                     "\", \"site\": ", std::to_string(block->state == State::InUse ? block->site : 0), "}");
    text += "]}";
  }
  return text + "]";
}

std::string Allocator::inconsistency() const {
  const std::lock_guard held(lock_);
  uint64_t reserved = 0, used = 0, active = 0, free_blocks = 0, in_pools = 0;
  for (const auto& [address, segment] : segments_) {
    Address expected = address;
    for (const Block* block = segment->first; block; block = block->after) {
      const bool is_free = block->state == State::Free;
      if (block->address != expected) return "a block does not begin where the one before it ends";
      if (block->after && block->after->before != block) return "neighbours do not know each other";
      if (is_free && block->after && block->after->state == State::Free) return "free neighbours were not merged";
      if (is_free != (block->pool->free.count(const_cast<Block*>(block)) == 1)) return "a pool and a block disagree";
      if ((block->state == State::InUse) != given_.contains(block->address)) return "a block's use is not known";
      expected += block->size;
      reserved += block->size;
      used += block->state == State::InUse ? block->size : 0;
      active += is_free ? 0 : block->size;
      free_blocks += is_free;
    }
    if (segment->reserved && segment->last && segment->last->after) return "the last block has one behind it";
    if (expected != address + segment->size) return "blocks do not fill their segment";
  }
  for (const auto& [stream, pools] : pools_) in_pools += pools->small.free.size() + pools->large.free.size();
  const Counts& all = statistics_.pools[0];
  if (in_pools != free_blocks) return "a pool has blocks that no segment has";
  if (reserved != all.reserved_bytes.current) return "reserved bytes are miscounted";
  if (used != all.allocated_bytes.current) return "allocated bytes are miscounted";
  if (active != all.active_bytes.current) return "active bytes are miscounted";
  return "";
}

}  // namespace taeda::cuda
