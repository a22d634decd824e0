// Giving, taking back, splitting and merging blocks.
#include "memory/allocator.h"

#include <algorithm>
#include <limits>

namespace taeda::cuda {
namespace {

size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }
constexpr size_t kLargest = std::numeric_limits<size_t>::max() / 4;

}  // namespace

bool Allocator::Lower::operator()(const Block* a, const Block* b) const {
  return a->size != b->size ? a->size < b->size : a->address < b->address;
}

Allocator::Allocator(std::unique_ptr<Source> source, const Policy& policy)
    : source_(std::move(source)), policy_(policy) {}

Allocator::~Allocator() {
  for (const auto& [stream, marks] : marks_)
    for (const Mark& mark : marks) source_->drop(mark.event);
  for (const auto& [address, segment] : segments_) {
    for (Block* block = segment->first; block;) {
      Block* const after = block->after;
      delete block;
      block = after;
    }
    if (segment->reserved == 0) source_->give(address);
    else {
      if (segment->size > 0) source_->take_away(address, segment->size);
      source_->unreserve(address, segment->reserved);
    }
  }
}

// --- pools ---

Allocator::Pool& Allocator::pool_of(StreamHandle stream, size_t size) {
  PoolNumber owner = 0;
  if (recording())
    if (const auto capture = captures_.find(source_->capture_of(stream)); capture != captures_.end())
      owner = capture->second;
  auto& pools = pools_[{owner, stream}];
  if (!pools) {
    pools = std::make_unique<Pools>(Pools{{stream, true, owner, {}, nullptr}, {stream, false, owner, {}, nullptr}});
    if (pools_.size() == 1) first_stream_ = stream;
    else if (stream != first_stream_) several_streams_ = true;
  }
  return size <= policy_.small_limit ? pools->small : pools->large;
}
size_t Allocator::segment_size(size_t size, bool small) const {
  if (small) return policy_.small_segment;
  return size < policy_.large_limit ? policy_.large_segment : rounded(size, policy_.page);
}
Allocator::Block* Allocator::find_free(Pool& pool, size_t size) {
  Block wanted{};
  wanted.size = size;
  const auto found = pool.free.lower_bound(&wanted);
  if (found == pool.free.end()) return nullptr;
  Block* const block = *found;
  pool.free.erase(found);
  return block;
}
void Allocator::count(const Pool& pool, Count Counts::* what, uint64_t n, bool up) {
  for (Counts* counts : {&statistics_.pools[0], &statistics_.pools[pool.small ? 1 : 2]})
    up ? (counts->*what).add(n) : (counts->*what).take(n);
}

// --- taking memory from the driver ---

