// CUPTI, from NVIDIA's library, opened when a profiler first asks what devices do.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/activities.h"
#include "driver/libraries.h"

namespace taeda::cuda {

struct CuptiRecord;

/// Note [Activities by CUPTI]
/// CUPTI fills buffers, which it asks for and hands back on threads of its own, with a record for each kernel, copy and
/// fill. A record bears a number of the driver's call; around each call that hands work over a number of the profiler's
/// is pushed, and further records say which of the driver's calls were made under it. The two meet when all is known,
/// at the end. Times are CUPTI's, which are put on the host's clock by two moments at which both were read.
class Cupti {
 public:
  Cupti();
  ~Cupti();

  /// Whether there is a library; opens it at the first call.
  bool there();
  /// Its path; where there is none, what was looked for.
  std::string description();

  /// Notes what devices do from now on. Where that cannot be, `stop` says why.
  void start(uint64_t most);
  bool notes() const noexcept { return noted_.on(); }
  /// The calling thread's calls of the driver come from `origin`, until `pop`.
  void push(uint64_t origin);
  void pop();
  /// Ends that; the work is done. `contexts` are the devices', null where one was not used. Empty, or why nothing is
  /// known.
  std::string stop(const std::vector<void*>& contexts, std::vector<Activity>& noted, uint64_t& dropped);

 private:
  struct Table;
  struct Moment {
    int64_t host = 0;
    uint64_t cupti = 0;
  };
  const Table& functions();
  std::string enable();
  void disable();
  std::string text_of(const char* what, int status);
  Moment moment();
  static void requested(uint8_t** buffer, size_t* size, size_t* most);
  static void completed(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
  void read(void* context, uint8_t* buffer, size_t valid);
  void read(const CuptiRecord& record);
  void keep(Activity activity, uint64_t begin, uint64_t end, uint32_t stream, uint32_t correlation);
  std::string plain_name(const char* name);

  LateLibrary library_;
  std::shared_ptr<Table> table_;
  Activities noted_;  // with CUPTI's times, and the number of the driver's call as origin
  std::mutex lock_;
  std::unordered_map<uint32_t, uint64_t> origins_;  // by numbers of calls
  uint64_t most_ = 0;
  std::string trouble_;
  Moment begin_;
};

/// While it lives, what the calling thread asks of the driver comes from one call of the program.
class FromCall {
 public:
  explicit FromCall(Cupti& cupti) : cupti_(cupti.notes() ? &cupti : nullptr) {
    const uint64_t origin = cupti_ ? work_origin() : 0;
    if (!origin) cupti_ = nullptr;
    if (cupti_) cupti_->push(origin);
  }
  ~FromCall() {
    if (cupti_) cupti_->pop();
  }
  FromCall(const FromCall&) = delete;
  FromCall& operator=(const FromCall&) = delete;

 private:
  Cupti* cupti_;
};

}  // namespace taeda::cuda
