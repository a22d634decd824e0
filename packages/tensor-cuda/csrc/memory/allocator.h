// The caching allocator: blocks of a device's (or pinned) memory, kept for reuse in a pool per stream.
//
// After section 5.3 of "PyTorch: An Imperative Style, High-Performance Deep Learning Library" (Paszke et al., 2019).
#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/driver.h"
#include "memory/trace.h"

namespace taeda::cuda {

/// "1.50 GiB", for people.
std::string size_text(uint64_t nbytes);

/// How sizes are rounded, and where segments are cut. Sizes in bytes.
struct Policy {
  size_t granule;        // sizes are multiples of it
  size_t small_limit;    // the small pool's blocks are at most this large
  size_t small_segment;  // what the small pool takes from the driver at a time
  size_t large_limit;    // below it, segments of the large pool have ...
  size_t large_segment;  // ... this size; others are as large as what is asked for, ...
  size_t page;           // ... rounded to this
  size_t large_rest;     // a large block is split when more than this is left
};
inline constexpr size_t kMebi = size_t(1) << 20;
inline constexpr Policy kDevicePolicy{512, kMebi, 2 * kMebi, 10 * kMebi, 20 * kMebi, 2 * kMebi, kMebi};
/// Nothing of large buffers is wasted: they are few, live long, and lock the host's memory.
inline constexpr Policy kPinnedPolicy{512, kMebi - 1, 2 * kMebi, 0, 0, 4096, 4096};

/// Where segments come from.
class Source {
 public:
  virtual ~Source() = default;
  virtual Status take(size_t nbytes, Address& address) = 0;
  virtual Status give(Address address) = 0;
  /// Waits for all work that may use the memory.
  virtual Status settle() = 0;
  virtual std::optional<Room> room() = 0;
  // Addresses that memory is put behind, as those of drivers; a source without them is never asked to expand.
  virtual Status reserve(size_t, Address&) { return Status::InvalidValue; }
  virtual Status unreserve(Address, size_t) { return Status::InvalidValue; }
  virtual Status put(Address, size_t) { return Status::InvalidValue; }
  virtual Status take_away(Address, size_t) { return Status::InvalidValue; }
  virtual std::string name() const = 0;
  // Marks in the streams that use a block; a source whose blocks know no streams is never asked.
  virtual Status mark(StreamHandle stream, EventHandle& event) = 0;
  virtual Status reached(EventHandle event, bool wait) = 0;
  virtual void drop(EventHandle event) = 0;
  /// The recording that a stream's work goes to; 0: none. Asked only between begin_private and end_private.
  virtual uint64_t capture_of(StreamHandle) { return 0; }
};

/// Memory that graphs have for themselves, since they run on it again and again; 0 is everybody's.
using PoolNumber = uint64_t;

/// One number that goes up and down, and its history.
struct Count {
  uint64_t current = 0, peak = 0, gained = 0, lost = 0;
  void add(uint64_t n) {
    current += n;
    gained += n;
    peak = peak > current ? peak : current;
  }
  void take(uint64_t n) {
    current -= n;
    lost += n;
  }
};
/// Of one pool, or of both.
struct Counts {
  Count allocations, segments, active;                  // blocks in use; segments; blocks in use or waited for
  Count allocated_bytes, reserved_bytes, active_bytes;  // likewise
  Count requested_bytes;                                // in use, before rounding
};
struct Statistics {
  std::array<Counts, 3> pools;  // all, small, large
  uint64_t retries = 0, out_of_memory = 0, driver_takes = 0, driver_gives = 0, marks = 0;
};

/// One per device. All functions may be called from any thread.
class Allocator {
 public:
  Allocator(std::unique_ptr<Source> source, const Policy& policy);
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  ~Allocator();

  /// Memory for work on `stream`. `text` says why not. `site` is whoever asks, for `holders`; 0: nobody says.
  Status allocate(size_t nbytes, StreamHandle stream, Address& address, std::string& text, uint64_t site = 0);
  /// Takes back what `allocate` gave. Never waits, and never fails: where the driver can make no mark the block is
  /// handed out no more.
  void release(Address address);
  /// Work that is, or will be, in `stream` uses the block around `address`. InvalidValue: there is none in use.
  Status uses(Address address, StreamHandle stream);
  /// Whether uses by a stream have to be noted at all.
  bool watches(StreamHandle stream) const { return several_streams_ || stream != first_stream_; }
  /// The same for every launch and copy: one comparison as long as only one stream has had memory.
  void launched(Address address, StreamHandle stream) {
    if (watches(stream)) uses(address, stream);
  }

