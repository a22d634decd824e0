// The driver's functions, looked up in its library at run time.
#include "driver/real.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "driver/cublas.h"
#include "driver/cublaslt.h"
#include "driver/cudnn.h"
#include "driver/cufft.h"
#include "driver/cupti.h"
#include "driver/cusolver.h"
#include "driver/functions.h"
#include "driver/images.h"
#include "driver/nccl.h"
#include "driver/nvrtc.h"
#include "kernels/launch.h"

namespace taeda::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr Status kAfterFork = Status(-1);

std::atomic<bool> forked = false;  // since the driver was started
thread_local int current_device = -1;
/// Blocks of a launch: enough for every processor to have work left when some are done.
constexpr int64_t kBlocksPerProcessor = 32;
/// What the driver tells of a device by number.
constexpr struct {
  int number;
  int DeviceFacts::* fact;
} kFacts[] = {{kAttributeMajor, &DeviceFacts::major},
              {kAttributeMinor, &DeviceFacts::minor},
              {kAttributeProcessors, &DeviceFacts::processors},
              {kAttributeWarpSize, &DeviceFacts::warp_size},
              {kAttributeThreadsPerProcessor, &DeviceFacts::threads_per_processor},
              {kAttributeRegistersPerProcessor, &DeviceFacts::registers_per_processor},
              {kAttributeL2Cache, &DeviceFacts::l2_cache},
              {kAttributeSharedPerBlock, &DeviceFacts::shared_per_block},
              {kAttributeSharedMost, &DeviceFacts::shared_most},
              {kAttributeSharedPerProcessor, &DeviceFacts::shared_per_processor},
              {kAttributeIntegrated, &DeviceFacts::integrated},
              {kAttributeBoardOfSeveral, &DeviceFacts::board_of_several},
              {kAttributePciDomain, &DeviceFacts::pci_domain},
              {kAttributePciBus, &DeviceFacts::pci_bus},
              {kAttributePciDevice, &DeviceFacts::pci_device}};

class RealDriver final : public Driver {
 public:
  RealDriver(const Functions& functions, int count)
      : f_(functions),
        cublas_(f_),
        cublaslt_(f_, cublas_),
        cudnn_(f_),
        cufft_(f_),
        cusolver_(f_),
        nvrtc_([this](int device) {
          DeviceFacts found;
          return facts(device, found) == Status::Ok ? 10 * found.major + found.minor : 0;
        }),
        contexts_(size_t(count), nullptr),
        loaded_(size_t(count)) {
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
  }

  int device_count() const override { return int(contexts_.size()); }
  std::string text_of(Status status) const override {
    if (status == kAfterFork)
      return "CUDA was started before this process was forked, and cannot be used in the child; try: "
             "multiprocessing's start method 'spawn'";
    if (int(status) >= kFirstNcclStatus) return nccl_.text_of(status);
    if (int(status) >= kFirstCusolverStatus) return Cusolver::text_of(status);
    if (int(status) >= kFirstCufftStatus) return Cufft::text_of(status);
    if (int(status) >= kFirstCudnnStatus) return cudnn_.text_of(status);
    if (int(status) >= kFirstCublasStatus) return cublas_.text_of(status);
    const char *name = nullptr, *text = nullptr;
    f_.cuGetErrorName(int(status), &name);
    f_.cuGetErrorString(int(status), &text);
    if (!name || !text) return "unknown error " + std::to_string(int(status)) + " of the CUDA driver";
    return std::string(text) + " (" + name + ")";
  }
  Status facts(int device, DeviceFacts& facts) override {
    if (forked) return kAfterFork;
    char name[128] = "";
    size_t total = 0;
    int handle = 0;
    for (const int status : {f_.cuDeviceGet(&handle, device), f_.cuDeviceGetName(name, sizeof name, handle),
                             f_.cuDeviceTotalMem_v2(&total, handle)})
      if (status != 0) return Status(status);
    for (const auto& [number, fact] : kFacts)
      if (const int status = f_.cuDeviceGetAttribute(&(facts.*fact), number, handle)) return Status(status);
    facts.name = name;
    facts.total_memory = total;
    return Status::Ok;
  }

