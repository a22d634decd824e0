// What the backend uses of the CUDA driver: an abstract table with a real and a simulated end.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/activities.h"
#include "driver/convolution.h"
#include "driver/factoring.h"
#include "driver/product.h"
#include "driver/recent.h"
#include "driver/recurrence.h"
#include "driver/transform.h"

namespace taeda::cuda {

struct Kernel;
class Compiler;
class Nccl;

/// Numbers of the driver (CUresult). Those without a name here pass through as they are.
enum class Status : int {
  Ok = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  NoDevice = 100,
  InvalidContext = 201,
  InvalidHandle = 400,
  IllegalAddress = 700,
  LaunchFailed = 719,
  NotReady = 600,
  CaptureUnsupported = 900,  // what was called cannot be recorded; the recording is broken by it
  CaptureInvalidated = 901,
  CaptureUnmatched = 903,
  CaptureUnjoined = 904,
  CaptureIsolation = 905,
  CapturedEvent = 907,
  CaptureWrongThread = 908,
};

/// An address of a device, or of pinned host memory; 0 is none.
using Address = uint64_t;
/// Null is the device's default stream.
using StreamHandle = void*;
using EventHandle = void*;
/// Recorded work, and what was made of it to be run.
using GraphHandle = void*;
using ExecutableHandle = void*;
/// What may not be called while work is recorded, on which threads (CUstreamCaptureMode).
enum class CaptureMode : int { Global = 0, ThreadLocal = 1, Relaxed = 2 };

/// What drivers put and take away at a time.
inline constexpr size_t kMemoryPiece = size_t(2) << 20;

struct DeviceFacts {
  std::string name;
  uint64_t total_memory = 0;
  int major = 0, minor = 0;  // compute capability
  int processors = 0;
  int warp_size = 0, threads_per_processor = 0, registers_per_processor = 0, l2_cache = 0;
  int shared_per_block = 0, shared_most = 0, shared_per_processor = 0;  // most: of a block that asks for it
  int integrated = 0, board_of_several = 0, pci_domain = 0, pci_bus = 0, pci_device = 0;
};
struct Room {
  uint64_t free = 0, total = 0;
};
/// By which another process of the machine opens what `allocate` gave.
using SharedHandle = std::array<char, 64>;

/// A way to compute convolutions of one shape, which a driver found and keeps.
struct ConvolutionPlan {
  virtual ~ConvolutionPlan() = default;
  size_t workspace = 0;  // bytes wanted beside the operands
};

/// All functions may be called from any thread. Streams, events and addresses belong to the device that they were
/// made for, whose index comes first. Work within a stream is in order.
class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  /// Comes back when all that was asked for has reached the device's own driver.
  virtual void issue() {}
  /// What was refused of work for which Ok had been said, told once, with what it was.
  virtual Status late_failure(std::string&) { return Status::Ok; }

  virtual int device_count() const = 0;
  virtual Status facts(int device, DeviceFacts& facts) = 0;
  /// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  virtual std::string text_of(Status status) const = 0;

  virtual Status allocate(int device, size_t nbytes, Address& address) = 0;
  /// The caller has waited for work that uses it.
  virtual Status release(int device, Address address) = 0;
  virtual Status room(int device, Room& room) = 0;
  /// Whose memory lies at an address, whoever has taken it; InvalidValue where it is no device's.
  virtual Status device_of(Address address, int& device) = 0;
  // Addresses without memory, which is put behind them and taken away; sizes and places are multiples of kMemoryPiece.
  virtual Status reserve(int device, size_t nbytes, Address& start) = 0;
  /// No memory is there.
  virtual Status unreserve(int device, Address start, size_t nbytes) = 0;
  /// All of it, or nothing after a failure.
  virtual Status put(int device, Address at, size_t nbytes) = 0;
  /// The caller has waited for work that uses it.
  virtual Status take_away(int device, Address at, size_t nbytes) = 0;
  /// A handle of the allocation around an address, and how far behind its start the address lies.
  virtual Status share(int device, Address address, SharedHandle& handle, uint64_t& offset) = 0;
  /// The start of another process's allocation; once at a time for each handle.
  virtual Status open_shared(int device, const SharedHandle& handle, Address& start) = 0;
  /// The caller has waited for work that uses it.
  virtual Status close_shared(int device, Address start) = 0;
  virtual Status allocate_pinned(size_t nbytes, void*& data) = 0;
  virtual Status release_pinned(void* data) = 0;

  /// Does not wait for the work of the default stream, nor that for its own.
  virtual Status create_stream(int device, int priority, StreamHandle& stream) = 0;
  virtual Status synchronize_stream(int device, StreamHandle stream) = 0;
  /// NotReady while work is waiting or running.
  virtual Status query_stream(int device, StreamHandle stream) = 0;
  virtual Status synchronize(int device) = 0;

  virtual Status create_event(int device, bool timing, EventHandle& event) = 0;
  virtual void destroy_event(int device, EventHandle event) = 0;
  virtual Status record_event(int device, EventHandle event, StreamHandle stream) = 0;
  virtual Status wait_event(int device, StreamHandle stream, EventHandle event) = 0;
  virtual Status synchronize_event(int device, EventHandle event) = 0;
  virtual Status query_event(int device, EventHandle event) = 0;
  virtual Status elapsed(EventHandle from, EventHandle to, double& milliseconds) = 0;

