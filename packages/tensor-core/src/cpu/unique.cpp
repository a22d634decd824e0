// CPU kernels of distinct elements.
#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "cpu/items.h"
#include "cpu/order.h"
#include "cpu/radix.h"
#include "taeda/interrupt.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/sort.h"
#include "taeda/parallel.h"

namespace taeda {
namespace {

using cpu::by_digits;
using cpu::fill_items;
using cpu::Item;
using cpu::Items;
using cpu::KeyOf;
using cpu::order_key;
using cpu::sort_items;
using cpu::visit_ordered;

/// The runs of equal items: where each begins first in memory, how long it is, and for each element the run's number.
/// Each NaN is a value of its own, as NaN != NaN.
template <class Key>
void runs_of(const Items<Key>& items, std::optional<Key> nan, std::vector<int64_t>& first, std::vector<int64_t>& counts,
             int64_t* inverse) {
  in_blocks(int64_t(items.size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Item<Key>& item = items[size_t(i)];
      if (i == 0 || items[size_t(i - 1)].key != item.key || (nan && item.key == *nan)) {
        first.push_back(item.index);
        counts.push_back(0);
      }
      ++counts.back();
      inverse[item.index] = int64_t(first.size()) - 1;
    }
  });
}

std::tuple<Tensor, Tensor, Tensor, Tensor> unique_all_kernel(const Tensor& self) {
  const Tensor flat = ops::contiguous(ops::ravel(self));
  const int64_t n = flat.numel();
  const Tensor inverse = empty(self.sizes(), DType::Int64);
  std::vector<int64_t> first, counts;
  Tensor values;
  visit_ordered(self.dtype(), "unique_all", [&]<class T>() {
    const T* data = flat.data<T>();
    const Unlocked unlocked(n > 8192);
    Items<KeyOf<T>> items(static_cast<size_t>(n));
    if (by_digits(n)) {
      cpu::RadixOrder<KeyOf<T>>()(
          n, [=](int64_t i) { return order_key(data[i]); },
          [&](int64_t place, int64_t index) { items[size_t(place)] = {order_key(data[index]), index}; });
    } else {
      fill_items(data, 1, false, items);
      sort_items(items);
    }
    constexpr bool has_nan = cpu::is_half<T> || std::is_floating_point_v<T>;
    runs_of(items, has_nan ? std::optional<KeyOf<T>>(KeyOf<T>(~KeyOf<T>(0))) : std::nullopt, first, counts,
            inverse.data<int64_t>());
    values = empty(Shape{int64_t(first.size())}, self.dtype());
    in_blocks(int64_t(first.size()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values.data<T>()[i] = data[first[size_t(i)]];
    });
  });
  const auto list = [](const std::vector<int64_t>& items) {
    const Tensor out = empty(Shape{int64_t(items.size())}, DType::Int64);
    in_blocks(out.numel(), [&](int64_t begin, int64_t end) {
      std::copy(items.begin() + begin, items.begin() + end, out.data<int64_t>() + begin);
    });
    return out;
  };
  return {values, list(first), inverse, list(counts)};
}

std::tuple<Tensor, Tensor, Tensor> unique_consecutive_kernel(const Tensor& self) {
  const Tensor flat = ops::contiguous(ops::ravel(self));
  const Tensor inverse = empty(self.sizes(), DType::Int64);
  std::vector<int64_t> starts;
  Tensor values, counts;
  visit_dtype(self.dtype(), [&]<class T>() {
    const T* data = flat.data<T>();
    const Unlocked unlocked(flat.numel() > 32768);
    in_blocks(flat.numel(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        bool fresh = i == 0;
        if constexpr (cpu::is_half<T>) fresh = fresh || float(data[i]) != float(data[i - 1]);
        else if constexpr (std::is_same_v<T, bool>) fresh = fresh || order_key(data[i]) != order_key(data[i - 1]);
        else fresh = fresh || data[i] != data[i - 1];
        if (fresh) starts.push_back(i);
        inverse.data<int64_t>()[i] = int64_t(starts.size()) - 1;
      }
    });
    values = empty(Shape{int64_t(starts.size())}, self.dtype());
    counts = empty(Shape{int64_t(starts.size())}, DType::Int64);
    in_blocks(int64_t(starts.size()), [&](int64_t begin, int64_t end) {
      for (size_t i = size_t(begin); i < size_t(end); ++i) {
        values.data<T>()[i] = data[starts[i]];
        counts.data<int64_t>()[i] = (i + 1 < starts.size() ? starts[i + 1] : flat.numel()) - starts[i];
      }
    });
  });
  return {values, inverse, counts};
}

const bool registered = [] {
  kernel<op::unique_all>(kCPU, unique_all_kernel);
  kernel<op::unique_consecutive_all>(kCPU, unique_consecutive_kernel);
  return true;
}();

}  // namespace
}  // namespace taeda
