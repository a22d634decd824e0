// Typed observers: code that watches every operator call of a thread without being part of it. Nothing is boxed unless
// an observer asks for it, and a thread without observers does not know of them.
#pragma once
#include <tuple>

#include "taeda/dispatch.h"
#include "taeda/spans.h"

namespace taeda {

/// A call that begins or has ended; lives on the stack of the call.
class ObservedCall {
 public:
  const OpEntry& op;

  /// The tensors among the arguments, lists item by item, in the order of the schema; undefined ones are left out.
  template <class Visit>
  void each_tensor(const Visit& visit) const {
    each([](const void* to, const Tensor& t) { (*static_cast<const Visit*>(to))(t); }, &visit);
  }
  /// All arguments in the order of the schema, boxed now.
  virtual Values arguments() const = 0;

 protected:
  using Visitor = void (*)(const void* to, const Tensor& tensor);
  explicit ObservedCall(const OpEntry& called) : op(called) {}
  ~ObservedCall() = default;
  virtual void each(Visitor visit, const void* to) const = 0;
};

/// Sees the calls of the threads that it was put on, and those within them: the operators of a composite, those of a
/// backward. A call that a layer passes on below itself is one call. What an observer calls is not observed.
struct TAEDA_API Observer {
  virtual ~Observer();
  virtual void begin(const ObservedCall& call) noexcept = 0;
  /// `failed`: the call ended with an error. Calls end in the reverse order of their beginning.
  virtual void end(const ObservedCall& call, bool failed) noexcept = 0;
  /// Spans may begin before the observer was put on and end while it is there, and the other way round.
  virtual void span_begin(const Span&) noexcept {}
  virtual void span_end(const Span&) noexcept {}
  virtual void memory(const MemoryUse&) noexcept {}
  /// Whether memory() is of use; asked once, when the observer is added.
  virtual bool watches_memory() const noexcept { return true; }
  /// The thread hands work to a device; the number stands in what the device tells of it.
  virtual void work(uint64_t /*origin*/) noexcept {}
};
/// For this thread; calls that run already are not seen. The caller keeps the observer until it is taken away.
TAEDA_API void add_observer(Observer* observer);
/// Nothing happens when it is not there.
TAEDA_API void remove_observer(Observer* observer) noexcept;
/// Within `end`: the number of the node that the call itself recorded, not one of the calls within it; 0: none.
TAEDA_API uint64_t call_sequence() noexcept;

/// The length of an observed call.
class TAEDA_API Observation {
 public:
  explicit Observation(const ObservedCall& call) noexcept;
  ~Observation();
  Observation(const Observation&) = delete;
  /// The call came to its end; without this it has failed.
  void succeeded() noexcept { failed_ = false; }

 private:
  const ObservedCall& call_;
  const Observation* outer_;
  uint64_t excluded_;  // layers that were off when it began
  uint64_t sequence_;  // what the call around this one has recorded so far
  size_t count_ = 0;   // observers that saw it begin
  bool failed_ = true;
};

// --- calls by their types (taeda/boxing.h makes them) ---

namespace detail {
template <class T>
void each_tensor_in(void (*visit)(const void*, const Tensor&), const void* to, const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (argument.defined()) visit(to, argument);
  } else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : argument)
      if (t.defined()) visit(to, t);
  }
}
}  // namespace detail

template <class... A>
Values box_all(const A&... arguments);

template <class... A>
class TypedCall final : public ObservedCall {
 public:
  TypedCall(const OpEntry& called, const std::remove_cvref_t<A>&... arguments)
      : ObservedCall(called), arguments_(arguments...) {}
  Values arguments() const override {
    return std::apply([](const auto&... each) { return box_all(each...); }, arguments_);
  }

 private:
  void each(Visitor visit, const void* to) const override {
    std::apply([&](const auto&... each) { (detail::each_tensor_in(visit, to, each), ...); }, arguments_);
  }
  std::tuple<const std::remove_cvref_t<A>&...> arguments_;
};

}  // namespace taeda
