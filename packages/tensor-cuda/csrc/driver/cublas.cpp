// Declarations by hand after NVIDIA's cublas_api.h, as those of the driver are; tests compile both against each other.
#include "driver/cublas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "driver/cublas_functions.h"
#include "driver/cublas_types.h"
#include "driver/libraries.h"

namespace taeda::cuda {

std::atomic<bool> tf32_allowed = false;

struct Cublas::Table {
#define TAEDA_CUBLAS_POINTER(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  TAEDA_CUBLAS_FUNCTIONS(TAEDA_CUBLAS_POINTER)
#undef TAEDA_CUBLAS_POINTER
};

Cublas::Cublas(const Functions& driver) : driver_(driver), table_(std::make_shared<Table>()) {}

const Cublas::Table& Cublas::functions() {
  library_.open({"libcublas.so.13", "libcublas.so.12"}, {"cu13", "cublas"}, [this](void* library) {
    std::string absent;
    TAEDA_CUBLAS_FUNCTIONS(TAEDA_LIBRARY_LOOK_UP)
    return absent;
  });
  return *table_;
}
std::string Cublas::description() {
  functions();
  return library_.description();
}
std::string Cublas::text_of(Status status) {
  const char* const text = there() ? functions().cublasGetStatusString(int(status) - kFirstCublasStatus) : nullptr;
  return text ? "cuBLAS: " + std::string(text)
              : "status " + std::to_string(int(status) - kFirstCublasStatus) + " of cuBLAS";
}

int Cublas::handle_for(int device, StreamHandle stream, Handle*& found) {
  const std::lock_guard held(lock_);
  found = &handles_[{device, stream}];
  if (found->handle) return 0;
  const Relaxed relaxed(driver_);
  void* made = nullptr;
  int status = functions().cublasCreate_v2(&made);
  if (status == 0) status = functions().cublasSetStream_v2(made, stream);
  uint64_t& workspace = found->workspace;
  // Without one of its own the library asks the driver when it needs memory, which waits for the device.
  if (status == 0 && (workspace || driver_.cuMemAlloc_v2(&workspace, kCublasWorkspace) == 0))
    status = functions().cublasSetWorkspace_v2(made, reinterpret_cast<void*>(uintptr_t(workspace)), kCublasWorkspace);
  if (status == 0) found->handle = made;
  else if (made) functions().cublasDestroy_v2(made);
  return status;
}
int Cublas::prepare(int device, StreamHandle stream) {
  if (!library_.is_open()) return 0;
  Handle* handle = nullptr;
  const int status = handle_for(device, stream, handle);
  return status == 0 ? 0 : kFirstCublasStatus + status;
}
int Cublas::workspace_of(int device, StreamHandle stream, uint64_t& workspace) {
  Handle* handle = nullptr;
  const int status = handle_for(device, stream, handle);
  workspace = handle->workspace;
  return status;
}
bool Cublas::can_multiply(const BlasProduct& product) { return cublas_types_of(product.dtype).data >= 0 && there(); }
Status Cublas::multiply(int device, const BlasProduct& p, StreamHandle stream) {
  const CublasTypes types = cublas_types_of(p.dtype, p.tf32);
  Handle* handle = nullptr;
  if (const int status = handle_for(device, stream, handle); status != 0) return Status(kFirstCublasStatus + status);
  const auto place = [](uint64_t address) { return reinterpret_cast<void*>(uintptr_t(address)); };
  const CublasFactor alpha(p.alpha, types.compute), beta(p.beta, types.compute);
  const std::lock_guard held(handle->lock);
  const int status = functions().cublasGemmStridedBatchedEx_64(
      handle->handle, p.a.turned, p.b.turned, p.m, p.n, p.k, &alpha, place(p.a.data), types.data, p.a.ld, p.a.step,
      place(p.b.data), types.data, p.b.ld, p.b.step, &beta, place(p.c.data), cublas_types_of(p.result).data, p.c.ld,
      p.c.step, p.batch, types.compute, kCublasDefaultAlgorithm);
  return status == 0 ? Status::Ok : Status(kFirstCublasStatus + status);
}

}  // namespace taeda::cuda
