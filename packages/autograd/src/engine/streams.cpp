// Streams of nodes, and events between them; see Note [Devices in a backward].
#include "taeda/autograd/streams.h"

#include <algorithm>

#include "taeda/backend.h"

namespace taeda::autograd {
namespace {

bool same_stream(const Stream& a, void* handle) noexcept { return a->handle == handle; }

void wait_for(const Stream& first, const Stream& then) {
  const Event mark = new_event(first->device, false);
  record_event(mark, first);
  wait_event(mark, then);
}

}  // namespace

void note_stream(Node* node, Device device) {
  if (current_stream_handle(device)) ensure_extras(node).stream = current_stream(device);
}

Stream stream_of(const Node* node, Device device) {
  if (node->extras && node->extras->stream && node->extras->stream->device == device) return node->extras->stream;
  return default_stream(device);
}

OnStream::OnStream(const Node* node, Device device) {
  if (!on_device(device) || !backend(device.backend).has_streams()) return;
  const Stream wanted = stream_of(node, device);
  if (same_stream(wanted, current_stream_handle(device))) return;
  before_ = current_stream(device);
  set_current_stream(wanted);
}
OnStream::~OnStream() {
  if (before_) set_current_stream(before_);
}

void UsedStreams::add(Device device) {
  if (!on_device(device) || !backend(device.backend).has_streams()) return;
  void* handle = current_stream_handle(device);
  const bool known = std::any_of(list_.begin(), list_.end(),
                                 [&](const Stream& s) { return s->device == device && same_stream(s, handle); });
  if (!known) list_.push_back(current_stream(device));
}

void UsedStreams::join() {
  for (const Stream& used : list_)
    if (!same_stream(used, current_stream_handle(used->device))) wait_for(used, current_stream(used->device));
}

void hand_over(const Tensor& grad, const Node* consumer) {
  const Device device = grad.device();
  Backend& owner = backend(device.backend);
  if (!owner.has_streams()) return;
  const Stream to = stream_of(consumer, device);
  if (same_stream(to, current_stream_handle(device))) return;
  wait_for(current_stream(device), to);
  owner.stream_uses(device, grad.impl()->storage->data, to->handle);
}

}  // namespace taeda::autograd
