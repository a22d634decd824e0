// Intrusive reference counting shared by storages, tensors, graph nodes and generators.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace taeda {

/// Base of counted objects. A new object starts with count 1, owned by whoever adopts it.
struct Counted {
  std::atomic<uint32_t> refs{1};
  void retain() noexcept { refs.fetch_add(1, std::memory_order_relaxed); }
  /// True when this was the last reference; the caller then destroys the object.
  bool drop() noexcept {
    // A sole owner needs no locked instruction: nobody else can touch the count.
    if (refs.load(std::memory_order_acquire) == 1) return true;
    return refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  uint32_t use_count() const noexcept { return refs.load(std::memory_order_relaxed); }
};

/// Owning pointer. `T` provides `static void destroy(T*)`, found by `destroy(T*)` through ADL.
template <class T>
class Ref {
 public:
  constexpr Ref() noexcept = default;
  constexpr Ref(std::nullptr_t) noexcept {}
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ~Ref() { reset(); }
  Ref& operator=(const Ref& other) noexcept {
    Ref(other).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    Ref(std::move(other)).swap(*this);
    return *this;
  }
  /// Takes over one reference that the caller holds.
  static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  /// Adds a reference of its own.
  static Ref share(T* object) noexcept {
    if (object) object->retain();
    return adopt(object);
  }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  T* release() noexcept { return std::exchange(object_, nullptr); }
  void reset() noexcept {
    if (T* object = std::exchange(object_, nullptr); object && object->drop()) destroy(object);
  }
  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

}  // namespace taeda