  Status allocate(int device, size_t nbytes, Address& address) override {
    return on(device, [&] {
      const Relaxed relaxed(f_);
      return f_.cuMemAlloc_v2(&address, nbytes);
    });
  }
  Status release(int device, Address address) override {
    return on(device, [&] { return f_.cuMemFree_v2(address); });
  }
  Status room(int device, Room& room) override {
    size_t free = 0, total = 0;
    const Status status = on(device, [&] { return f_.cuMemGetInfo_v2(&free, &total); });
    room = {free, total};
    return status;
  }
  Status device_of(Address address, int& device) override {
    unsigned kind = 0;
    int status = f_.cuPointerGetAttribute(&kind, kPointerKind, address);
    if (status == 0 && kind != unsigned(kDeviceMemory)) return Status::InvalidValue;
    if (status == 0) status = f_.cuPointerGetAttribute(&device, kPointerDevice, address);
    return Status(status);
  }
  Status reserve(int device, size_t nbytes, Address& start) override {
    return on(device, [&] { return f_.cuMemAddressReserve(&start, nbytes, kMemoryPiece, 0, 0); });
  }
  Status unreserve(int device, Address start, size_t nbytes) override {
    return on(device, [&] { return f_.cuMemAddressFree(start, nbytes); });
  }
  Status put(int device, Address at, size_t nbytes) override {
    return on(device, [&] {
      const Relaxed relaxed(f_);
      int status = 0;
      for (size_t done = 0; done < nbytes && status == 0; done += kMemoryPiece)
        if (status = put_piece(device, at + done); status != 0 && done > 0) f_.cuMemUnmap(at, done);
      return status;
    });
  }
  Status take_away(int device, Address at, size_t nbytes) override {
    return on(device, [&] { return f_.cuMemUnmap(at, nbytes); });
  }
  Status share(int device, Address address, SharedHandle& handle, uint64_t& offset) override {
    return on(device, [&] {
      uint64_t start = 0;
      size_t size = 0;
      int status = f_.cuMemGetAddressRange_v2(&start, &size, address);
      if (status == 0) status = f_.cuIpcGetMemHandle(handle.data(), start);
      offset = address - start;
      return status;
    });
  }
  Status open_shared(int device, const SharedHandle& handle, Address& start) override {
    CudaSharedHandle passed;
    std::copy(handle.begin(), handle.end(), passed.bytes);
    return on(device, [&] { return f_.cuIpcOpenMemHandle_v2(&start, passed, kPeerAccess); });
  }
  Status close_shared(int device, Address start) override {
    return on(device, [&] { return f_.cuIpcCloseMemHandle(start); });
  }
  Status allocate_pinned(size_t nbytes, void*& data) override {
    return on(0, [&] {
      const Relaxed relaxed(f_);
      return f_.cuMemHostAlloc(&data, nbytes, kHostPortable);
    });
  }
  Status release_pinned(void* data) override {
    return on(0, [&] { return f_.cuMemFreeHost(data); });
  }

  Status create_stream(int device, int priority, StreamHandle& stream) override {
    return on(device, [&] { return f_.cuStreamCreateWithPriority(&stream, kStreamNonBlocking, priority); });
  }
  Status synchronize_stream(int device, StreamHandle stream) override {
    return on(device, [&] { return f_.cuStreamSynchronize(stream); });
  }
  Status query_stream(int device, StreamHandle stream) override {
    return on(device, [&] { return f_.cuStreamQuery(stream); });
  }
  Status synchronize(int device) override {
    return on(device, [&] { return f_.cuCtxSynchronize(); });
  }
  Status create_event(int device, bool timing, EventHandle& event) override {
    return on(device, [&] { return f_.cuEventCreate(&event, timing ? 0 : kEventNoTiming); });
  }
  void destroy_event(int device, EventHandle event) override {
    on(device, [&] { return f_.cuEventDestroy_v2(event); });
  }
  Status record_event(int device, EventHandle event, StreamHandle stream) override {
    return on(device, [&] { return f_.cuEventRecord(event, stream); });
  }
  Status wait_event(int device, StreamHandle stream, EventHandle event) override {
    return on(device, [&] { return f_.cuStreamWaitEvent(stream, event, 0); });
  }
  Status synchronize_event(int device, EventHandle event) override {
    return on(device, [&] { return f_.cuEventSynchronize(event); });
  }
  Status query_event(int device, EventHandle event) override {
    return on(device, [&] { return f_.cuEventQuery(event); });
  }
  Status elapsed(EventHandle from, EventHandle to, double& milliseconds) override {
    if (forked) return kAfterFork;
    float found = 0;
    const Status status = Status(f_.cuEventElapsedTime(&found, from, to));
    milliseconds = found;
    return status;
  }

