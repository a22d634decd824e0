// What devices did while a profiler asked for it: notes, and the number of the call that work came from.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace taeda::cuda {

/// A stretch of time in which a stream worked. Kinds are TAEDA_ACTIVITY_*, times nanoseconds of the host's steady
/// clock.
struct Activity {
  const char* name = "";
  int kind = 0, device = 0;
  uint64_t stream = 0;  // 0: the default one
  int64_t begin = 0, end = 0;
  uint64_t origin = 0;  // of `work_origin`, where the work was handed over
  int64_t bytes = 0;
};

/// What is known of work when it is handed over. Without a name nobody is told of it.
struct Handed {
  const char* name = nullptr;
  int kind = 0;
  int64_t bytes = 0;
  uint64_t origin = 0;
};

/// What was noted since `start`, so many activities at most. Any thread may note.
class Activities {
 public:
  void start(uint64_t most);
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  /// The name is copied.
  void note(Activity activity);
  /// So many more were not noted.
  void drop(uint64_t count);
  /// Ends that. Names live as long as this object.
  std::vector<Activity> stop(uint64_t& dropped);

 private:
  std::atomic<bool> on_ = false;
  std::mutex lock_;
  uint64_t most_ = 0, dropped_ = 0;
  std::vector<Activity> noted_;
  std::unordered_set<std::string> names_;
};

/// Nanoseconds of the host's steady clock.
int64_t host_time();

/// Where numbers of calls come from; the plug-in sets it. Null: there are none.
extern std::atomic<uint64_t (*)()> origin_source;
/// A new number for what the calling thread hands over now, which its observers are told; 0 where nobody watches.
uint64_t work_origin();
/// While it lives, what the calling thread hands over comes from a call of another thread.
class HandedOn {
 public:
  explicit HandedOn(uint64_t origin);
  ~HandedOn();
  HandedOn(const HandedOn&) = delete;
  HandedOn& operator=(const HandedOn&) = delete;
};

/// Memory that a copy reads or writes, as CUPTI numbers its kinds.
enum class Side : uint8_t { Pageable = 1, Pinned = 2, Device = 3 };
/// Name of a copy as other profilers give it: "Memcpy HtoD (Pageable -> Device)".
std::string copy_name(Side from, Side to, bool between_devices = false);

}  // namespace taeda::cuda
