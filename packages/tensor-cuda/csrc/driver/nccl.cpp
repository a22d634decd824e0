// Declarations by hand after NVIDIA's nccl.h, as those of the driver are; tests compile both against each other.
#include "driver/nccl.h"

#include <dlfcn.h>

#include <chrono>
#include <thread>
#include <utility>

namespace taeda::cuda {
namespace {

constexpr auto kNap = std::chrono::microseconds(50);
constexpr int kLooksAtOnce = 100;

void* place(Address address) { return reinterpret_cast<void*>(uintptr_t(address)); }

}  // namespace

struct Nccl::Table {
#define TAEDA_NCCL_POINTER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TAEDA_NCCL_FUNCTIONS(TAEDA_NCCL_POINTER)
#undef TAEDA_NCCL_POINTER
};

Nccl::Nccl() : table_(std::make_shared<Table>()) {}
Nccl::~Nccl() = default;

const Nccl::Table& Nccl::functions() {
  library_.open({"libnccl.so.2"}, {"nccl"}, [this](void* library) {
    std::string absent;
    TAEDA_NCCL_FUNCTIONS(TAEDA_LIBRARY_LOOK_UP)
    return absent;
  });
  return *table_;
}
bool Nccl::there() {
  functions();
  return library_.is_open();
}
std::string Nccl::description() {
  functions();
  return library_.description();
}
int Nccl::version() {
  int number = 0;
  functions().ncclGetVersion(&number);
  return number;
}
/// What goes on is no failure.
Status Nccl::passed(int status) {
  return status == 0 || status == kNcclInProgress ? Status::Ok : Status(kFirstNcclStatus + status);
}
std::string Nccl::text_of(Status status) {
  const char* const name = functions().ncclGetErrorString(int(status) - kFirstNcclStatus);
  const char* const more = functions().ncclGetLastError(nullptr);
  return std::string("NCCL: ") + (name ? name : "unknown error") + (more && *more ? std::string(": ") + more : "");
}

Status Nccl::unique_id(NcclId& id) { return passed(functions().ncclGetUniqueId(&id)); }
Status Nccl::join(const NcclId& id, int rank, int size, double seconds, Member*& member) {
  NcclConfig config;
  {
    const std::lock_guard held(lock_);
    member = members_.emplace_back(std::make_unique<Member>()).get();
  }
  Status status = passed(functions().ncclCommInitRankConfig(&member->communicator, size, id, rank, &config));
  if (status == Status::Ok) status = settle(*member, seconds);
  if (status != Status::Ok) abort(*member);
  return status;
}
Status Nccl::begin_group() { return passed(functions().ncclGroupStart()); }
Status Nccl::end_group() { return passed(functions().ncclGroupEnd()); }
Status Nccl::begin(Member& member, const Collective& c, StreamHandle stream) {
  const std::lock_guard held(member.lock);
  void* const communicator = member.communicator;
  if (!communicator) return Status::InvalidHandle;
  const Table& f = functions();
  void *const from = place(c.from), *const to = place(c.to);
  const int type = kNcclTypes[c.dtype];
  switch (c.what) {
    case Together::AllReduce:
      return passed(f.ncclAllReduce(from, to, c.count, type, c.reduction, communicator, stream));
    case Together::Reduce:
      return passed(f.ncclReduce(from, to, c.count, type, c.reduction, c.peer, communicator, stream));
    case Together::Broadcast: return passed(f.ncclBroadcast(from, to, c.count, type, c.peer, communicator, stream));
    case Together::AllGather: return passed(f.ncclAllGather(from, to, c.count, type, communicator, stream));
    case Together::ReduceScatter:
      return passed(f.ncclReduceScatter(from, to, c.count, type, c.reduction, communicator, stream));
    case Together::Send: return passed(f.ncclSend(from, c.count, type, c.peer, communicator, stream));
    case Together::Receive: return passed(f.ncclRecv(to, c.count, type, c.peer, communicator, stream));
  }
  return Status::InvalidValue;
}
Status Nccl::state(Member& member) {
  const std::lock_guard held(member.lock);
  if (!member.communicator) return Status::InvalidHandle;
  int status = 0;
  const int asked = functions().ncclCommGetAsyncError(member.communicator, &status);
  if (asked != 0) return passed(asked);
  return status == kNcclInProgress ? Status::NotReady : passed(status);
}
Status Nccl::settle(Member& member, double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int looks = 1;; ++looks) {
    const Status status = state(member);
    if (status != Status::NotReady || std::chrono::steady_clock::now() >= until) return status;
    if (looks % kLooksAtOnce == 0) std::this_thread::sleep_for(kNap);
  }
}
Status Nccl::leave(Member& member, double seconds) {
  Status status = Status::InvalidHandle;
  {
    const std::lock_guard held(member.lock);
    if (member.communicator) status = passed(functions().ncclCommFinalize(member.communicator));
  }
  if (status == Status::Ok) status = settle(member, seconds);
  if (status != Status::Ok) return abort(member), status;
  const std::lock_guard held(member.lock);
  void* const communicator = std::exchange(member.communicator, nullptr);
  return communicator ? passed(functions().ncclCommDestroy(communicator)) : Status::Ok;
}
Status Nccl::abort(Member& member) {
  const std::lock_guard held(member.lock);
  void* const communicator = std::exchange(member.communicator, nullptr);
  return communicator ? passed(functions().ncclCommAbort(communicator)) : Status::Ok;
}

}  // namespace taeda::cuda
