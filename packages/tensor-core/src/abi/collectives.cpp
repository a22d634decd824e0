// Groups of devices over the table that a plug-in's backend hands over.
#include "taeda/lent.h"
#include "taeda/collectives.h"

#include <algorithm>
#include <utility>

#include "abi/bridge.h"
#include "taeda/backend.h"
#include "taeda/parallel.h"
#include "taeda/stream.h"

namespace taeda {
namespace {

static_assert(int(Reduction::Sum) == TAEDA_REDUCE_SUM && int(Reduction::Max) == TAEDA_REDUCE_MAX);

taeda_tensor handle(const Tensor& t) { return reinterpret_cast<taeda_tensor>(t.impl()); }

/// The functions of a backend, with its name for messages.
struct Functions {
  const taeda_collectives& table;
  void* context;
  std::string name;

  template <class Function>
  Function need(Function function, const char* named) const {
    check(function != nullptr, ErrorKind::NotImplemented, "device '", name, "' has no collective '", named, "'");
    return function;
  }
  void ask(const char* function, int32_t status) const {
    if (status != TAEDA_OK) abi::throw_error(status, name + ": " + function);
    abi::settle_errors();
  }
};

class PluginWork final : public DeviceWork {
 public:
  PluginWork(Functions functions, taeda_work work, std::vector<Tensor> used)
      : functions_(std::move(functions)), work_(work), used_(std::move(used)) {}
  ~PluginWork() override {
    if (functions_.table.work_destroy) functions_.table.work_destroy(functions_.context, work_);
  }
  void wait() override {
    const Unlocked unlocked(true);
    functions_.ask("work_wait", functions_.need(functions_.table.work_wait, "work_wait")(functions_.context, work_));
    used_.clear();
  }
  bool done() override {
    int32_t found = 0;
    const auto query = functions_.need(functions_.table.work_query, "work_query");
    functions_.ask("work_query", query(functions_.context, work_, &found));
    return found != 0;
  }

 private:
  Functions functions_;
  taeda_work work_;
  std::vector<Tensor> used_;
};

class PluginGroup final : public DeviceGroup {
 public:
  PluginGroup(Functions functions, Device device, const std::string& name, int rank, int count)
      : functions_(std::move(functions)), device_(device), rank_(rank), count_(count) {
    const auto create = functions_.need(functions_.table.group_create, "group_create");
    const Unlocked unlocked(true);
    functions_.ask("group_create", create(functions_.context, device.index, name.c_str(), rank, count, &group_));
  }
  ~PluginGroup() override {
    if (functions_.table.group_destroy) functions_.table.group_destroy(functions_.context, group_);
  }
  Device device() const override { return device_; }
  int rank() const override { return rank_; }
  int count() const override { return count_; }

  Work all_reduce(const Tensor& from, const Tensor& to, Reduction reduction) override {
    alike("all_reduce", from, to, from.sizes(), to.sizes());
    return begin("all_reduce", functions_.table.all_reduce, {from}, to, handle(from), handle(to), int32_t(reduction));
  }
  Work broadcast(const Tensor& tensor, int root) override {
    check_rank("broadcast", "root", root);
    return begin("broadcast", functions_.table.broadcast, {}, tensor, handle(tensor), int32_t(root));
  }
  Work all_gather(const Tensor& from, const Tensor& to) override {
    alike("all_gather", from, to, from.sizes(), inner("all_gather", "to", to));
    return begin("all_gather", functions_.table.all_gather, {from}, to, handle(from), handle(to));
  }
  Work reduce_scatter(const Tensor& from, const Tensor& to, Reduction reduction) override {
    alike("reduce_scatter", from, to, inner("reduce_scatter", "from", from), to.sizes());
    return begin("reduce_scatter", functions_.table.reduce_scatter, {from}, to, handle(from), handle(to),
                 int32_t(reduction));
  }
  Work send(const Tensor& tensor, int to) override {
    check_rank("send", "to", to);
    return begin("send", functions_.table.send, {tensor}, Tensor(), handle(tensor), int32_t(to));
  }
  Work recv(const Tensor& tensor, int from) override {
    check_rank("recv", "from", from);
    return begin("recv", functions_.table.recv, {}, tensor, handle(tensor), int32_t(from));
  }

 private:
  void check_rank(const char* op, const char* argument, int rank) const {
    check(rank >= 0 && rank < count_, ErrorKind::Value, op, ": argument '", argument, "' must be from 0 to ",
          count_ - 1, ", found ", rank);
  }
  void check_place(const char* op, const Tensor& t) const {
    if (!t.defined() || t.device() != device_ || !t.contiguous())
      fail(ErrorKind::Value, op, ": expected contiguous tensors of device '", to_string(device_), "'");
  }
  /// Sizes below a first dimension of as many places as there are devices.
  IntSpan inner(const char* op, const char* argument, const Tensor& t) const {
    check(t.dim() > 0 && t.size(0) == count_, ErrorKind::Value, op, ": argument '", argument, "' has shape ",
          shape_text(t.sizes()), ", expected ", count_, " places in front");
    return t.sizes().subspan(1);
  }
  void alike(const char* op, const Tensor& from, const Tensor& to, IntSpan a, IntSpan b) const {
    check(from.dtype() == to.dtype() && std::ranges::equal(a, b), ErrorKind::Value, op, ": a tensor of shape ",
          shape_text(from.sizes()), " and dtype ", name(from.dtype()), " does not fit one of shape ",
          shape_text(to.sizes()), " and dtype ", name(to.dtype()));
  }

  template <class Function, class... A>
  Work begin(const char* op, Function function, std::vector<Tensor> read, const Tensor& written, A... arguments) {
    functions_.need(function, op);
    for (const Tensor& t : read) check_place(op, t);
    if (written.defined()) {
      check_place(op, written);
      check(keep_lent(*written.impl()->storage), ErrorKind::Runtime, op, ": the tensor is read-only memory");
      check(!written.requires_grad() || !thread_state.grad_enabled, ErrorKind::Runtime, op,
            ": a tensor that requires grad is not written to; use tensor.detach() or no_grad()");
      read.push_back(written);
    }
    taeda_work work = nullptr;
    functions_.ask(op, function(functions_.context, group_, arguments..., current_stream_handle(device_), &work));
    check(work != nullptr, ErrorKind::Runtime, functions_.name, ": ", op, " gave TAEDA_OK but null as its work");
    if (written.defined()) written.bump_version(0);
    return std::make_unique<PluginWork>(functions_, work, std::move(read));
  }

  Functions functions_;
  Device device_;
  int rank_, count_;
  taeda_group group_ = nullptr;
};

}  // namespace

std::shared_ptr<DeviceGroup> join_group(Device device, const std::string& name, int rank, int count) {
  Backend& owner = backend(device.backend);
  const taeda_backend* plugin = owner.plugin();
  check(plugin && plugin->collectives, ErrorKind::NotImplemented, "device '", owner.name(), "' has no collectives");
  check(count >= 1 && rank >= 0 && rank < count, ErrorKind::Value, "group: rank ", rank, " of ", count,
        " devices does not exist");
  const Functions functions{*plugin->collectives, plugin->context, owner.name()};
  return std::make_shared<PluginGroup>(functions, device, name, rank, count);
}

}  // namespace taeda