  // Note [Private pools]
  // While work is recorded, the memory of its streams comes from a pool of the graph's own. What is free there serves
  // the same recording, and later recordings with the same pool, alone: a graph writes to it whenever it is run. Uses
  // on other streams are not waited for by events meanwhile, since a recorded event is never reached: such blocks wait
  // until no work is recorded any more. Nothing is given back to the driver in that time either.
  /// From now on the memory of a recording's streams comes from a pool, which is kept until `let_go`.
  void begin_private(PoolNumber pool, uint64_t capture);
  void end_private(uint64_t capture);
  /// A graph does without the pool; when the last one does, its segments can be given back, as blocks become free.
  void let_go(PoolNumber pool);

  /// Waits for all work and gives every segment back that has no block in use. InvalidValue: work is being recorded.
  Status empty_cache();
  /// The process takes at most this part of the device's memory, from 0 to 1.
  void set_fraction(double fraction);
  double fraction() const;
  // Note [Segments that expand]
  // A pool then has one segment, whose addresses are reserved for more than the device has, and memory is put behind
  // its end as it grows. Its blocks are all neighbours, so what many sizes leave free between them serves a large one,
  // which segments of fixed sizes do not. What is free at the end is given back, in pieces.
  /// Whether pools that have no segment yet will have one that expands.
  void set_expandable(bool expandable);

  Statistics statistics() const;
  /// Who holds how many bytes, the most first, of those who said who they are.
  std::vector<std::pair<uint64_t, uint64_t>> holders() const;
  void reset_peaks();
  void reset_totals();
  /// Keeps the last so many things that happen; none ends that.
  void keep_trace(uint64_t most);
  /// These, as a JSON list.
  std::string trace() const;
  /// Segments with their blocks, as a JSON list.
  std::string snapshot() const;
  /// Checks that blocks lie end to end in their segments, that neighbours are merged, and that the counts are right.
  /// Says what is wrong; empty where nothing is.
  std::string inconsistency() const;

 private:
  struct Block;
  struct Segment;
  struct Pool;
  struct Lower {
    bool operator()(const Block* a, const Block* b) const;
  };
  struct Pool {
    StreamHandle stream;
    bool small;
    PoolNumber owner;
    std::set<Block*, Lower> free;
    Segment* expanding = nullptr;
  };
  struct Pools {
    Pool small, large;
  };
  enum class State : uint8_t { Free, InUse, Waiting, Lost };
  struct Block {
    Address address;
    size_t size, requested;
    Pool* pool;
    Segment* segment;
    Block *before, *after;  // neighbours in the segment
    State state;
    uint32_t marks;                   // that are not reached yet
    std::vector<StreamHandle> users;  // streams other than its pool's
    uint64_t site = 0;
  };
  struct Segment {
    Address address;
    size_t size;
    Block* first;
    Pool* pool;
    size_t reserved = 0;    // of one that expands
    Block* last = nullptr;  // likewise
  };
  struct Mark {
    EventHandle event;
    Block* block;
  };

  Block* block_with(Address address) const;
  Pool& pool_of(StreamHandle stream, size_t size);
  size_t segment_size(size_t size, bool small) const;
  Block* find_free(Pool& pool, size_t size);
  Status grow(Pool& pool, size_t size, Block*& block);
  Status expand(Pool& pool, size_t size, Block*& block);
  Status shrink(Segment& segment);
  void append(Segment& segment, Block* block);
  Status grow_or_make_room(Pool& pool, size_t size, Block*& block);
  void cut(Block* block, size_t size);
  void make_free(Block* block);
  Block* merge(Block* block, Block* with);
  Status look_at_marks(bool wait);
  bool make_marks(Block* block);
  bool recording() const { return !captures_.empty(); }
  bool is_kept(const Pool& pool) const { return pool.owner != 0 && private_.contains(pool.owner); }
  Status give_segments_back();
  void give_up(Block* block);
  void count(const Pool& pool, Count Counts::* what, uint64_t n, bool up);
  std::string refusal(size_t nbytes) const;
  bool over_limit(size_t more) const;

  const std::unique_ptr<Source> source_;
  const Policy policy_;
  mutable std::mutex lock_;
  std::map<std::pair<PoolNumber, StreamHandle>, std::unique_ptr<Pools>> pools_;
  std::map<uint64_t, PoolNumber> captures_;  // recordings that go on
  std::map<PoolNumber, uint64_t> private_;   // how many graphs use a pool
  std::vector<Block*> unmarked_;             // released while work was recorded, with uses on other streams
  std::map<Address, std::unique_ptr<Segment>> segments_;
  std::unordered_map<Address, Block*> given_;
  std::map<StreamHandle, std::deque<Mark>> marks_;
  std::atomic<bool> several_streams_ = false;
  std::atomic<StreamHandle> first_stream_ = nullptr;  // of the first block that was given
  double fraction_ = 1;
  bool expandable_ = false;
  Statistics statistics_;
  Trace trace_;
};

}  // namespace taeda::cuda
