// Streams of devices in the graph: noted forward, taken up again backward.
//
// Note [Devices in a backward]
// Kernels of devices are queued, not run, by the thread that calls them, so one thread serves any number of devices: it
// walks the graph in the one order of Note [Order of execution], and the devices work at the same time. Each node's
// formula is queued on the stream that its forward call ran on; a gradient that comes from another stream of its device
// is waited for on the device, by an event, never by the host. At the end the caller's current streams wait for all
// streams that the run has used, so that what it queues next sees the gradients.
#pragma once
#include "taeda/autograd/hooks.h"

namespace taeda::autograd {

inline bool on_device(Device device) noexcept { return device.backend != kCPU; }

/// Notes the device's current stream as the node's, where it is not the default one.
void note_stream(Node* node, Device device);
/// The stream that the node's outputs came from.
Stream stream_of(const Node* node, Device device);

/// Current stream of a device for a scope; nothing for devices without streams.
class OnStream {
 public:
  OnStream(const Node* node, Device device);
  ~OnStream();
  OnStream(const OnStream&) = delete;

 private:
  Stream before_;  // null: unchanged
};

/// The streams of one run, other than those that were current when it began.
class UsedStreams {
 public:
  /// Work of the run went to the device's current stream.
  void add(Device device);
  /// The caller's current streams wait for them.
  void join();

 private:
  std::vector<Stream> list_;
};

/// Lets the stream of `consumer` wait for the current one, in which `grad` was computed.
void hand_over(const Tensor& grad, const Node* consumer);

}  // namespace taeda::autograd
