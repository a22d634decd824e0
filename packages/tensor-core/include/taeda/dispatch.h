// The operator table: operator x (backend kernel | layer entry), with one boxed calling convention beside the typed
// one.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "taeda/generator.h"
#include "taeda/tensor.h"

struct taeda_call;  // taeda/abi.h

namespace taeda {

/// One boxed argument or result.
using Value = std::variant<std::monostate, Tensor, Scalar, int64_t, bool, double, std::string, DType, Device, Shape,
                           std::vector<Tensor>, std::vector<std::optional<Tensor>>, std::vector<double>, Generator>;
using Values = std::vector<Value>;

struct OpEntry;
/// Boxed calling convention of a form: arguments in schema order in, results out.
using BoxedFn = std::function<Values(const OpEntry& op, KeySet keys, Values arguments)>;

/// A kernel behind the C ABI. It is reached from typed calls without boxing: arguments are packed on the stack.
struct CKernel {
  int32_t (*fn)(void* context, const taeda_call* call);
  void* context;
};

/// What the backends have for one operator; its forms share it.
struct Kernels {
  void* typed[kMaxBackends] = {};                // full-signature functions of Direct operators, else typed kernels
  BoxedFn* boxed[kMaxBackends] = {};             // Structured: arguments are outputs first, then inputs; Direct: inputs
  const CKernel* c[kMaxBackends] = {};           // those behind the C ABI
  const char* registered_by[kMaxBackends] = {};  // for messages: who registered which kernel
};

enum class Form : uint8_t { Function, InPlace, Out };
enum class Kind : uint8_t { Structured, Direct, View, Composite };

/// One form of one operator ("add", "add_", "add.out"): everything dispatch and tools know about it.
/// Entries are zero in the library's file; they are filled when it is loaded, before any other initialiser runs
/// (`declare` in taeda/boxing.h), so that kernels register into whole ones.
struct OpEntry {
  const char* name = nullptr;    // unique: "add", "max.dim", "add_", "add.out"
  const char* schema = nullptr;  // "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
  Form form = Form::Function;
  Kind kind = Kind::Structured;
  bool core = false;               // a backend must implement it
  uint16_t id = 0;                 // position in the table; 0 is "none"
  void* layers[kLayerSlots] = {};  // typed entries by slot_of(layer), null: the call goes through to the next
  Kernels* kernels = nullptr;      // null for views and composites, which work on every backend by what they call
  void* compute = nullptr;         // typed like a layer's entry: what stands below all of them
  /// Calls the operator from its top, where its operands are not what its layers see; null for others, which
  /// `go_on_boxed` calls with all keys.
  Values (*call_boxed)(Values arguments) = nullptr;
  /// Goes on with the layers of `rest` and, below them, with `compute`; null for operators without generated code. The
  /// arguments are made what the typed call reads.
  Values (*go_on_boxed)(const OpEntry& op, KeySet rest, Values& arguments) = nullptr;
  void* boxed_layer_adapter = nullptr;  // typed entry that boxes and calls boxed_layers[its layer]
  BoxedFn* boxed_layers[kLayerSlots] = {};
  void* boxed_kernel_adapter =
      nullptr;  // typed kernel (or direct function) that boxes for kernels->boxed[backend of the output]
  void* c_kernel_adapter = nullptr;  // typed kernel that packs for kernels->c[backend of the output]
};

/// Adds to the table at load time; duplicate names are an error.
TAEDA_API uint16_t register_op(OpEntry* entry);
/// Adds in the place of an operator of the same name, which keeps its number and is found under it alone.
TAEDA_API uint16_t replace_op(OpEntry* entry);
/// Null when absent.
TAEDA_API OpEntry* find_op(std::string_view name);
TAEDA_API OpEntry* op_by_id(uint16_t id);
TAEDA_API const std::vector<OpEntry*>& all_ops();

/// Typed registration, used by our own backends through `kernel<op::add>(kCPU, fn)` (generated op tags).
TAEDA_API void register_kernel(OpEntry* op, BackendId backend, void* kernel, const char* who);
/// `entry` takes what the operator's `Fn` takes and, behind it, the operator: `const OpEntry&`.
TAEDA_API void register_layer(OpEntry* op, Layer layer, void* entry);
/// The backend of a call. Mixed devices: 0-d cpu tensors are let through, anything else is a RuntimeError naming both.
TAEDA_API BackendId resolve_backend(const OpEntry& op, KeySet keys, std::span<const Tensor* const> arguments);
/// NotImplementedError listing the backends that have the kernel and who registered it.
[[noreturn]] TAEDA_API void no_kernel(const OpEntry& op, BackendId backend);
/// What stands in for a kernel that `id` lacks: null for backends without memory, the typed adapter of a fallback where
/// the user has chosen one; otherwise no_kernel(). `called` is the form, `owner` the entry that holds the kernels.
TAEDA_API void* missing_kernel(const OpEntry& called, OpEntry& owner, BackendId id);
/// Errors common to in-place and out= forms (read-only storage, dtype that cannot be cast, shape that does not fit,
/// self-overlap).
TAEDA_API void check_inplace(const OpEntry& op, const Tensor& self, IntSpan result_sizes, DType result_dtype);

/// A target must not be a view whose elements share places (expanded, overlapping windows).
TAEDA_API void check_places(const OpEntry& op, const Tensor& target, const char* argument);

/// Whether two tensors may share bytes, and whether they are exactly the same elements in the same places.
TAEDA_API bool overlaps(const Tensor& a, const Tensor& b);
TAEDA_API bool same_place(const Tensor& a, const Tensor& b);

/// An operator tag generated per op: `struct add { using Kernel = void(...); static OpEntry entry; }`.
template <class Op>
void kernel(BackendId backend, typename Op::Kernel* fn, const char* who = "taeda-tensor-core") {
  register_kernel(&Op::entry, backend, reinterpret_cast<void*>(fn), who);
}

}  // namespace taeda