  Status copy_in(int device, Address to, const void* from, size_t nbytes, StreamHandle stream) override {
    return handed(device, [&] { return f_.cuMemcpyHtoDAsync_v2(to, from, nbytes, stream); });
  }
  Status copy_out(int device, void* to, Address from, size_t nbytes, StreamHandle stream) override {
    return handed(device, [&] { return f_.cuMemcpyDtoHAsync_v2(to, from, nbytes, stream); });
  }
  Status copy_peer(int to_device, Address to, int from_device, Address from, size_t nbytes,
                   StreamHandle stream) override {
    if (const Status status = use(from_device); status != Status::Ok) return status;  // its context is there
    return handed(to_device, [&] {
      return f_.cuMemcpyPeerAsync(to, contexts_[size_t(to_device)], from, contexts_[size_t(from_device)], nbytes,
                                  stream);
    });
  }

  Status launch(int device, const Kernel& kernel, const void* body, int64_t items, StreamHandle stream) override {
    if (const Status status = use(device); status != Status::Ok) return status;
    Loaded& loaded = loaded_[size_t(device)];
    void* function = nullptr;
    if (const int status = find(loaded, device, kernel, function); status != 0) return Status(status);
    const int64_t wanted = (items + kernel.per_block - 1) / kernel.per_block;
    const auto blocks = unsigned(std::min(wanted, loaded.processors * kBlocksPerProcessor));
    void* parameters[] = {const_cast<void*>(body), &items};
    const FromCall from(cupti_);
    return Status(f_.cuLaunchKernel(function, blocks, 1, 1, unsigned(kernel.threads), 1, 1, kernel.shared, stream,
                                    parameters, nullptr));
  }

  Status begin_capture(int device, StreamHandle stream, CaptureMode mode) override {
    return on(device, [&] {
      // What a product would ask the driver for cannot be recorded.
      if (const int status = cublas_.prepare(device, stream); status != 0) return status;
      return f_.cuStreamBeginCapture_v2(stream, int(mode));
    });
  }
  Status end_capture(int device, StreamHandle stream, GraphHandle& graph) override {
    return on(device, [&] { return f_.cuStreamEndCapture(stream, &graph); });
  }
  Status capture_of(int device, StreamHandle stream, uint64_t& number) override {
    return on(device, [&] {
      int state = kCaptureNone;
      const int status = f_.cuStreamGetCaptureInfo_v3(stream, &state, &number, nullptr, nullptr, nullptr, nullptr);
      if (state == kCaptureNone) number = 0;
      return status;
    });
  }
  Status instantiate(int device, GraphHandle graph, ExecutableHandle& executable) override {
    return on(device, [&] { return f_.cuGraphInstantiateWithFlags(&executable, graph, 0); });
  }
  Status launch_graph(int device, ExecutableHandle executable, StreamHandle stream) override {
    return handed(device, [&] { return f_.cuGraphLaunch(executable, stream); });
  }
  void destroy_graph(int device, GraphHandle graph) override {
    on(device, [&] { return f_.cuGraphDestroy(graph); });
  }
  void destroy_executable(int device, ExecutableHandle executable) override {
    on(device, [&] { return f_.cuGraphExecDestroy(executable); });
  }
  Status draw_graph(int device, GraphHandle graph, const char* path) override {
    return on(device, [&] { return f_.cuGraphDebugDotPrint(graph, path, kGraphVerbose); });
  }

