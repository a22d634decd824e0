// SmallVec: a vector of trivially copyable items that lives on the stack up to N of them.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

namespace taeda {

template <class T, size_t N>
class SmallVec {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVec() noexcept = default;
  explicit SmallVec(size_t count, T value = T{}) { resize(count, value); }
  SmallVec(std::initializer_list<T> items) : SmallVec(std::span<const T>(items.begin(), items.size())) {}
  SmallVec(std::span<const T> items) { assign(items); }
  SmallVec(const SmallVec& other) { assign(other); }
  SmallVec(SmallVec&& other) noexcept { take(other); }
  SmallVec& operator=(const SmallVec& other) {
    if (this != &other) assign(other);
    return *this;
  }
  SmallVec& operator=(SmallVec&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  T* data() noexcept { return heap_ ? heap_.get() : inline_; }
  const T* data() const noexcept { return heap_ ? heap_.get() : inline_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](size_t i) noexcept { return data()[held(i)]; }
  const T& operator[](size_t i) const noexcept { return data()[held(i)]; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& back() noexcept { return data()[held(size_ - 1)]; }
  const T& back() const noexcept { return data()[held(size_ - 1)]; }
  operator std::span<const T>() const noexcept { return {data(), size_}; }

  void push_back(T value) {
    reserve(size_ + 1);
    data()[size_++] = value;
  }
  void pop_back() noexcept { --size_; }
  void clear() noexcept { size_ = 0; }
  void resize(size_t count, T value = T{}) {
    reserve(count);
    for (size_t i = size_; i < count; ++i) data()[i] = value;
    size_ = count;
  }
  void insert(size_t at, T value) {
    push_back(value);
    for (size_t i = size_ - 1; i > at; --i) data()[i] = data()[i - 1];
    data()[at] = value;
  }
  void erase(size_t at) noexcept {
    for (size_t i = at; i + 1 < size_; ++i) data()[i] = data()[i + 1];
    --size_;
  }
  void assign(std::span<const T> items) {
    size_ = 0;
    reserve(items.size());
    if (!items.empty()) std::memmove(data(), items.data(), items.size_bytes());
    size_ = items.size();
  }
  void reserve(size_t count) {
    if (count <= capacity_) return;
    const size_t grown = count > 2 * capacity_ ? count : 2 * capacity_;
    auto fresh = std::make_unique<T[]>(grown);
    if (size_) std::memcpy(fresh.get(), data(), size_ * sizeof(T));
    heap_ = std::move(fresh);
    capacity_ = grown;
  }
  friend bool operator==(const SmallVec& a, const SmallVec& b) noexcept {
    return a.size_ == b.size_ && (a.size_ == 0 || std::memcmp(a.data(), b.data(), a.size_ * sizeof(T)) == 0);
  }

 private:
  /// `i`; builds for tests end here when there is no such item, which no sanitizer sees in the inline storage.
  size_t held(size_t i) const noexcept {
#ifdef TAEDA_CHECKED
    if (i >= size_) std::abort();
#endif
    return i;
  }
  void take(SmallVec& other) noexcept {
    heap_ = std::move(other.heap_);
    size_ = other.size_;
    capacity_ = heap_ ? other.capacity_ : N;
    if (!heap_ && size_) std::memcpy(inline_, other.inline_, size_ * sizeof(T));
    other.size_ = 0;
    other.capacity_ = N;
  }
  size_t size_ = 0;
  size_t capacity_ = N;
  std::unique_ptr<T[]> heap_;
  T inline_[N];
};

/// Sizes, strides or dimension lists; six dimensions fit without touching the heap.
using Shape = SmallVec<int64_t, 6>;
using IntSpan = std::span<const int64_t>;

}  // namespace taeda
