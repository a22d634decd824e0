// Levels and observers as C++ packages use them, against the public headers alone.
#include <string>
#include <vector>

#include "taeda/levels.h"
#include "taeda/observer.h"
#include "taeda/ops/arith.h"
#include "taeda/ops/unary.h"

namespace {

using namespace taeda;

/// A line for each call that ended: "depth name shapes" and what was the matter.
struct Journal final : Observer {
  int depth = 0, begun = 0;
  bool boxes = false, calls = false;
  std::string text;

  void begin(const ObservedCall& call) noexcept override {
    ++begun, ++depth;
    if (calls) call.each_tensor([](const Tensor& t) { ops::neg(t); });
  }
  void end(const ObservedCall& call, bool failed) noexcept override {
    text += std::to_string(--depth) + " " + call.op.name;
    call.each_tensor([&](const Tensor& t) { text += " " + std::string(shape_text(t.sizes())); });
    if (boxes) text += " #" + std::to_string(call.arguments().size());
    text += failed ? " failed\n" : "\n";
  }
};
Journal journal, second;

/// Forward mode: tensors carry their value at the level outside and a tangent.
struct Dual final : Payload {
  Tensor value, tangent;
  Dual(Ref<Level> level, Tensor v, Tensor t) : Payload(std::move(level)), value(std::move(v)), tangent(std::move(t)) {}
};
struct Forward final : Level {
  Forward() : Level("forward") {}
  Tensor dual(const Tensor& value, const Tensor& tangent) {
    return carrier(Ref<Payload>::adopt(new Dual(Ref<Level>::share(this), value, tangent)), value.sizes(), value.dtype(),
                   value.device());
  }
  Tensor value(const Tensor& t) const {
    const Dual* found = payload_of<Dual>(t, *this);
    return found ? found->value : t;
  }
  Tensor tangent(const Tensor& t) const {
    const Dual* found = payload_of<Dual>(t, *this);
    return found ? found->tangent : ops::mul(t, Tensor(0.0));
  }
  Values call(const OpEntry& op, Values arguments) override {
    const std::string name = op.name;
    check(name == "mul" || name == "add", ErrorKind::NotImplemented, "forward: there is no rule for ", name);
    const Tensor &a = std::get<Tensor>(arguments[0]), &b = std::get<Tensor>(arguments[1]);
    if (name == "add") return {dual(ops::add(value(a), value(b)), ops::add(tangent(a), tangent(b)))};
    const Tensor moved = ops::add(ops::mul(tangent(a), value(b)), ops::mul(value(a), tangent(b)));
    return {dual(ops::mul(value(a), value(b)), moved)};
  }
};

Ref<Level> as_level(const Ref<Forward>& level) { return Ref<Level>::share(level.get()); }
Tensor made(double number) {
  const Tensor out = empty({}, DType::Float64);
  *out.data<double>() = number;
  return out;
}
double number(const Tensor& t) { return *t.data<double>(); }

}  // namespace

extern "C" {

#define VISIBLE __attribute__((visibility("default")))

VISIBLE void watch(int boxes, int calls) {
  journal.boxes = boxes, journal.calls = calls;
  add_observer(&journal);
}
VISIBLE void watch_too(void) { add_observer(&second); }
VISIBLE void unwatch(void) { remove_observer(&journal); }
VISIBLE void unwatch_too(void) { remove_observer(&second); }
VISIBLE const char* read_journal(void) {
  static std::string out;
  out = std::exchange(journal.text, "");
  return out.c_str();
}
VISIBLE int calls_seen_by_second(void) { return second.begun; }

/// x^3 and its first two derivatives, by a level in a level.
VISIBLE void cube(double x, double* out) {
  const auto outer = Ref<Forward>::adopt(new Forward), inner = Ref<Forward>::adopt(new Forward);
  const InForce first(as_level(outer)), then(as_level(inner));
  const Tensor at = inner->dual(outer->dual(made(x), made(1)), outer->dual(made(1), made(0)));
  const Tensor cubed = ops::mul(ops::mul(at, at), at);
  out[0] = number(outer->value(inner->value(cubed)));
  out[1] = number(outer->tangent(inner->value(cubed)));
  out[2] = number(outer->tangent(inner->tangent(cubed)));
}

/// 0, or the number of what was not as it should be.
VISIBLE int payloads(void) {
  const auto level = Ref<Forward>::adopt(new Forward);
  const Tensor plain = made(1);
  auto payload = Ref<Payload>::adopt(new Dual(as_level(level), plain, plain));
  {
    const InForce scope(as_level(level));
    if (level->depth() != 1 || innermost_level() != level.get()) return 1;
    const Tensor a = carrier(payload, Shape{2, 3}, DType::Float32, Device{});
    const Tensor b = carrier(payload, Shape{4}, DType::Float64, Device{});
    if (payload->use_count() != 3 || !is_carrier(a) || a.bytes() || a.dim() != 2) return 2;
    if (payload_of(a, *level) != payload_of(b, *level) || payload_of(plain, *level)) return 3;
    const Tensor own = made(1);
    set_payload(own, payload);
    if (is_carrier(own) || !own.keys().has(Layer::Transform)) return 4;
    if (payload_of(detached_alias(own), *level) || !payload_of(detached_alias(a), *level)) return 5;
    drop_payload(own, *level);
    if (own.keys().has_layers() || payload_of(own, *level)) return 6;
  }
  if (payload->use_count() != 1) return 7;
  return level->depth() == 0 && !innermost_level() ? 0 : 8;
}
}
