// C functions over NCCL, for Python.
#include <cstring>

#include "backend/trouble.h"
#include "driver/nccl.h"
#include "harness.h"

using namespace taeda::cuda;

namespace {

Nccl::Member& member_of(void* member) { return *static_cast<Nccl::Member*>(member); }

/// Runs `body` on the library with a device at hand, or none; without the library that is what the text says.
template <class Body>
int with_nccl(void* m, int device, const Body& body) {
  return on(m, [&](Machine& machine) {
    std::string why;
    Nccl* const nccl = machine.driver().nccl(device, why);
    if (!nccl) return last_text = why, Status::NotInitialized;
    const Status status = body(*nccl);
    if (int(status) >= kFirstNcclStatus) last_text = nccl->text_of(status);
    return status;
  });
}

}  // namespace

TAEDA_CUDA_EXPORT int taeda_cuda_nccl_version(void* m, int* version) {
  return with_nccl(m, -1, [&](Nccl& nccl) { return *version = nccl.version(), Status::Ok; });
}
/// 128 bytes by which others join.
TAEDA_CUDA_EXPORT int taeda_cuda_nccl_unique_id(void* m, void* bytes) {
  return with_nccl(m, -1, [&](Nccl& nccl) {
    NcclId id{};
    const Status status = nccl.unique_id(id);
    std::memcpy(bytes, &id, sizeof id);
    return status;
  });
}
TAEDA_CUDA_EXPORT int taeda_cuda_nccl_join(void* m, int device, const void* bytes, int rank, int size, double seconds,
                                           void** member) {
  return with_nccl(m, device, [&](Nccl& nccl) {
    NcclId id;
    std::memcpy(&id, bytes, sizeof id);
    Nccl::Member* made = nullptr;
    const Status status = nccl.join(id, rank, size, seconds, made);
    *member = made;
    return status;
  });
}
TAEDA_CUDA_EXPORT int taeda_cuda_nccl_begin_group(void* m, int device) {
  return with_nccl(m, device, [](Nccl& nccl) { return nccl.begin_group(); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_nccl_end_group(void* m, int device) {
  return with_nccl(m, device, [](Nccl& nccl) { return nccl.end_group(); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_nccl_begin(void* m, int device, void* member, int what, uint64_t from, uint64_t to,
                                            uint64_t count, int dtype, int reduction, int peer, void* stream) {
  return with_nccl(m, device, [&](Nccl& nccl) {
    return nccl.begin(member_of(member), {Together(what), from, to, count, dtype, reduction, peer}, stream);
  });
}
TAEDA_CUDA_EXPORT int taeda_cuda_nccl_settle(void* m, int device, void* member, double seconds) {
  return with_nccl(m, device, [&](Nccl& nccl) { return nccl.settle(member_of(member), seconds); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_nccl_leave(void* m, int device, void* member, double seconds) {
  return with_nccl(m, device, [&](Nccl& nccl) { return nccl.leave(member_of(member), seconds); });
}
TAEDA_CUDA_EXPORT int taeda_cuda_nccl_abort(void* m, int device, void* member) {
  return with_nccl(m, device, [&](Nccl& nccl) { return nccl.abort(member_of(member)); });
}
/// The next wait of the host for the device's work ends with this text.
TAEDA_CUDA_EXPORT int taeda_cuda_fail_later(void* m, int device, const char* text) {
  return on(m, [&](Machine&) { return fail_later(device, text), Status::Ok; });
}
