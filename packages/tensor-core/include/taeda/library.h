// Operators, kernels and layers that are added and taken away while the program runs: what Python and C plug-ins stand
// on.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <shared_mutex>
#include <span>

#include "taeda/dispatch.h"
#include "taeda/spec.h"

namespace taeda {

/// What an argument of a schema may be; `optional` and `list` say the rest.
enum class ArgumentType : uint8_t { Tensor, Operand, Scalar, Int, Float, Bool, Str, DType, Device, Generator };
/// Its word in schemas.
TAEDA_API const char* schema_word(ArgumentType type) noexcept;

struct SchemaArgument {
  std::string name;
  ArgumentType type = ArgumentType::Tensor;
  bool list = false;
  bool optional_items = false;  // Tensor?[]
  bool optional = false;        // None is a value
  bool keyword_only = false;
  bool has_default = false;
  Value missing;           // the default
  std::string alias = {};  // letter of the memory it shows: "a" of Tensor(a) and Tensor(a!)
  bool written = false;    // Tensor(a!)
  std::string when = {};   // Tensor(a! if training): written only when this argument is true
};
struct SchemaResult {
  std::string name;
  ArgumentType type = ArgumentType::Tensor;
  bool list = false;
  std::string alias = {};  // letter of the argument whose memory it may show
};
/// `"mypkg::scale(Tensor self, float k=1.0) -> Tensor"`, taken apart.
struct Schema {
  std::string text, name;
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaResult> results;
};
/// ValueError that names the schema, the place and what was expected there.
TAEDA_API Schema parse_schema(std::string_view text);
/// The boxed calling convention of an entry of the table: an out= form takes its outputs first, an in-place form gives
/// none.
TAEDA_API Schema boxed_schema(const OpEntry& op);
/// The same, read once.
TAEDA_API const Schema& schema_of(const OpEntry& op);
/// Whether a call with these arguments writes to argument `i`.
TAEDA_API bool writes_to(const Schema& schema, size_t i, const Values& arguments);
/// Calls `visit` for every tensor of a value that is there.
template <class Visit>
void each_tensor_of(const Value& value, const Visit& visit) {
  if (auto* t = std::get_if<Tensor>(&value)) {
    if (t->defined()) visit(*t);
  } else if (auto* list = std::get_if<std::vector<Tensor>>(&value)) {
    for (const Tensor& item : *list)
      if (item.defined()) visit(item);
  } else if (auto* some = std::get_if<std::vector<std::optional<Tensor>>>(&value)) {
    for (const auto& item : *some)
      if (item && item->defined()) visit(*item);
  }
}

/// How an operator made at run time behaves; whatever is empty is absent.
struct RuntimeFunctions {
  /// Shapes and dtypes of the results. Without it kernels allocate their results themselves and return them.
  std::function<std::vector<Spec>(const Values& arguments)> infer;
  /// An implementation in terms of other operators, for backends without a kernel; differentiated by what it calls.
  std::function<Values(const Values& arguments)> composite;
  /// Gradients of the arguments, one value each (none where there is no gradient), from those of the results.
  std::function<Values(const Values& arguments, const Values& results, const Values& gradients)> derivative;
  /// The operator over a batch: for each argument the dimension of its batch or -1; gives the results and their
  /// dimensions.
  std::function<std::pair<Values, std::vector<int64_t>>(const Values& arguments, const std::vector<int64_t>& dims)>
      batching;
};

/// An operator without generated code. Its kernels and layers are the boxed ones of its entry.
struct TAEDA_API RuntimeOp : OpEntry {
  Schema parsed;
  std::string who;
  Kernels own_kernels;
  bool live = true;
  RuntimeOp(Schema schema, std::string who);
  std::shared_ptr<const RuntimeFunctions> functions() const;
  void set_functions(RuntimeFunctions functions);

