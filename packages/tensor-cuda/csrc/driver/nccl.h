// NCCL, from NVIDIA's library, opened when processes first work together on their devices.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver/driver.h"
#include "driver/libraries.h"
#include "driver/nccl_functions.h"

namespace taeda::cuda {

/// Status numbers of NCCL lie above cuSOLVER's.
inline constexpr int kFirstNcclStatus = 500'000;

/// What several devices do together, one of each process.
enum class Together : int { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, Send, Receive };
struct Collective {
  Together what;
  Address from, to;
  uint64_t count;
  int dtype;      // of ours, one that the library has
  int reduction;  // ncclRedOp_t
  int peer;       // the root, or the other one
};

/// Note [Communicators that do not block]
/// Calls of the library come back at once, and say that they are in progress; how far they are is asked of the
/// communicator. So a process that waits for others can stop waiting: after a limit, or since another thread has
/// aborted the communicator, which ends what runs on the device too. `settle` waits so; its status NotReady says that
/// the limit has passed. Calls of one membership take turns; after its end they are invalid, whoever makes them.
class Nccl {
 public:
  /// One device's place among others. It stays as long as the library does.
  struct Member {
    void* communicator = nullptr;  // null: it has ended
    std::mutex lock;
  };
  Nccl();
  ~Nccl();

  /// Whether there is a library; opens it at the first call.
  bool there();
  /// Its path; where there is none, what was looked for.
  std::string description();
  /// 22803 for 2.28.3.
  int version();
  Status unique_id(NcclId& id);
  Status join(const NcclId& id, int rank, int size, double seconds, Member*& member);
  /// Between the two calls are begun together; they belong to the calling thread.
  Status begin_group();
  Status end_group();
  Status begin(Member& member, const Collective& collective, StreamHandle stream);
  /// Waits until what was called is on its way.
  Status settle(Member& member, double seconds);
  /// What went wrong meanwhile; NotReady while something is in progress.
  Status state(Member& member);
  /// Ends it after its work.
  Status leave(Member& member, double seconds);
  /// Ends it at once, and its work; other threads may be in `settle`.
  Status abort(Member& member);
  /// With what the library last said on the thread.
  std::string text_of(Status status);

 private:
  struct Table;
  const Table& functions();
  static Status passed(int status);

  LateLibrary library_;
  std::shared_ptr<Table> table_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace taeda::cuda