  bool can_multiply(const BlasProduct& product) override { return cublas_.can_multiply(product); }
  bool can_finish(int device, const BlasProduct& product) override {
    return use(device) == Status::Ok && cublaslt_.can_finish(device, product);
  }
  Status multiply(int device, const BlasProduct& product, StreamHandle stream) override {
    const Status status = use(device);
    if (status != Status::Ok) return status;
    const FromCall from(cupti_);
    return product.epilogue ? cublaslt_.multiply(device, product, stream) : cublas_.multiply(device, product, stream);
  }
  bool prefers_channels_last(int) override { return cudnn_.there(); }
  const ConvolutionPlan* plan(int device, const Convolution& convolution, StreamHandle stream, bool trying) override {
    return use(device) == Status::Ok ? cudnn_.plan(device, convolution, stream, trying) : nullptr;
  }
  Status convolve(int device, const ConvolutionPlan& plan, const Convolution& convolution, Address workspace,
                  StreamHandle stream) override {
    return handed(device, [&] { return cudnn_.convolve(device, plan, convolution, workspace, stream); });
  }
  SharedRecurrencePlan plan_recurrence(int device, const Recurrence& layers, StreamHandle stream) override {
    return use(device) == Status::Ok ? cudnn_.plan_recurrence(device, layers, stream) : nullptr;
  }
  Status recur(int device, const SharedRecurrencePlan& plan, const RecurrenceRun& run, StreamHandle stream) override {
    return handed(device, [&] { return cudnn_.recur(device, *plan, run, stream); });
  }
  SharedTransformPlan plan_transform(int device, const Transform& transform) override {
    return use(device) == Status::Ok ? cufft_.plan(device, transform) : nullptr;
  }
  void settle_transforms(int device, PlansKept& asked) override {
    if (use(device) == Status::Ok) cufft_.settle(device, asked);
  }
  Status transform(int device, const SharedTransformPlan& plan, const Transform& transform, Address workspace,
                   StreamHandle stream) override {
    uint64_t recording = 0;
    if (const Status status = capture_of(device, stream, recording); status != Status::Ok) return status;
    if (recording) cufft_.stays(*plan);
    return handed(device, [&] { return cufft_.transform(*plan, transform, workspace, stream); });
  }
  const FactoringPlan* plan_factoring(int device, const Factoring& factoring, StreamHandle stream) override {
    return use(device) == Status::Ok ? cusolver_.plan(device, factoring, stream) : nullptr;
  }
  Status factor(int device, const FactoringPlan& plan, const Factoring& factoring, Address workspace,
                StreamHandle stream) override {
    return handed(device, [&] { return cusolver_.factor(device, plan, factoring, workspace, stream); });
  }
  Nccl* nccl(int device, std::string& why) override {
    const Status status = device < 0 ? Status::Ok : use(device);
    if (status != Status::Ok) return why = text_of(status), nullptr;
    if (!nccl_.there()) return why = nccl_.description(), nullptr;
    return &nccl_;
  }
  Compiler& compiler() override { return nvrtc_; }
  void start_activities(uint64_t most) override {
    if (!forked) cupti_.start(most);  // a child of a fork has no device to tell of
  }
  std::string stop_activities(bool may_wait, std::vector<Activity>& noted, uint64_t& dropped) override {
    if (forked) return "";
    std::vector<void*> contexts;
    {
      const std::lock_guard held(lock_);
      contexts = contexts_;
    }
    for (size_t i = 0; i < contexts.size() && may_wait && cupti_.notes(); ++i)
      if (contexts[i]) on(int(i), [&] { return f_.cuCtxSynchronize(); });  // errors of work stay with the driver
    return cupti_.stop(contexts, noted, dropped);
  }
  std::string libraries() override {
    const auto entry = [](const char* name, bool found, const std::string& text) {
      return "\"" + std::string(name) + "\": {\"found\": " + (found ? "true" : "false") + ", \"text\": \"" + text +
             "\"";
    };
    const std::string version = cudnn_.there() ? ", \"version\": " + std::to_string(cudnn_.version()) : "";
    const std::string cusolver = cusolver_.there() ? ", \"version\": " + std::to_string(cusolver_.version()) : "";
    const std::string cufft = cufft_.there() ? ", \"version\": " + std::to_string(cufft_.version()) : "";
    return "{" + entry("cublas", cublas_.there(), cublas_.description()) + "}, " +
           entry("cublaslt", cublaslt_.there(), cublaslt_.description()) + "}, " +
           entry("cudnn", cudnn_.there(), cudnn_.description()) + version + "}, " +
           entry("cufft", cufft_.there(), cufft_.description()) + cufft + "}, " +
           entry("cusolver", cusolver_.there(), cusolver_.description()) + cusolver + "}, " +
           entry("cupti", cupti_.there(), cupti_.description()) + "}, " +
           entry("nccl", nccl_.there(), nccl_.description()) + "}, " +
           entry("nvrtc", nvrtc_.there(), nvrtc_.description()) + "}}";
  }

