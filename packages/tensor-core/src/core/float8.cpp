// What operators do with tensors of float8: kernels that move elements take them as bytes, some compute in float32,
// the others refuse. See Note [Layer of float8].
#include "taeda/float8.h"

#include <algorithm>
#include <mutex>

#include "core/runtime.h"
#include "taeda/custom_dtype.h"
#include "taeda/elementwise.h"
#include "taeda/library.h"
#include "taeda/ops/cast.h"

namespace taeda {
namespace {

// Note [Layer of float8]
// No kernel has a loop for float8, and none is asked whether it has: such tensors carry the key of a layer below all
// others, which stands in the table of every operator that has kernels. It is entered when the first such tensor is
// made, and calls without one never see it. Views and composites pass; conversions and copies know float8 themselves.

enum class Way : uint8_t {
  Kernel,   // knows them
  Bytes,    // moves elements, whose places in the schema are given
  Float32,  // computed in float32 and rounded once
  Asked,    // the same where a dtype for the result is given
};
struct Rule {
  std::string_view name;  // as the schema begins
  Way way;
  int first = 0, second = -1;  // arguments that hold elements
};
constexpr Rule kRules[] = {
    {"abs", Way::Float32},
    {"addmm", Way::Float32},
    {"addmv", Way::Float32},
    {"all", Way::Float32},
    {"any", Way::Float32},
    {"bmm", Way::Float32},
    {"cast", Way::Kernel},
    {"cat", Way::Bytes},
    {"clone", Way::Kernel},
    {"copy_same_", Way::Kernel},
    {"cumprod", Way::Asked},
    {"cumsum", Way::Asked},
    {"dot", Way::Float32},
    {"embedding", Way::Bytes},
    {"eq", Way::Float32},
    {"fill_", Way::Kernel},
    {"gather", Way::Bytes},
    {"index", Way::Bytes},
    {"index_copy", Way::Bytes, 0, 3},
    {"index_fill", Way::Bytes, 0, 3},
    {"index_put_", Way::Bytes, 0, 2},
    {"index_select", Way::Bytes},
    {"isfinite", Way::Float32},
    {"isinf", Way::Float32},
    {"isnan", Way::Float32},
    {"linear", Way::Float32},
    {"masked_fill", Way::Bytes, 0, 2},
    {"mean", Way::Asked},
    {"mm", Way::Float32},
    {"mv", Way::Float32},
    {"ne", Way::Float32},
    {"nonzero", Way::Float32},
    {"prod", Way::Asked},
    {"scatter", Way::Bytes, 0, 3},
    {"sum", Way::Asked},
    {"tril", Way::Bytes},
    {"triu", Way::Bytes},
    {"where", Way::Bytes, 1, 2},
};
static_assert(std::ranges::is_sorted(kRules, {}, &Rule::name));

const Rule* rule_of(const OpEntry& op) {
  const std::string_view schema = op.schema, name = schema.substr(0, schema.find('('));
  const auto found = std::ranges::lower_bound(kRules, name, {}, &Rule::name);
  return found != std::end(kRules) && found->name == name ? found : nullptr;
}

[[noreturn]] void refuse(const OpEntry& op, DType dtype) {
  fail(ErrorKind::NotImplemented, op.name, ": not implemented for dtype ", name(dtype),
       "; convert with .to(taeda.float32) first");
}

/// The conversions here are no calls of the program's.
class Unseen {
 public:
  Unseen() noexcept : saved_(thread_state.excluded) { thread_state.excluded |= ~((uint64_t(1) << kLayerShift) - 1); }
  ~Unseen() { restore_excluded(saved_); }
  Unseen(const Unseen&) = delete;

 private:
  uint64_t saved_;
};

/// Tensors in the place of float8 ones, for one call.
class Call {
 public:
  Call(const OpEntry& op, const Rule& rule, Values& arguments) : op_(op), rule_(rule), arguments_(arguments) {
    for (const Value& value : arguments_) each_tensor_of(value, [this](const Tensor& t) { meet(t); });
    // An out= form has its outputs in front.
    leading_ = op.form == Form::Out ? 1 : 0;
  }

  Values run() {
    if (rule_.way == Way::Bytes) return as_bytes();
    if (op_.form != Form::Function || (rule_.way == Way::Asked && !asks())) refuse(op_, dtype_);
    return as_float32();
  }

 private:
  /// All tensors of a float8 dtype must be of one.
  void meet(const Tensor& t) {
    if (!is_float8(t.dtype())) return;
    if (found_ && t.dtype() != dtype_) promote(dtype_, t.dtype());
    dtype_ = t.dtype();
    found_ = true;
  }
  bool asks() const {
    return std::ranges::any_of(arguments_, [](const Value& value) {
      const DType* asked = std::get_if<DType>(&value);
      return asked && !is_float8(*asked);
    });
  }

