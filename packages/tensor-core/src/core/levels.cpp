// Levels of a thread, the way of a call to them, and the payloads of tensors.
#include "taeda/levels.h"

#include <mutex>

#include "core/fork.h"
#include "taeda/library.h"

namespace taeda {

namespace {

constexpr uint64_t kLevelBit = KeySet::of(Layer::Transform).bits();
/// The layers that a call meets behind the levels.
constexpr uint64_t kBehind = (kLevelBit - 1) & ~((uint64_t(1) << kLayerShift) - 1);
/// Not of the state in which a level was put into force: whether gradients are recorded is asked at each call, since
/// derivatives are taken inside of levels, and `no_grad` stands there.
constexpr uint64_t kAutogradBit = KeySet::of(Layer::Autograd).bits();

constinit thread_local Level* innermost __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace

/// What only this file does with a level.
class LevelStack {
 public:
  static Level* outer(const Level& level) noexcept { return level.outer_; }

  static void push(Level* level) {
    check(level->depth_ == 0, ErrorKind::Runtime, "push_level: level '", level->name_, "' is in force already");
    level->outer_ = innermost;
    level->depth_ = innermost ? innermost->depth_ + 1 : 1;
    level->included_ = thread_state.included & kLevelBit;
    level->excluded_ = thread_state.excluded & kBehind & ~kAutogradBit;
    innermost = level;
    level->retain();
    if (level->sees_all_) thread_state.included |= kLevelBit;
  }
  static void pop(const Level& level) {
    check(innermost == &level, ErrorKind::Runtime, "pop_level: level '", level.name_, "' is not the innermost one");
    Level* ended = innermost;
    innermost = ended->outer_;
    thread_state.included = (thread_state.included & ~kLevelBit) | ended->included_;
    ended->outer_ = nullptr;
    ended->depth_ = 0;
    Ref<Level>::adopt(ended).reset();
  }

  /// What is said of a level that a tensor needs and that is not there.
  static std::string absence(const Level& level) {
    return level.depth_ ? "which is not in force here (its own rule runs, that of a level outside, or another thread)"
                        : "which has ended";
  }

  /// Below a level for a scope.
  class Below {
   public:
    explicit Below(const Level& level) noexcept
        : inner_(innermost), included_(thread_state.included), excluded_(thread_state.excluded) {
      innermost = level.outer_;
      thread_state.included = (included_ & ~kLevelBit) | level.included_;
      const bool records = thread_state.grad_enabled && !thread_state.inference_mode;
      thread_state.excluded = (excluded_ & ~kBehind) | level.excluded_ | (records ? 0 : kAutogradBit);
    }
    ~Below() {
      innermost = inner_;
      thread_state.included = (thread_state.included & ~kLevelBit) | (included_ & kLevelBit);
      restore_excluded(excluded_);
    }
    Below(const Below&) = delete;