 private:
  /// What of the device code a device has loaded.
  struct Loaded {
    std::shared_mutex lock;
    std::map<std::string_view, void*> modules;  // by family
    std::unordered_map<const Kernel*, void*> functions;
    int64_t processors = 1;
  };
  /// The driver keeps the memory for as long as it lies there.
  int put_piece(int device, Address at) {
    CudaMemoryKind kind;
    CudaAccess access;
    kind.place.id = access.place.id = device;
    unsigned long long handle = 0;
    if (const int status = f_.cuMemCreate(&handle, kMemoryPiece, &kind, 0); status != 0) return status;
    int status = f_.cuMemMap(at, kMemoryPiece, 0, handle, 0);
    f_.cuMemRelease(handle);
    if (status != 0) return status;
    if (status = f_.cuMemSetAccess(at, kMemoryPiece, &access, 1); status != 0) f_.cuMemUnmap(at, kMemoryPiece);
    return status;
  }
  int find(Loaded& loaded, int device, const Kernel& kernel, void*& function) {
    {
      const std::shared_lock held(loaded.lock);
      if (const auto found = loaded.functions.find(&kernel); found != loaded.functions.end())
        return function = found->second, 0;
    }
    const std::unique_lock held(loaded.lock);
    void*& module = loaded.modules[kernel.family];
    if (!module) {
      const void* const image = image_of(kernel.family);
      if (!image) return kNoImage;
      const Relaxed relaxed(f_);
      if (const int status = f_.cuModuleLoadData(&module, image); status != 0) return status;
      int handle = 0, processors = 1;
      f_.cuDeviceGet(&handle, device);
      f_.cuDeviceGetAttribute(&processors, kAttributeProcessors, handle);
      loaded.processors = processors;
    }
    int status = f_.cuModuleGetFunction(&function, module, kernel.name);
    if (status == 0 && kernel.shared) status = f_.cuFuncSetAttribute(function, kSharedOfFunction, int(kernel.shared));
    if (status == 0) loaded.functions[&kernel] = function;
    return status;
  }
  /// Makes the device's primary context, which other libraries share, the calling thread's.
  Status use(int device) {
    if (forked) return kAfterFork;
    if (current_device == device) return Status::Ok;
    const std::lock_guard held(lock_);
    void*& context = contexts_[size_t(device)];
    if (!context) {
      int handle = 0;
      int status = f_.cuDeviceGet(&handle, device);
      if (status == 0) status = f_.cuDevicePrimaryCtxRetain(&context, handle);
      if (status != 0) return Status(status);
    }
    const int status = f_.cuCtxSetCurrent(context);
    if (status == 0) current_device = device;
    return Status(status);
  }
  template <class Call>
  Status on(int device, const Call& call) {
    const Status status = use(device);
    return status == Status::Ok ? Status(call()) : status;
  }
  /// Of what is put into a stream: activities come of it.
  template <class Call>
  Status handed(int device, const Call& call) {
    if (const Status status = use(device); status != Status::Ok) return status;
    const FromCall from(cupti_);
    return Status(call());
  }

  const Functions f_;
  mutable Cublas cublas_;
  mutable CublasLt cublaslt_;
  mutable Cudnn cudnn_;
  Cufft cufft_;
  Cusolver cusolver_;
  Cupti cupti_;
  mutable Nccl nccl_;
  Nvrtc nvrtc_;
  std::mutex lock_;
  std::vector<void*> contexts_;
  std::vector<Loaded> loaded_;
};

/// Empty when all functions are there.
std::string look_up(void* library, Functions& functions) {
  std::string absent;
#define TAEDA_CUDA_LOOK_UP(NAME, PARAMETERS)                                          \
  functions.NAME = reinterpret_cast<decltype(functions.NAME)>(dlsym(library, #NAME)); \
  if (!functions.NAME) absent += (absent.empty() ? "" : ", ") + std::string(#NAME);
  TAEDA_CUDA_FUNCTIONS(TAEDA_CUDA_LOOK_UP)
#undef TAEDA_CUDA_LOOK_UP
  return absent;
}

}  // namespace

std::unique_ptr<Driver> open_driver(std::string& why) {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    why = std::string("there is no CUDA driver: ") + dlerror() + "; try: install NVIDIA's driver";
    return nullptr;
  }
  Functions functions;
  if (const std::string absent = look_up(library, functions); !absent.empty()) {
    why = std::string(kLibrary) + " has no " + absent + "; try: install a newer driver of NVIDIA's";
    return nullptr;
  }
  int count = 0, status = functions.cuInit(0);
  if (status == 0) status = functions.cuDeviceGetCount(&count);
  auto driver = std::make_unique<RealDriver>(functions, count);
  if (status == 0 && count > 0) return driver;
  why = status != 0 ? "the CUDA driver does not start: " + driver->text_of(Status(status))
                    : std::string("the CUDA driver knows no device");
  why += "; try: nvidia-smi, which shows what the driver sees, and CUDA_VISIBLE_DEVICES, which may hide devices";
  return nullptr;
}

}  // namespace taeda::cuda
