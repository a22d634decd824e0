// Observers from C, and what kernels in C ask about deterministic algorithms.
#include "taeda/observer.h"

#include <atomic>
#include <map>

#include "abi/bridge.h"
#include "taeda/deterministic.h"

namespace taeda::abi {
namespace {

/// What an observer of this thread is being told right now.
struct Told {
  const taeda_observed* handed;
  const ObservedCall* call;
};
constinit thread_local Told told __attribute__((tls_model("initial-exec"))) = {};

class CObserver final : public Observer {
 public:
  explicit CObserver(const taeda_observer& given) : c_(given) {}
  void begin(const ObservedCall& call) noexcept override { tell(c_.begin, call, false, 0); }
  void end(const ObservedCall& call, bool failed) noexcept override { tell(c_.end, call, failed, call_sequence()); }
  void span_begin(const Span& span) noexcept override { hand(c_.span_begin, to_c(span)); }
  void span_end(const Span& span) noexcept override { hand(c_.span_end, to_c(span)); }
  void memory(const MemoryUse& use) noexcept override {
    hand(c_.memory, taeda_memory_use{sizeof(taeda_memory_use), use.data, use.bytes, abi::to_c(use.device)});
  }
  bool watches_memory() const noexcept override { return c_.memory != nullptr; }
  void work(uint64_t origin) noexcept override { run(c_.work, origin); }

 private:
  using Function = void (*)(void*, const taeda_observed*);
  static taeda_span to_c(const Span& span) noexcept {
    return {sizeof(taeda_span), span.name, int32_t(span.kind), 0, span.sequence};
  }
  /// The function may take this observer away, as below.
  template <class What>
  void hand(void (*function)(void*, const What*), const What& what) const noexcept {
    run(function, &what);
  }
  template <class What>
  void run(void (*function)(void*, What), What what) const noexcept {
    if (!function) return;
    const uint32_t before = errors_noted;
    function(c_.context, what);
    if (errors_noted != before) forget_exception();
  }
  /// The function may take this observer away: nothing of it is used afterwards.
  void tell(Function function, const ObservedCall& call, bool failed, uint64_t sequence) const noexcept {
    if (!function) return;
    const taeda_observed handed{sizeof handed, handle(call.op), failed, 0, sequence};
    const Told outer = std::exchange(told, {&handed, &call});
    const uint32_t before = errors_noted;
    function(c_.context, &handed);
    if (errors_noted != before) forget_exception();
    told = outer;
  }
  taeda_observer c_;
};

/// The observers that were put on a thread, by their numbers.
struct Mine {
  std::map<uint64_t, CObserver> observers;
  /// What still runs on a thread that ends is not observed.
  ~Mine() { thread_state.included &= ~KeySet::of(Layer::Observer).bits(); }
};
thread_local Mine mine;

}  // namespace

int32_t observer_add(const taeda_observer* observer, uint64_t* registration) {
  static std::atomic<uint64_t> last = 0;
  return guarded([&] {
    const taeda_observer known = known_part(observer, "taeda_observer");
    uint64_t& number = place(registration, "observer_add");
    const uint64_t made = ++last;
    add_observer(&mine.observers.try_emplace(made, known).first->second);
    number = made;
  });
}

int32_t observer_remove(uint64_t registration) {
  return guarded([&] {
    const auto found = mine.observers.find(registration);
    if (found == mine.observers.end()) return;
    remove_observer(&found->second);
    mine.observers.erase(found);
  });
}

namespace {

/// The call that an observer asks about.
const ObservedCall& asked(const char* function, const taeda_observed* call, bool has_visit) {
  check(call && call == told.handed, ErrorKind::Value, function,
        ": expected the call that an observer was given, within its function");
  check(has_visit, ErrorKind::Value, function, ": the function to visit is null");
  return *told.call;
}

Span span_from_c(const taeda_span* given) {
  const taeda_span known = known_part(given, "taeda_span");
  check(known.name != nullptr, ErrorKind::Value, "taeda ABI: taeda_span has no name");
  return {known.name, SpanKind(known.kind), known.sequence};
}

}  // namespace

int32_t observed_tensors(const taeda_observed* call, int32_t (*visit)(void*, taeda_tensor), void* context) {
  int32_t visited = TAEDA_OK;
  const int32_t status = guarded([&] {
    asked("observed_tensors", call, visit != nullptr).each_tensor([&](const Tensor& t) {
      if (visited == TAEDA_OK) visited = visit(context, handle(t));
    });
  });
  return status == TAEDA_OK ? visited : status;
}

int32_t observed_arguments(const taeda_observed* call, int32_t (*visit)(void*, const taeda_value*, uint32_t),
                           void* context) {
  int32_t visited = TAEDA_OK;
  const int32_t status = guarded([&] {
    const Values values = asked("observed_arguments", call, visit != nullptr).arguments();
    const Packed packed(values);
    visited = visit(context, packed.data(), uint32_t(packed.size()));
  });
  return status == TAEDA_OK ? visited : status;
}

int32_t span_begin(const taeda_span* span) {
  return guarded([&] { tell_begin(span_from_c(span)); });
}
int32_t span_end(const taeda_span* span) {
  return guarded([&] { tell_end(span_from_c(span)); });
}

int32_t alert_not_deterministic(const char* op) {
  return guarded([&] { taeda::alert_not_deterministic(op ? op : "a kernel"); });
}
int32_t deterministic() { return taeda::deterministic(); }

}  // namespace taeda::abi