  // Copies are put into the stream; host memory that is not pinned may make them wait.
  virtual Status copy_in(int device, Address to, const void* from, size_t nbytes, StreamHandle stream) = 0;
  virtual Status copy_out(int device, void* to, Address from, size_t nbytes, StreamHandle stream) = 0;
  virtual Status copy_peer(int to_device, Address to, int from_device, Address from, size_t nbytes,
                           StreamHandle stream) = 0;

  /// Puts a kernel with its body, which is copied, into the stream; `items` is more than 0.
  virtual Status launch(int device, const Kernel& kernel, const void* body, int64_t items, StreamHandle stream) = 0;

  // Graphs. What is put into a stream between the first two is recorded instead of done, and so is what is put into
  // streams that wait for events of it. Memory may be taken meanwhile, and not be given back.
  virtual Status begin_capture(int device, StreamHandle stream, CaptureMode mode) = 0;
  /// After a failure, and where the recording was broken, there is no graph.
  virtual Status end_capture(int device, StreamHandle stream, GraphHandle& graph) = 0;
  /// The number of the recording that a stream belongs to, never given twice; 0: none.
  virtual Status capture_of(int device, StreamHandle stream, uint64_t& number) = 0;
  virtual Status instantiate(int device, GraphHandle graph, ExecutableHandle& executable) = 0;
  virtual Status launch_graph(int device, ExecutableHandle executable, StreamHandle stream) = 0;
  virtual void destroy_graph(int device, GraphHandle graph) = 0;
  /// The caller has waited for its runs.
  virtual void destroy_executable(int device, ExecutableHandle executable) = 0;
  /// Writes a graph to a file, in the language of Graphviz.
  virtual Status draw_graph(int device, GraphHandle graph, const char* path) = 0;

  /// Whether NVIDIA's library is there and multiplies matrices of such a dtype.
  virtual bool can_multiply(const BlasProduct& product) = 0;
  /// Whether NVIDIA's library has a way to compute a product with such an epilogue on the device.
  virtual bool can_finish(int device, const BlasProduct& product) = 0;
  /// Puts such a product into the stream.
  virtual Status multiply(int device, const BlasProduct& product, StreamHandle stream) = 0;
  /// Whether NVIDIA's library convolves on the device, and faster over channels that lie beside each other.
  virtual bool prefers_channels_last(int device) = 0;
  /// How NVIDIA's library computes such a convolution, for as long as the driver lives; null where it is not there or
  /// has no way. With `trying` several ways are run on the stream, on the operands, and the fastest is kept.
  virtual const ConvolutionPlan* plan(int device, const Convolution& convolution, StreamHandle stream, bool trying) = 0;
  /// Puts the convolution into the stream; `workspace` is memory of the plan's size, its own until it is done.
  virtual Status convolve(int device, const ConvolutionPlan& plan, const Convolution& convolution, Address workspace,
                          StreamHandle stream) = 0;
  /// What NVIDIA's library wants for such recurrent layers, kept for those that were asked for last; null where it is
  /// not there or has no way.
  virtual SharedRecurrencePlan plan_recurrence(int device, const Recurrence& layers, StreamHandle stream) = 0;
  /// Puts a run of them into the stream, forward or backward; its workspace and what is kept are memory of the plan's
  /// sizes. Backward, what is kept is lost.
  virtual Status recur(int device, const SharedRecurrencePlan& plan, const RecurrenceRun& run, StreamHandle stream) = 0;
  /// How NVIDIA's library computes such transforms, kept for those that were asked for last; null where it is not there
  /// or has no way.
  virtual SharedTransformPlan plan_transform(int device, const Transform& transform) = 0;
  /// How many such plans of a device are kept, and may be.
  virtual void settle_transforms(int device, PlansKept& asked) = 0;
  /// Puts the transforms into the stream; `workspace` is memory of the plan's size, its own until they are done.
  virtual Status transform(int device, const SharedTransformPlan& plan, const Transform& transform, Address workspace,
                           StreamHandle stream) = 0;
  /// What such factorings of matrices need, for as long as the driver lives; null where NVIDIA's library is not there
  /// or has no way.
  virtual const FactoringPlan* plan_factoring(int device, const Factoring& factoring, StreamHandle stream) = 0;
  /// Puts them into the stream; `workspace` is memory of the plan's size, its own until they are done.
  virtual Status factor(int device, const FactoringPlan& plan, const Factoring& factoring, Address workspace,
                        StreamHandle stream) = 0;
  /// NVIDIA's library of work that processes do together, with the device at hand for the calling thread (-1: none is
  /// needed), and all that was asked for before on its way; null where it is not there, and `why`.
  virtual Nccl* nccl(int device, std::string& why) = 0;
  /// What compiles kernels that are written at run time.
  virtual Compiler& compiler() = 0;
  /// From now on what devices do with work that is handed over is noted, `most` activities at most. Calls that hand it
  /// over ask `work_origin` on the thread that made them.
  virtual void start_activities(uint64_t most) = 0;
  /// Ends that; with `may_wait` after the work is done, whose errors stay for those who will wait for it. Gives what
  /// was noted, with names that live as long as the driver; empty, or why nothing is known.
  virtual std::string stop_activities(bool may_wait, std::vector<Activity>& noted, uint64_t& dropped) = 0;
  /// What of NVIDIA's libraries was found where, as a JSON object by their names.
  virtual std::string libraries() = 0;
};

}  // namespace taeda::cuda
