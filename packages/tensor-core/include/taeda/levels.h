// Levels: layers that are put into force while the program runs, one within another, and what tensors carry for them.
// See docs/design/layers.md.
#pragma once
#include <string>

#include "taeda/autograd_api.h"
#include "taeda/dispatch.h"

namespace taeda {

class Level;
struct Payload;
TAEDA_API void destroy(Level* level) noexcept;
TAEDA_API void destroy(Payload* payload) noexcept;

/// One instance of a layer: one vmap, one jvp. Levels of a thread stand one above another, the innermost (the last that
/// was put into force) on top. A call goes to the topmost level for which one of its tensors carries something, or that
/// sees all calls; there the level's own rule stands in the place of the operator.
class TAEDA_API Level : public Counted {
 public:
  /// `name` stands in messages ("vmap").
  explicit Level(std::string name, bool sees_all = false) : name_(std::move(name)), sees_all_(sees_all) {}
  virtual ~Level();

  const std::string& name() const noexcept { return name_; }
  bool sees_all() const noexcept { return sees_all_; }
  /// 1 for the outermost of its thread; 0 while it is not in force.
  int depth() const noexcept { return depth_; }

  /// Whether call() wants this operator. One that it does not want is taken apart into those that it consists of; only
  /// composites can be.
  virtual bool takes(const OpEntry& op) const;
  /// What an operator does at this level. Runs below the level: calls in it reach the levels outside. As to the layers
  /// below levels, it runs in the state in which the level was put into force; autograd records as the thread's mode
  /// says.
  virtual Values call(const OpEntry& op, Values arguments) = 0;

 private:
  friend class LevelStack;
  std::string name_;
  bool sees_all_;
  int depth_ = 0;
  Level* outer_ = nullptr;  // kept by the thread
  uint64_t included_ = 0, excluded_ = 0;
};

/// Puts a level into force on this thread, within those that are. RuntimeError when it is in force already.
TAEDA_API void push_level(Ref<Level> level);
/// Ends the innermost level. RuntimeError when `level` is another one.
TAEDA_API void pop_level(const Level& level);
/// The innermost level in force, or null.
TAEDA_API Level* innermost_level() noexcept;

/// A level in force for a scope.
class InForce {
 public:
  explicit InForce(Ref<Level> level) : level_(std::move(level)) { push_level(level_); }
  ~InForce() { pop_level(*level_); }
  InForce(const InForce&) = delete;

 private:
  Ref<Level> level_;
};

/// The operator in terms of others: its composite form, run where the caller stands. RuntimeError when it has none.
TAEDA_API Values decompose_call(const OpEntry& op, Values arguments);
TAEDA_API bool is_composite(const OpEntry& op);

/// What a tensor carries for a level. May be shared by tensors.
struct TAEDA_API Payload : Counted {
  const Ref<Level> level;
  explicit Payload(Ref<Level> of) : level(std::move(of)) {}
  virtual ~Payload();
  /// For Python's garbage collector: visits the Python objects that this payload owns, and lets go of them.
  virtual int traverse(PyVisit, void*) const { return 0; }
  virtual void clear() noexcept {}
};

/// The payloads of a tensor, that of the innermost level first.
struct PayloadLink {
  Ref<Payload> payload;
  PayloadLink* next;
};

/// What `tensor` carries for the level; null when nothing.
TAEDA_API Payload* payload_of(const Tensor& tensor, const Level& level) noexcept;
template <class T>
T* payload_of(const Tensor& tensor, const Level& level) noexcept {
  return dynamic_cast<T*>(payload_of(tensor, level));
}
/// Gives a tensor something to carry, in the place of what it carries for that level.
TAEDA_API void set_payload(const Tensor& tensor, Ref<Payload> payload);
/// Takes it away. RuntimeError for the last payload of a tensor without memory.
TAEDA_API void drop_payload(const Tensor& tensor, const Level& level);

/// A tensor that is nothing but what it carries: it has a shape, a dtype and a device, and no memory.
TAEDA_API Tensor carrier(Ref<Payload> payload, IntSpan sizes, DType dtype, Device device);
inline bool is_carrier(const Tensor& t) noexcept { return (t.impl()->flags & kCarries) && !t.impl()->storage; }
[[noreturn]] TAEDA_API void refuse_carrier(const Tensor& tensor, const char* op);
/// Before memory is read by code that is no operator: RuntimeError that names `op` and the level.
inline void check_has_memory(const Tensor& tensor, const char* op) {
  if (is_carrier(tensor)) [[unlikely]]
    refuse_carrier(tensor, op);
}

// --- for src/core ---
/// Of a tensor that dies.
void end_payloads(TensorImpl* impl) noexcept;
/// What has no memory is nothing without its payloads: another tensor of its shape carries them too.
void share_carried(TensorImpl* to, const Tensor& from);

}  // namespace taeda