bool Allocator::over_limit(size_t more) const {
  if (fraction_ >= 1) return false;
  const auto room = source_->room();
  return room && double(statistics_.pools[0].reserved_bytes.current + more) > fraction_ * double(room->total);
}
Status Allocator::grow(Pool& pool, size_t size, Block*& block) {
  if (expandable_ || pool.expanding) return expand(pool, size, block);
  const size_t nbytes = segment_size(size, pool.small);
  if (over_limit(nbytes)) return Status::OutOfMemory;
  Address address = 0;
  ++statistics_.driver_takes;
  if (const Status status = source_->take(nbytes, address); status != Status::Ok) return status;
  auto segment = std::make_unique<Segment>(Segment{address, nbytes, nullptr, &pool});
  block = new Block{address, nbytes, 0, &pool, segment.get(), nullptr, nullptr, State::Free, 0, {}, 0};
  segment->first = block;
  segments_[address] = std::move(segment);
  trace_.note("segment_alloc", address, nbytes, pool.stream);
  count(pool, &Counts::segments, 1, true);
  count(pool, &Counts::reserved_bytes, nbytes, true);
  return Status::Ok;
}
/// See Note [Segments that expand].
Status Allocator::expand(Pool& pool, size_t size, Block*& block) {
  if (!pool.expanding) {
    const auto room = source_->room();
    if (!room) return Status::InvalidValue;
    const size_t reserved = rounded(size_t(room->total) + size_t(room->total) / 8, kMemoryPiece);
    Address address = 0;
    if (const Status status = source_->reserve(reserved, address); status != Status::Ok) return status;
    auto segment = std::make_unique<Segment>(Segment{address, 0, nullptr, &pool, reserved});
    pool.expanding = segment.get();
    segments_[address] = std::move(segment);
    count(pool, &Counts::segments, 1, true);
  }
  Segment& segment = *pool.expanding;
  const size_t there = segment.last && segment.last->state == State::Free ? segment.last->size : 0;
  const size_t more = rounded(size - there, pool.small ? policy_.small_segment : policy_.large_segment);
  if (segment.size + more > segment.reserved || over_limit(more)) return Status::OutOfMemory;
  ++statistics_.driver_takes;
  if (const Status status = source_->put(segment.address + segment.size, more); status != Status::Ok) return status;
  block = new Block{segment.address + segment.size, more, 0, &pool, &segment, nullptr, nullptr, State::Free, 0, {}, 0};
  append(segment, block);
  trace_.note("segment_map", block->address, more, pool.stream);
  segment.size += more;
  count(pool, &Counts::reserved_bytes, more, true);
  block = merge(block, block->before);
  return Status::Ok;
}
void Allocator::append(Segment& segment, Block* block) {
  block->before = segment.last;
  (segment.last ? segment.last->after : segment.first) = block;
  segment.last = block;
}
/// Gives back what is free at the end, in whole pieces.
Status Allocator::shrink(Segment& segment) {
  Block* const last = segment.last;
  if (!last || last->state != State::Free) return Status::Ok;
  const size_t kept = rounded(last->address - segment.address, kMemoryPiece),
               given = segment.size - std::min(kept, segment.size);
  if (given == 0) return Status::Ok;
  ++statistics_.driver_gives;
  if (const Status status = source_->take_away(segment.address + kept, given); status != Status::Ok) return status;
  trace_.note("segment_unmap", segment.address + kept, given, segment.pool->stream);
  segment.pool->free.erase(last);
  last->size -= given;
  segment.size -= given;
  count(*segment.pool, &Counts::reserved_bytes, given, false);
  if (last->size > 0) {
    segment.pool->free.insert(last);
    return Status::Ok;
  }
  segment.last = last->before;
  (segment.last ? segment.last->after : segment.first) = nullptr;
  delete last;
  return Status::Ok;
}
Status Allocator::grow_or_make_room(Pool& pool, size_t size, Block*& block) {
  Status status = grow(pool, size, block);
  if (status != Status::OutOfMemory || recording()) return status;  // nobody can wait for work that is recorded
  ++statistics_.retries;
  if (status = look_at_marks(true); status != Status::Ok) return status;
  if ((block = find_free(pool, size))) return Status::Ok;
  if (status = give_segments_back(); status != Status::Ok) return status;
  return grow(pool, size, block);
}
Status Allocator::give_segments_back() {
  if (const Status status = source_->settle(); status != Status::Ok) return status;
  for (auto at = segments_.begin(); at != segments_.end();) {
    Block* const block = at->second->first;
    if (at->second->reserved > 0) {
      if (!is_kept(*at->second->pool))
        if (const Status status = shrink(*at->second); status != Status::Ok) return status;
      ++at;
      continue;
    }
    if (block->state != State::Free || block->after || is_kept(*block->pool)) {
      ++at;
      continue;
    }
    ++statistics_.driver_gives;
    if (const Status status = source_->give(at->first); status != Status::Ok) return status;
    trace_.note("segment_free", at->first, at->second->size, block->pool->stream);
    block->pool->free.erase(block);
    count(*block->pool, &Counts::segments, 1, false);
    count(*block->pool, &Counts::reserved_bytes, block->size, false);
    delete block;
    at = segments_.erase(at);
  }
  return Status::Ok;
}
Status Allocator::empty_cache() {
  const std::lock_guard held(lock_);
  if (recording()) return Status::InvalidValue;
  const Status status = look_at_marks(true);
  return status == Status::Ok ? give_segments_back() : status;
}

// --- giving blocks ---

void Allocator::cut(Block* block, size_t size) {
  const size_t rest = block->size - size;
  if (block->pool->small ? rest < policy_.granule : rest <= policy_.large_rest) return;
  auto* const left = new Block{
      block->address + size, rest, 0, block->pool, block->segment, block, block->after, State::Free, 0, {}, 0};
  if (left->after) left->after->before = left;
  block->after = left;
  if (block->segment->last == block) block->segment->last = left;
  block->size = size;
  left->pool->free.insert(left);
}
Status Allocator::allocate(size_t nbytes, StreamHandle stream, Address& address, std::string& text, uint64_t site) {
  const std::lock_guard held(lock_);
  Block* block = nullptr;
  Status status = Status::OutOfMemory;
  if (nbytes < kLargest) {
    const size_t size = rounded(std::max<size_t>(nbytes, 1), policy_.granule);
    Pool& pool = pool_of(stream, size);
    status = look_at_marks(false);
    if (status == Status::Ok && !(block = find_free(pool, size))) status = grow_or_make_room(pool, size, block);
    if (block) cut(block, size);
  }
  if (!block) {
    if (status == Status::OutOfMemory) {
      ++statistics_.out_of_memory, text = refusal(nbytes);
      trace_.note("oom", 0, nbytes, stream, site);
    }
    return status;
  }
  block->state = State::InUse;
  block->requested = nbytes;
  block->site = site;
  given_[block->address] = block;
  const Pool& pool = *block->pool;
  count(pool, &Counts::allocations, 1, true);
  count(pool, &Counts::active, 1, true);
  count(pool, &Counts::allocated_bytes, block->size, true);
  count(pool, &Counts::active_bytes, block->size, true);
  count(pool, &Counts::requested_bytes, nbytes, true);
  address = block->address;
  trace_.note("alloc", address, nbytes, stream, site);
  return Status::Ok;
}

