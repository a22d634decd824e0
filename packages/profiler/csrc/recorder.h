// What is recorded of each thread while a profile runs: events of 24 bytes, uses of memory, and what they refer to.
#pragma once
#include <Python.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "taeda/abi.h"

namespace profiler {

extern const taeda_api* api;

/// Nanoseconds of the clock that Python's time.perf_counter_ns shows too.
int64_t now() noexcept;

/// Note [Ticks]
/// Where the kernel itself tells time by the processor's counter, events read that directly, which takes a third of the
/// time of asking for nanoseconds. Ticks become nanoseconds when a recording ends, by the two times that have passed
/// on both clocks since this library was loaded.
extern const bool counts_ticks;
inline int64_t ticks() noexcept {
#ifdef __x86_64__
  if (counts_ticks) [[likely]]
    return int64_t(__builtin_ia32_rdtsc());
#endif
  return now();
}
/// Nanoseconds of one tick.
double tick_length() noexcept;

struct Options {
  bool shapes = false, memory = false, stacks = false, devices = false;
  /// Operators whose arguments are kept as a whole, by plain name.
  std::unordered_set<std::string> whole;
  int64_t max_bytes = 0;
};

/// Note [Events]
/// Times are ticks since the beginning of the session and have 48 bits, a day. An event is written when it begins;
/// its length comes when it ends. Whoever reads the buffer of a thread that still runs sees whole words: all are
/// atomic.
class Event {
 public:
  static constexpr uint64_t kOpen = (uint64_t(1) << 48) - 1;
  static constexpr uint32_t kMaxName = (1 << 24) - 1;

  void begin(int64_t at, uint32_t name, uint32_t kind, uint32_t detail) noexcept {
    words_[0].store(uint64_t(at) & kOpen | uint64_t(name & 0xffff) << 48, std::memory_order_relaxed);
    words_[1].store(kOpen | uint64_t(name >> 16) << 48 | uint64_t(kind) << 56, std::memory_order_relaxed);
    words_[2].store(detail, std::memory_order_relaxed);
  }
  void end(int64_t at, uint32_t sequence, bool failed) noexcept {
    const uint64_t length = uint64_t(at) - start();
    words_[1].store(word(1) & ~kOpen | (length < kOpen ? length : kOpen - 1) | uint64_t(failed) << 63,
                    std::memory_order_relaxed);
    words_[2].store(word(2) & 0xffffffff | uint64_t(sequence) << 32, std::memory_order_relaxed);
  }
  uint64_t start() const noexcept { return word(0) & kOpen; }
  uint64_t length() const noexcept { return word(1) & kOpen; }
  uint32_t name() const noexcept { return uint32_t(word(0) >> 48 | (word(1) >> 48 & 0xff) << 16); }
  uint32_t kind() const noexcept { return uint32_t(word(1) >> 56) & 0x7f; }
  bool failed() const noexcept { return word(1) >> 63; }
  uint32_t sequence() const noexcept { return uint32_t(word(2) >> 32); }
  uint32_t detail() const noexcept { return uint32_t(word(2)); }