   private:
    Level* inner_;
    uint64_t included_, excluded_;
  };
};

namespace {

bool in_force(const Level& level) noexcept {
  for (const Level* each = innermost; each; each = LevelStack::outer(*each))
    if (each == &level) return true;
  return false;
}

Level* higher(Level* a, Level* b) noexcept { return !a || (b && b->depth() > a->depth()) ? b : a; }

/// The level for which a tensor carries something; null where none is in force.
Level* level_of(const Tensor& t, const char* op) {
  if (!(t.impl()->flags & kCarries)) return nullptr;
  for (const PayloadLink* link = t.impl()->payload; link; link = link->next)
    if (in_force(*link->payload->level)) return link->payload->level.get();
  if (is_carrier(t)) refuse_carrier(t, op);
  return nullptr;  // what it carries is of no concern here, and it has values of its own
}

Level* topmost(const OpEntry& op, const Values& arguments) {
  Level* found = innermost;
  while (found && !found->sees_all()) found = LevelStack::outer(*found);
  for (const Value& value : arguments)
    each_tensor_of(value, [&](const Tensor& t) { found = higher(found, level_of(t, op.name)); });
  return found;
}

/// Stands in every operator's table at the position of levels.
Values enter(const OpEntry& op, KeySet keys, Values arguments) {
  Level* level = topmost(op, arguments);
  if (!level) return go_on(op, keys.without(Layer::Transform), std::move(arguments));
  if (!level->takes(op)) return decompose_call(op, std::move(arguments));
  const Ref<Level> kept = Ref<Level>::share(level);
  const LevelStack::Below below(*level);
  return level->call(op, std::move(arguments));
}

/// The operators whose tables have the entry.
struct Covered {
  ForkLock lock;
  size_t count = 1;
  BoxedFn entry = enter;
};
Covered& covered = *new Covered;

/// Puts the entry before every operator that there is by now.
void cover_operators() {
  const std::lock_guard guard(covered.lock);
  for (; covered.count < all_ops().size(); ++covered.count)
    add_sole_layer(all_ops()[covered.count], Layer::Transform, &covered.entry, "the levels of taeda-tensor-core");
}

PayloadLink** place_of(TensorImpl* impl, const Level& level) noexcept {
  PayloadLink** at = &impl->payload;
  while (*at && (*at)->payload->level.get() != &level) at = &(*at)->next;
  return at;
}

}  // namespace

Level::~Level() = default;
Payload::~Payload() = default;
void destroy(Level* level) noexcept { delete level; }
void destroy(Payload* payload) noexcept { delete payload; }

bool is_composite(const OpEntry& op) {
  const RuntimeOp* own = as_runtime(&op);
  return own ? bool(own->functions()->composite) : op.kind == Kind::Composite;
}
bool Level::takes(const OpEntry& op) const { return !is_composite(op); }

Values decompose_call(const OpEntry& op, Values arguments) {
  check(is_composite(op), ErrorKind::Runtime, op.name, ": this operator has no composite form");
  if (const RuntimeOp* own = as_runtime(&op)) return own->functions()->composite(arguments);
  return go_on(op, keys_of_call(arguments).backends(), std::move(arguments));
}

void push_level(Ref<Level> level) {
  cover_operators();
  LevelStack::push(level.get());
}
void pop_level(const Level& level) { LevelStack::pop(level); }
Level* innermost_level() noexcept { return innermost; }

Payload* payload_of(const Tensor& tensor, const Level& level) noexcept {
  if (!tensor.defined() || !(tensor.impl()->flags & kCarries)) return nullptr;
  PayloadLink* link = *place_of(tensor.impl(), level);
  return link ? link->payload.get() : nullptr;
}

void set_payload(const Tensor& tensor, Ref<Payload> payload) {
  TensorImpl* impl = tensor.impl();
  if (!(impl->flags & kCarries)) {
    impl->payload = nullptr;
    impl->flags |= kCarries;
    impl->keys = impl->keys | KeySet::of(Layer::Transform);
  }
  if (PayloadLink* link = *place_of(impl, *payload->level)) {
    link->payload = std::move(payload);
    return;
  }
  // Innermost first; those of levels that have ended stand last.
  PayloadLink** at = &impl->payload;
  while (*at && (*at)->payload->level->depth() > payload->level->depth()) at = &(*at)->next;
  *at = new PayloadLink{std::move(payload), *at};
}

void drop_payload(const Tensor& tensor, const Level& level) {
  if (!payload_of(tensor, level)) return;
  TensorImpl* impl = tensor.impl();
  check(impl->storage || impl->payload->next, ErrorKind::Runtime, "drop_payload: a tensor of level '", level.name(),
        "' has no memory, and is nothing without its payload");
  PayloadLink** at = place_of(impl, level);
  const PayloadLink* gone = std::exchange(*at, (*at)->next);
  if (!impl->payload) {
    impl->flags &= uint8_t(~kCarries);
    impl->keys = impl->keys.without(Layer::Transform);
  }
  delete gone;
}

Tensor carrier(Ref<Payload> payload, IntSpan sizes, DType dtype, Device device) {
  Tensor made = shape_only(sizes, dtype, device);
  set_payload(made, std::move(payload));
  return made;
}

void refuse_carrier(const Tensor& tensor, const char* op) {
  const Level& level = *tensor.impl()->payload->payload->level;
  fail(ErrorKind::Runtime, op, ": a tensor of shape ", shape_text(tensor.sizes()), " belongs to level '", level.name(),
       "', ", in_force(level) ? "and has no memory that could be read" : LevelStack::absence(level));
}

void share_carried(TensorImpl* to, const Tensor& from) {
  if (!is_carrier(from)) return;
  const Tensor sharing(Ref<TensorImpl>::share(to));
  for (const PayloadLink* link = from.impl()->payload; link; link = link->next) set_payload(sharing, link->payload);
}

void end_payloads(TensorImpl* impl) noexcept {
  PayloadLink* link = impl->payload;
  impl->flags &= uint8_t(~kCarries);
  while (link) delete std::exchange(link, link->next);
}

}  // namespace taeda
