// The table of number formats that plug-ins have defined, and formats given by a table of numbers.
#include "taeda/custom_dtype.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>

#include "core/fork.h"
#include "taeda/error.h"

namespace taeda {
namespace {

constexpr int kPlaces = kDTypeCount - kBuiltInDTypes;

/// Places are filled in order and read without the lock.
struct Formats {
  std::mutex lock;
  HeldAtFork held{lock};
  std::atomic<const CustomDType*> all[kPlaces] = {};
  std::atomic<bool> named[kPlaces] = {};
};
Formats& formats() {
  static auto* instance = new Formats;
  return *instance;
}
[[maybe_unused]] const auto* const made_at_load = &formats();
size_t place_of(DType dtype) { return size_t(dtype) - kBuiltInDTypes; }

void check_format(const CustomDType& format) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  check(!format.name.empty() && std::ranges::all_of(format.name, fits) && !std::isdigit(format.name[0]),
        ErrorKind::Value, "define_dtype: argument 'name' may have letters, digits and underscores only, found '",
        format.name, "'");
  check(format.bits >= 1 && format.bits <= 8, ErrorKind::Value,
        "define_dtype: argument 'bits' must be from 1 to 8, found ", format.bits);
}

/// Numbers of a table in their order, each once, with their codes.
class Table {
 public:
  Table(const std::vector<float>& numbers) : numbers_(numbers) {
    for (size_t code = 0; code < numbers.size(); ++code) {
      const float number = numbers[code];
      if (std::isnan(number)) note(nan_, code);
      else if (std::isinf(number)) note(number > 0 ? above_ : below_, code);
      else finite_.push_back({number, uint8_t(code)});
    }
    std::ranges::stable_sort(finite_, {}, &Entry::number);
    // Of codes for one number the first is taken; a negative zero is a number of its own.
    const auto last = std::ranges::unique(finite_, [](const Entry& a, const Entry& b) {
      return a.number == b.number && std::signbit(a.number) == std::signbit(b.number);
    });
    finite_.erase(last.begin(), last.end());
  }
  bool empty() const { return finite_.empty(); }
  float number_of(uint8_t code) const { return numbers_[code % numbers_.size()]; }

  uint8_t code_of(float number) const {
    if (std::isnan(number)) return nan_ ? *nan_ : nearest(0);
    if (std::isinf(number))
      if (const auto& own = number > 0 ? above_ : below_) return *own;
    return nearest(number);
  }

 private:
  struct Entry {
    float number;
    uint8_t code;
  };
  static void note(std::optional<uint8_t>& place, size_t code) {
    if (!place) place = uint8_t(code);
  }
  uint8_t nearest(float number) const {
    const auto above = std::ranges::lower_bound(finite_, number, {}, &Entry::number);
    if (above == finite_.end()) return finite_.back().code;
    if (above->number == number) return zero(number, above);
    if (above == finite_.begin()) return above->code;
    const auto below = std::prev(above);
    const double up = double(above->number) - number, down = double(number) - below->number;
    if (up != down) return up < down ? above->code : below->code;
    return above->code % 2 ? below->code : above->code;
  }
  /// Of two zeros the one with the same sign.
  uint8_t zero(float number, std::vector<Entry>::const_iterator found) const {
    const auto other = std::next(found);
    const bool two = number == 0 && other != finite_.end() && other->number == 0;
    return two && std::signbit(other->number) == std::signbit(number) ? other->code : found->code;
  }

  std::vector<float> numbers_;
  std::vector<Entry> finite_;
  std::optional<uint8_t> nan_, above_, below_;
};

}  // namespace

DType define_dtype(CustomDType format) {
  check_format(format);
  std::lock_guard guard(formats().lock);
  if (DType there; find_dtype(format.name, there))
    fail(ErrorKind::Runtime, format.who, " defines dtype '", format.name, "', which is there already, defined by ",
         is_custom(there) ? custom_dtype(there).who : "taeda-tensor-core");
  for (int place = 0; place < kPlaces; ++place) {
    if (formats().all[place]) continue;
    formats().all[place] = new CustomDType(std::move(format));  // for ever: tensors refer to it
    formats().named[place] = true;
    return DType(kBuiltInDTypes + place);
  }
  fail(ErrorKind::Runtime, "define_dtype: there is room for ", kPlaces, " dtypes of plug-ins, and none is left for '",
       format.name, "'");
}

void withdraw_dtype(DType dtype) { formats().named[place_of(dtype)] = false; }

bool find_dtype(std::string_view wanted, DType& found) {
  if (wanted.empty()) return false;
  for (int i = 0; i < kDTypeCount; ++i) {
    const bool gone = i >= kBuiltInDTypes && !formats().named[place_of(DType(i))];
    if (!gone && name(DType(i)) == wanted) return found = DType(i), true;
  }
  return false;
}

std::string_view custom_name(DType dtype) noexcept {
  const CustomDType* format = formats().all[place_of(dtype)];
  return format ? std::string_view(format->name) : std::string_view("");
}

const CustomDType& custom_dtype(DType dtype) {
  const CustomDType* format = formats().all[place_of(dtype)];
  check(format != nullptr, ErrorKind::Runtime, "there is no dtype number ", int(dtype));
  return *format;
}

CustomDType format_of_table(std::string name, int bits, std::vector<float> numbers, std::string who) {
  check(bits >= 1 && bits <= 8 && numbers.size() == size_t(1) << bits, ErrorKind::Value, "define_dtype: a format of ",
        bits, " bits needs 2**bits numbers, found ", numbers.size());
  const auto table = std::make_shared<const Table>(numbers);
  check(!table->empty(), ErrorKind::Value, "define_dtype: none of the numbers is finite");
  return {std::move(name), bits, std::move(who),
          [table](const uint8_t* codes, float* to, int64_t count) {
            for (int64_t i = 0; i < count; ++i) to[i] = table->number_of(codes[i]);
          },
          [table](const float* from, uint8_t* codes, int64_t count) {
            for (int64_t i = 0; i < count; ++i) codes[i] = table->code_of(from[i]);
          }};
}

}  // namespace taeda