 private:
  uint64_t word(int i) const noexcept { return words_[i].load(std::memory_order_relaxed); }
  std::atomic<uint64_t> words_[3];
};
static_assert(sizeof(Event) == 24);

/// Kind of an event: an operator, or 1 more than a TAEDA_SPAN_*.
inline constexpr uint32_t kOperator = 0;
inline constexpr uint32_t kNone = UINT32_MAX;

struct MemoryEvent {
  int64_t at;
  uint64_t address;
  int64_t bytes;
  uint32_t event;   // the innermost one of its thread, or kNone
  uint32_t device;  // backend in the upper half, index in the lower
};

/// Work that a thread has handed to a device: `origin` stands in what the device tells of it.
struct Work {
  uint64_t origin;
  int64_t at;
  uint32_t event;  // the innermost one of its thread, or kNone
};

/// What a device did, as its backend tells it; times are nanoseconds since the beginning of the session.
struct Activity {
  int64_t begin, length;
  uint64_t stream, origin;
  int64_t bytes;
  uint32_t name, device;  // as of MemoryEvent
  uint8_t kind;           // TAEDA_ACTIVITY_*
};

/// Note [Paths]
/// From one event to the next most of the frames stay as they are. So a thread keeps the path that it found last, from
/// the outermost frame on, and looks for the place of a frame only from where the two part.
struct Step {
  PyCodeObject* code;
  int instruction;
  uint32_t place;
};
using Path = std::vector<Step>;

class Session;

/// A list that one thread extends and another may read meanwhile, in chunks that stay where they are.
template <class T>
class Chunks {
 public:
  // A chunk comes from the heap, where memory is used again, not straight from the system page by page.
  static constexpr size_t kRoom = 1024;
  ~Chunks() {
    for (Chunk* chunk = first_; chunk;) delete std::exchange(chunk, chunk->next.load());
  }
  /// The place of a further item; null when the session has no room left.
  T* extend(Session& session);
  /// The item that was given out last is there.
  void publish() noexcept { size_.store(size_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  template <class Visit>
  void each(const Visit& visit) const {
    size_t left = size();
    for (const Chunk* chunk = first_.load(); left; chunk = chunk->next.load())
      for (size_t i = 0; i < kRoom && left; ++i, --left) visit(chunk->items[i]);
  }

 private:
  struct Chunk {
    T items[kRoom];
    std::atomic<Chunk*> next{nullptr};
  };
  std::atomic<Chunk*> first_{nullptr};
  Chunk* last_ = nullptr;
  std::atomic<size_t> size_{0};
};

/// Note [Details]
/// What events of one kind share is kept once for each thread: [stack, how arguments are told, arguments...]. Each
/// argument is `kind << 32 | count` and its words; of a tensor the count is its dimensions, and `element type << 16`
/// stands beside it.

/// A list of words that is being written.
class Words {
 public:
  /// Room for further words.
  int64_t* extend(size_t count) {
    if (used_ + count > room_.size()) [[unlikely]]
      room_.resize(2 * (used_ + count));
    return room_.data() + std::exchange(used_, used_ + count);
  }
  void clear() noexcept { used_ = 0; }
  const int64_t* data() const noexcept { return room_.data(); }
  size_t size() const noexcept { return used_; }

 private:
  std::vector<int64_t> room_ = std::vector<int64_t>(64);
  size_t used_ = 0;
};

/// Lists of words, each kept once; number 0 is the empty list.
class WordLists {
 public:
  WordLists();
  uint32_t number(const int64_t* words, size_t count);
  bool is(uint32_t number, const int64_t* words, size_t count) const noexcept {
    if (count_of(number) != count) return false;
    const int64_t* const known = begin_of(number);  // a few words, for which a call of memcmp is long
    int64_t differ = 0;
    for (size_t i = 0; i < count; ++i) differ |= known[i] ^ words[i];
    return differ == 0;
  }
  size_t size() const noexcept { return places_.size(); }
  const int64_t* begin_of(uint32_t number) const noexcept { return words_.data() + places_[number].first; }
  size_t count_of(uint32_t number) const noexcept { return places_[number].second; }

 private:
  void grow();
  std::vector<int64_t> words_;
  std::vector<std::pair<size_t, uint32_t>> places_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> table_;  // numbers plus 1, 0 where free
};

/// What one thread records. Only that thread writes.
class Thread {
 public:
  Thread(std::shared_ptr<Session> session, uint32_t number);

  void call_begins(const taeda_observed* call) noexcept;
  void call_ends(const taeda_observed* call) noexcept;
  void span_begins(const taeda_span* span) noexcept;
  void span_ends(const taeda_span* span) noexcept;
  void use(const taeda_memory_use* use) noexcept;
  void hands_over(uint64_t origin) noexcept;
  bool over() const noexcept;

  const std::shared_ptr<Session> session;
  const uint32_t number;
  const uint64_t system_id;
  uint64_t registration = 0;
  Chunks<Event> events;
  Chunks<MemoryEvent> memory;
  Chunks<Work> works;
  WordLists details;
  std::atomic<uint64_t> dropped{0};

 private:
  struct Open {
    Event* event;  // null: it was dropped
    uint32_t index, name, kind, stack, sequence;
  };
  struct Operator {
    uint32_t name;
    bool whole;
  };
  // What was looked up last, by address: most calls and spans find their names here.
  struct NearOperator {
    taeda_op op = nullptr;
    Operator found{};
  };
  struct NearSpan {
    const char* address = nullptr;
    std::string text;
    uint32_t name = 0;
  };
  using NearDetails = uint32_t[2];
  NearOperator& operator_of(taeda_op op);
  Operator look_up(taeda_op op);
  NearSpan& span_of(const char* name);
  uint32_t look_up(const std::string& name);
  uint32_t detail_of(const taeda_observed* call, NearOperator& op, uint32_t stack);
  /// Begins the detail anew.
  void start_detail(uint32_t stack, bool whole);
  uint32_t keep_detail(NearDetails& near);
  uint32_t stack_here();
  /// Whether this thread holds Python's lock.
  bool in_python() noexcept;
  void begins(const Open& open, uint32_t detail) noexcept;
  void close(int64_t at, uint32_t sequence, bool failed) noexcept;

  std::vector<Open> open_;
  int64_t last_ = 0;  // when an event last began or ended
  Words detail_;
  Path path_;
  const PyThreadState* python_ = nullptr;  // with which this thread held Python's lock last
  const unsigned long ident_ = PyThread_get_thread_ident();
  bool details_full_ = false;
  std::unordered_map<const void*, Operator> operators_;
  std::unordered_map<std::string, uint32_t> spans_;
  static constexpr size_t kNear = 256;
  static size_t near(const void* address) noexcept { return (reinterpret_cast<uintptr_t>(address) >> 4) % kNear; }
  static size_t near(const void* address, uint32_t stack) noexcept {
    return ((reinterpret_cast<uintptr_t>(address) >> 4) + stack * 37) % kNear;
  }
  NearOperator near_operators_[kNear];
  NearSpan near_spans_[kNear];
  NearDetails near_details_[kNear] = {};  // of the last calls of an operator, or the last spans, at a place
};

/// Places in Python programs, a tree of (caller, code, instruction); number 0 is no place. Needs Python's lock.
class Stacks {
 public:
  ~Stacks();
  /// Where the calling thread is; `path` is what it found last.
  uint32_t here(Path& path);
  /// [(caller, file, function, line)]
  PyObject* list() const;

 private:
  struct Node {
    uint32_t caller;
    int instruction;
    PyCodeObject* code;
    friend bool operator==(const Node&, const Node&) = default;
  };
  uint32_t place_of(const Node& node);
  struct Hash {
    size_t operator()(const Node& node) const noexcept {
      uint64_t h = reinterpret_cast<uint64_t>(node.code) * 0x9e3779b97f4a7c15u;
      h ^= (uint64_t(node.caller) << 32 | uint32_t(node.instruction)) * 0xd6e8feb86659fd93u;
      return h ^ h >> 29;
    }
  };
  // What was looked up last.
  struct Near {
    Node node{0, 0, nullptr};
    uint32_t place = 0;
  };
  static constexpr size_t kNear = 1024;
  std::vector<Near> near_ = std::vector<Near>(kNear);
  std::vector<Node> nodes_{{0, 0, nullptr}};
  std::unordered_map<Node, uint32_t, Hash> numbers_;
};

/// One recording, from start to stop.
class Session {
 public:
  explicit Session(const Options& options);

  const Options options;
  const int64_t started, started_ticks;  // the first in nanoseconds
  int64_t stopped = 0;
  std::vector<Activity> activities;
  uint64_t activities_dropped = 0;
  std::string devices_failed;  // what a device said that could not tell what it did
  std::atomic<bool> recording{true};
  std::atomic<int64_t> left;  // bytes

  bool take(int64_t bytes) noexcept {
    if (left.fetch_sub(bytes, std::memory_order_relaxed) >= bytes) return true;
    left.fetch_add(bytes, std::memory_order_relaxed);
    return false;
  }
  uint32_t name(const std::string& text, const char* schema);
  std::vector<std::shared_ptr<Thread>> threads() const;
  std::shared_ptr<Thread> new_thread(const std::shared_ptr<Session>& self);
  void forget_threads();
  /// Devices note what they do; gives a status of the C ABI.
  int32_t start_devices();
  void stop_devices();
  void note(const taeda_activity* told) noexcept;

  Stacks stacks;
  struct Name {
    std::string text, schema;
  };
  std::vector<Name> names() const;

 private:
  mutable std::mutex lock_;
  std::vector<std::shared_ptr<Thread>> threads_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<Name> names_;
};

template <class T>
T* Chunks<T>::extend(Session& session) {
  const size_t place = size_.load(std::memory_order_relaxed) % kRoom;
  if (place == 0) {
    if (!session.take(sizeof(Chunk))) return nullptr;
    Chunk* fresh = new (std::nothrow) Chunk;
    if (!fresh) return nullptr;
    (last_ ? last_->next : first_).store(fresh);
    last_ = fresh;
  }
  return &last_->items[place];
}

/// The calling thread records for a session from now on.
void join(const std::shared_ptr<Session>& session);
/// The calling thread records no longer.
void leave() noexcept;

}  // namespace profiler