// --- taking blocks back ---

Allocator::Block* Allocator::block_with(Address address) const {
  if (const auto exact = given_.find(address); exact != given_.end()) return exact->second;
  auto segment = segments_.upper_bound(address);
  if (segment == segments_.begin()) return nullptr;
  Block* block = (--segment)->second->first;
  while (block && address >= block->address + block->size) block = block->after;
  return block;
}

Status Allocator::uses(Address address, StreamHandle stream) {
  const std::lock_guard held(lock_);
  Block* const found = block_with(address);
  if (!found || found->state != State::InUse) return Status::InvalidValue;
  Block& block = *found;
  if (stream != block.pool->stream && std::ranges::find(block.users, stream) == block.users.end())
    block.users.push_back(stream);
  return Status::Ok;
}
void Allocator::release(Address address) {
  const std::lock_guard held(lock_);
  const auto found = given_.find(address);
  if (found == given_.end()) return;
  Block* const block = found->second;
  given_.erase(found);
  count(*block->pool, &Counts::allocations, 1, false);
  count(*block->pool, &Counts::allocated_bytes, block->size, false);
  count(*block->pool, &Counts::requested_bytes, block->requested, false);
  block->state = State::Waiting;
  trace_.note("free_requested", address, block->requested, block->pool->stream, block->site);
  if (!block->users.empty() && recording()) return unmarked_.push_back(block);
  if (make_marks(block) && block->marks == 0) make_free(block);
}
/// Lets a block wait for its users; false: nobody can.
bool Allocator::make_marks(Block* block) {
  for (const StreamHandle user : block->users) {
    EventHandle event = nullptr;
    ++statistics_.marks;
    if (source_->mark(user, event) != Status::Ok) return give_up(block), false;
    ++block->marks;
    marks_[user].push_back({event, block});
  }
  block->users.clear();
  return true;
}
/// Nobody can say when the block's users are done with it. Marks that were made find it lost.
void Allocator::give_up(Block* block) {
  block->state = State::Lost;
  block->users.clear();
}
void Allocator::make_free(Block* block) {
  count(*block->pool, &Counts::active, 1, false);
  count(*block->pool, &Counts::active_bytes, block->size, false);
  block->state = State::Free;
  trace_.note("free_completed", block->address, block->requested, block->pool->stream, block->site);
  block->requested = 0;
  block = merge(block, block->before);
  block = merge(block, block->after);
  block->pool->free.insert(block);
}
Allocator::Block* Allocator::merge(Block* block, Block* with) {
  if (!with || with->state != State::Free) return block;
  with->pool->free.erase(with);
  Block* const left = with->address < block->address ? with : block;
  Block* const right = left == with ? block : with;
  left->size += right->size;
  left->after = right->after;
  if (left->after) left->after->before = left;
  if (left->segment->last == right) left->segment->last = left;
  delete right;
  return left;
}
Status Allocator::look_at_marks(bool wait) {
  if (recording()) return Status::Ok;  // a question to the driver may break the recording
  for (auto& [stream, marks] : marks_) {
    while (!marks.empty()) {
      const Mark mark = marks.front();
      const Status status = source_->reached(mark.event, wait);
      if (status == Status::NotReady) break;  // those behind it are not either
      if (status != Status::Ok) return status;
      marks.pop_front();
      source_->drop(mark.event);
      if (--mark.block->marks == 0 && mark.block->state == State::Waiting) make_free(mark.block);
    }
  }
  return Status::Ok;
}

// --- memory of graphs ---

void Allocator::begin_private(PoolNumber pool, uint64_t capture) {
  const std::lock_guard held(lock_);
  captures_[capture] = pool;
  ++private_[pool];
}
void Allocator::end_private(uint64_t capture) {
  const std::lock_guard held(lock_);
  captures_.erase(capture);
  if (recording()) return;
  for (Block* const block : unmarked_) make_marks(block);
  unmarked_.clear();
}
void Allocator::let_go(PoolNumber pool) {
  const std::lock_guard held(lock_);
  if (const auto found = private_.find(pool); found != private_.end() && --found->second == 0) private_.erase(found);
}

// --- settings ---

void Allocator::set_fraction(double fraction) {
  const std::lock_guard held(lock_);
  fraction_ = fraction;
}
void Allocator::keep_trace(uint64_t most) {
  const std::lock_guard held(lock_);
  trace_.keep(most);
}
void Allocator::set_expandable(bool expandable) {
  const std::lock_guard held(lock_);
  expandable_ = expandable;
}
double Allocator::fraction() const {
  const std::lock_guard held(lock_);
  return fraction_;
}

}  // namespace taeda::cuda