 private:
  mutable std::shared_mutex lock_;
  std::shared_ptr<const RuntimeFunctions> functions_ = std::make_shared<RuntimeFunctions>();
};

/// Null for operators of the built-in table.
TAEDA_API RuntimeOp* as_runtime(const OpEntry* op);
/// Puts an operator named "namespace::name" into the table. ValueError for names without a namespace; RuntimeError
/// naming both owners when it is defined already. One that was removed is made again in its old place.
TAEDA_API RuntimeOp* define_operator(std::string_view schema, RuntimeFunctions functions, std::string who);
/// Takes its functions, kernels and layers away: calls raise RuntimeError. The entry stays, since graphs may refer to
/// it.
TAEDA_API void remove_operator(RuntimeOp* op);

/// Calls any operator from its top, with arguments in the order of boxed_schema().
TAEDA_API Values call_operator(const OpEntry& op, Values arguments);

/// Copies the arguments to the cpu, calls the operator there, and gives the results on the device; counted as a
/// fallback.
TAEDA_API Values compute_on_cpu(const OpEntry& op, Device device, Values arguments);

/// Kernels and layers with an owner, which can be taken away again. `replace`: also where there is one, which then
/// comes back.
TAEDA_API uint64_t add_kernel(OpEntry* op, BackendId backend, BoxedFn fn, std::string who, bool replace = false);
/// A kernel of a composite or view. `recorded`: it calls operators that are differentiated, and is taken while a
/// gradient is recorded too. KernelDeclined out of it means that the composite is taken.
TAEDA_API uint64_t add_composite_kernel(OpEntry* op, BackendId backend, BoxedFn fn, std::string who, bool replace,
                                        bool recorded);
/// The same for a kernel behind the C ABI, of an operator that has generated code.
TAEDA_API uint64_t add_c_kernel(OpEntry* op, BackendId backend, CKernel kernel, std::string who, bool replace = false);
/// Several layers may stand at a position of an operator, the one that came last is met first; those of the library and
/// of automatic differentiation are alone (`may_share`).
TAEDA_API uint64_t add_layer(OpEntry* op, Layer layer, BoxedFn fn, std::string who);
/// The same for a function that its owner keeps as long as the process lives.
TAEDA_API uint64_t add_kept_layer(OpEntry* op, Layer layer, BoxedFn* fn, std::string who);
/// The same for one that is alone at its position. RuntimeError that names both owners where there is another.
TAEDA_API uint64_t add_sole_layer(OpEntry* op, Layer layer, BoxedFn* fn, std::string who);
/// Whether a position takes more than one layer.
constexpr bool may_share(Layer layer) noexcept {
  return int(layer) > int(Layer::PreDispatch) && int(layer) < kMaxLayers;
}
/// One registration for all of `ops`; none of them is made when one fails.
TAEDA_API uint64_t add_layers(const std::vector<OpEntry*>& ops, Layer layer, const BoxedFn& fn, const std::string& who);
/// For the time of a layer's function: what it calls goes on below it, at first with the layers of its position that
/// were there before it.
class TAEDA_API BelowLayer {
 public:
  explicit BelowLayer(Layer layer) noexcept;
  ~BelowLayer();
  BelowLayer(const BelowLayer&) = delete;

 private:
  uint64_t saved_;
};
/// Nothing happens when the registration is gone already.
TAEDA_API void remove_registration(uint64_t registration);

// What functions of Python and of plug-ins give is checked before anybody relies on it.

/// Whose results these are, for messages: "the kernel of mypkg", "layer 'mine'".
struct ResultsOf {
  const OpEntry& op;
  const Schema& schema;
  std::string_view who;
  std::span<const Tensor> arguments = {};  // in calling order; undefined where it is no tensor
};
/// Gradients that nobody asked for are the only results that may be absent; `mask` has a bit for each one that is
/// wanted.
TAEDA_API bool may_be_absent(const Schema& schema, size_t i, int64_t mask);
/// Value of the argument output_mask; 0 without one.
TAEDA_API int64_t mask_of(const Schema& schema, const Values& arguments);
TAEDA_API std::vector<Tensor> tensor_arguments(const Values& arguments);
/// Where the results of a call belong by its arguments; nothing where these do not tell.
TAEDA_API std::optional<Device> device_of_call(const Values& arguments);
/// RuntimeError when a layer's results lie on another device than the call.
TAEDA_API void check_layer_results(const ResultsOf& made, const Values& arguments, const Values& results);
/// The same for a direct kernel; TypeError and ValueError where element type or shape are known and others.
TAEDA_API void check_kernel_results(const ResultsOf& made, Device device, std::span<const Tensor> results);

/// How the autograd package records operators made at run time; null without it.
extern TAEDA_API Values (*record_runtime_op)(RuntimeOp& op, KeySet keys, Values arguments);
/// What a layer does next that has taken itself out of `rest`: the other layers in it, then the computation.
TAEDA_API Values go_on(const OpEntry& op, KeySet rest, Values arguments);
/// The layers and the backend of a call with these arguments, now and here.
TAEDA_API KeySet keys_of_call(const Values& arguments);

/// Memory that its owner alone can read, for a device from Python: addresses are numbers of its own, never 0, to which
/// byte offsets are added.
class OwnMemory {
 public:
  virtual ~OwnMemory() = default;
  virtual uintptr_t allocate(int index, size_t nbytes) = 0;
  virtual void release(int index, uintptr_t address, size_t nbytes) noexcept = 0;
  virtual void write(int index, uintptr_t to, const void* host, size_t nbytes) = 0;
  virtual void read(int index, void* host, uintptr_t from, size_t nbytes) = 0;
};

/// A device whose memory is the host's, or its own, with kernels from Python or anywhere.
struct HostBackend {
  std::string name;
  int device_count = 1;
  std::string who;                           // for messages
  std::map<std::string, std::string> lacks;  // capabilities, with reasons
  std::string properties;                    // a JSON object, or nothing
  std::shared_ptr<OwnMemory> memory;         // null: the host's
};
/// ValueError for a name that is none, RuntimeError naming both owners for one that is taken. A device that was removed
/// comes back with its former number.
TAEDA_API BackendId host_backend(HostBackend given);
/// RuntimeError naming both owners when there is a device of this name.
TAEDA_API void check_device_free(const std::string& name, const std::string& who);
/// Who is named then.
TAEDA_API void note_device_owner(const std::string& name, std::string who);
/// Takes the name away; tensors that are there keep their memory.
TAEDA_API void remove_host_backend(BackendId id);
/// Whether the host can read the memory of such a device.
TAEDA_API bool is_host_backend(BackendId id);

}  // namespace taeda