  Values go_on() const {
    KeySet backends;
    for (const Value& value : arguments_)
      each_tensor_of(value, [&](const Tensor& t) { backends = backends | t.keys().backends(); });
    return op_.go_on_boxed(op_, backends, arguments_);
  }

  /// The tensor in the dtype; a number becomes one of its numbers, other tensors have no dtype in common with it.
  Tensor typed(const Tensor& t) const {
    if (t.dtype() == dtype_) return t;
    if (t.dim() > 0) promote(dtype_, t.dtype());
    return ops::cast(t, dtype_);
  }

  Tensor bytes_of(const Tensor& t) {
    const Tensor source = typed(t);
    Tensor shown = bare_alias(source);
    set_dtype(shown.impl(), DType::UInt8);
    shown.impl()->flags |= source.impl()->flags & kDetachedData;
    shown_.push_back({source, shown});
    return shown;
  }
  Value code_of(const Scalar& number) const {
    const float value = number.to<float>();
    uint8_t code = 0;
    if (is_custom(dtype_)) return custom_dtype(dtype_).encode(&value, &code, 1), int64_t(code);
    return int64_t(visit_float8(dtype_, [value]<auto To, auto From>() { return To(value); }));
  }
  void to_bytes(int place) {
    if (place < 0) return;
    Value& value = arguments_[size_t(place)];
    if (auto* one = std::get_if<Tensor>(&value)) value = bytes_of(*one);
    else if (auto* number = std::get_if<Scalar>(&value)) value = code_of(*number);
    else if (auto* list = std::get_if<std::vector<Tensor>>(&value))
      for (Tensor& t : *list) t = bytes_of(t);
  }
  /// What a call gave another shape (out=) shows its new memory as numbers again.
  void give_back() const {
    for (const auto& [source, shown] : shown_) {
      if (source.bytes() == shown.bytes() && std::ranges::equal(source.sizes(), shown.sizes())) continue;
      assign_storage(source, shown);
      set_dtype(source.impl(), dtype_);
    }
  }
  void from_bytes(Value& result) const {
    auto* t = std::get_if<Tensor>(&result);
    if (!t || t->dtype() != DType::UInt8) return;
    for (const auto& [source, shown] : shown_)
      if (t->same(shown)) {
        *t = source;
        return;
      }
    set_dtype(t->impl(), dtype_);
  }
  Values as_bytes() {
    // Sums are no moves.
    for (const Value& value : arguments_)
      if (const bool* accumulate = std::get_if<bool>(&value); accumulate && *accumulate && rule_.name == "index_put_")
        refuse(op_, dtype_);
    if (leading_) to_bytes(0);
    to_bytes(leading_ + rule_.first);
    if (rule_.second >= 0) to_bytes(leading_ + rule_.second);
    Values results = go_on();
    give_back();
    for (Value& result : results) from_bytes(result);
    return results;
  }

  Values as_float32() {
    for (Value& value : arguments_)
      if (auto* t = std::get_if<Tensor>(&value)) *t = ops::cast(typed(*t), DType::Float32);
    Values results = go_on();
    if (rule_.way == Way::Asked) return results;
    for (Value& result : results)
      if (auto* t = std::get_if<Tensor>(&result); t && t->dtype() == DType::Float32) *t = ops::cast(*t, dtype_);
    return results;
  }

  const OpEntry& op_;
  const Rule& rule_;
  Values& arguments_;
  DType dtype_ = DType::Float8E4M3fn;
  bool found_ = false;
  int leading_ = 0;
  std::vector<std::pair<Tensor, Tensor>> shown_;
};

Values call(const OpEntry& op, KeySet, Values arguments) {
  const Unseen unseen;
  const Rule* rule = rule_of(op);
  if (rule) return Call(op, *rule, arguments).run();
  for (const Value& value : arguments)
    each_tensor_of(value, [&op](const Tensor& t) {
      if (is_float8(t.dtype())) refuse(op, t.dtype());
    });
  return op.go_on_boxed(op, keys_of_call(arguments).backends(), arguments);
}

/// Once, before the first tensor that needs it.
void enter_layer() {
  static BoxedFn entry = call;
  constexpr int slot = slot_of(Layer::Float8);
  for (OpEntry* op : all_ops()) {
    if (!op || !(op->kind == Kind::Structured || op->kind == Kind::Direct) || !op->go_on_boxed) continue;
    const Rule* rule = rule_of(*op);
    if (rule && rule->way == Way::Kernel) continue;
    op->boxed_layers[slot] = &entry;
    op->layers[slot] = op->boxed_layer_adapter;
  }
}

}  // namespace

KeySet float8_key() {
  static std::once_flag entered;
  std::call_once(entered, enter_layer);
  return KeySet::of(Layer::Float8);
}

}  // namespace taeda
