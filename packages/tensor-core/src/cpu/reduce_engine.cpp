// Runs a Reducer over any layout: by rows or by columns, in fixed pieces.
#include "cpu/reduce_engine.h"

#include <algorithm>
#include <memory>

#include "cpu/converted.h"
#include "cpu/scratch.h"
#include "taeda/elementwise.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::cpu {
namespace {

/// One dimension: its size, the step in the input (bytes) and in the result (elements; kept dimensions only).
struct Axis {
  int64_t size, in, out;
};
bool shorter(const Axis& a, const Axis& b) { return a.size < b.size; }
struct Axes {
  Axis items[kMaxDims];
  int count = 0;

  void add(Axis a) { items[count++] = a; }
  int64_t total() const {
    int64_t n = 1;
    for (int i = 0; i < count; ++i) n *= items[i].size;
    return n;
  }
  /// Innermost (smallest step in memory) first, what repeats the same elements last, neighbours merged.
  void settle() {
    const auto step = [this](int i) { return items[i].in == 0 ? INT64_MAX : std::abs(items[i].in); };
    // By insertion: std::stable_sort would allocate, for a handful of axes.
    for (int i = 1; i < count; ++i)
      for (int j = i; j > 0 && step(j) < step(j - 1); --j) std::swap(items[j], items[j - 1]);
    int last = 0;
    for (int i = 1; i < count; ++i) {
      Axis& inner = items[last];
      if (items[i].in == inner.in * inner.size && items[i].out == inner.out * inner.size) inner.size *= items[i].size;
      else items[++last] = items[i];
    }
    if (count) count = last + 1;
  }
};

constexpr int64_t kPiece = 65536;  // elements of one parallel piece
constexpr int64_t kTile = 256;     // columns handled together
// Elements between two looks at signals. Memory seldom has more, but what is repeated may have any number.
constexpr int64_t kUnlooked = int64_t(1) << 26;

struct Job {
  const loops::Reducer* reducer;
  Axes kept, reduced;
  const char* base;
  char* acc;  // null: results go through `finish`
  const Finish* finish;
  int64_t acc_size;
  bool columns = false;
  DType from, to;  // of the elements, and as which they enter

  bool converts() const { return from != to; }
  /// Whether columns lie apart in memory: their elements are brought together as those that are converted.
  bool apart() const { return columns && kept.items[0].in != int64_t(item_size(from)); }
  /// Whether rows are of contiguous elements.
  bool dense_rows() const { return !columns && reduced.count && reduced.items[0].in == int64_t(item_size(from)); }
  void row(char* acc, const char* in, int64_t stride, int64_t n) const;
  void rows(char* acc, int64_t acc_step, const char* in, int64_t row_stride, int64_t rows, int64_t n) const;
  void column_rows(char* acc, const char* in, int64_t row_stride, int64_t rows, int64_t columns) const;
};

/// Address and result index of kept position `index`, over axes from `first`.
void locate(const Axes& kept, int first, int64_t index, const char*& in, int64_t& out) {
  for (int d = first; d < kept.count; ++d) {
    const int64_t i = index % kept.items[d].size;
    index /= kept.items[d].size;
    in += i * kept.items[d].in;
    out += i * kept.items[d].out;
  }
}
/// Calls `body(address)` for each position of the reduced axes from `first`.
template <class Body>
void each(const Axes& axes, int first, const char* in, const Body& body) {
  if (axes.count <= first) return body(in);
  int64_t index[kMaxDims];
  std::fill_n(index, axes.count, int64_t(0));
  for (;;) {
    body(in);
    int d = first;
    for (; d < axes.count; ++d) {
      in += axes.items[d].in;
      if (++index[d] < axes.items[d].size) break;
      in -= axes.items[d].in * axes.items[d].size;
      index[d] = 0;
    }
    if (d >= axes.count) return;  // no axis at all: one position
  }
}

/// Joins parts pairwise as they come, so that the error of a sum grows with the logarithm of their number.
class Pairwise {
 public:
  static constexpr int kLevels = 40;
  /// `room` holds kLevels * count accumulators.
  Pairwise(const loops::Reducer& reducer, char* room, int64_t count, int64_t acc_size)
      : reducer_(reducer), room_(room), count_(count), bytes_(count * acc_size) {}
  /// A neutral place for the next part, which `taken` takes.
  char* place() {
    reducer_.start(at(depth_), count_);
    return at(depth_);
  }
  void taken() {
    for (int64_t k = parts_++; k & 1; k >>= 1, --depth_) reducer_.join(at(depth_ - 1), at(depth_), count_);
    ++depth_;
  }
  void finish(char* acc) {
    for (; depth_ > 1; --depth_) reducer_.join(at(depth_ - 2), at(depth_ - 1), count_);
    if (depth_) reducer_.join(acc, at(0), count_);
  }

 private:
  char* at(int level) { return room_ + level * bytes_; }

  const loops::Reducer& reducer_;
  char* room_;
  int64_t count_, bytes_, parts_ = 0;
  int depth_ = 0;
};

/// Elements of one row: Reducer::row, where needed on converted pieces, joined pairwise.
[[gnu::noinline]] void converted_row(const Job& job, char* acc, const char* in, int64_t stride, int64_t n) {
  const Scratch scratch(kConverted * int64_t(sizeof(Complex128)));
  char* const numbers = scratch.data();
  const int64_t item = item_size(job.to);
  const auto piece = [&](char* into, int64_t begin) {
    const int64_t m = std::min(kConverted, n - begin), steps[] = {item, stride};
    char* const pair[] = {numbers, const_cast<char*>(in) + begin * stride};
    convert_elements(job.to, job.from, pair, steps, m);
    job.reducer->row(into, numbers, item, m);
  };
  if (n <= kConverted) return piece(acc, 0);
  alignas(64) char room[Pairwise::kLevels * kMaxAccumulator];
  Pairwise parts(*job.reducer, room, 1, job.acc_size);
  for (int64_t begin = 0; begin < n; begin += kConverted) {
    piece(parts.place(), begin);
    parts.taken();
  }
  parts.finish(acc);
}
/// `part(into, begin, count)` for parts of `n` steps of `width` elements each, with a look at signals before each.
template <class Part>
[[gnu::noinline]] void long_way(const Job& job, char* acc, int64_t n, int64_t width, const Part& part) {
  const auto room = std::make_unique_for_overwrite<char[]>(size_t(Pairwise::kLevels * width * job.acc_size));
  Pairwise parts(*job.reducer, room.get(), width, job.acc_size);
  const int64_t most = kUnlooked / width;
  for (int64_t begin = 0; begin < n; begin += most) {
    poll_signals();
    part(parts.place(), begin, std::min(most, n - begin));
    parts.taken();
  }
  parts.finish(acc);
}
void Job::row(char* into, const char* in, int64_t stride, int64_t n) const {
  if (n > kUnlooked) [[unlikely]]
    return long_way(*this, into, n, 1,
                    [&](char* to, int64_t begin, int64_t count) { row(to, in + begin * stride, stride, count); });
  if (converts()) [[unlikely]]
    return converted_row(*this, into, in, stride, n);
  reducer->row(into, in, stride, n);
}
/// Many rows of contiguous elements, as many of them at once as are converted.
void Job::rows(char* into, int64_t acc_step, const char* in, int64_t row_stride, int64_t count, int64_t n) const {
  if (!converts() && n <= kUnlooked) return reducer->rows(into, acc_step, in, row_stride, count, n);
  const int64_t together = kConverted / n, size = item_size(from), item = item_size(to), steps[] = {item, size};
  if (together < 2) {
    for (int64_t r = 0; r < count; ++r) row(into + r * acc_step * acc_size, in + r * row_stride, size, n);
    return;
  }
  const Scratch scratch(kConverted * int64_t(sizeof(Complex128)));
  char* const numbers = scratch.data();
  for (int64_t begin = 0; begin < count; begin += together) {
    const int64_t m = std::min(together, count - begin), runs = row_stride == n * size ? 1 : m;
    for (int64_t r = 0; r < runs; ++r) {
      char* const pair[] = {numbers + r * n * item, const_cast<char*>(in) + (begin + r) * row_stride};
      convert_elements(to, from, pair, steps, runs == 1 ? m * n : n);
    }
    reducer->rows(into + begin * acc_step * acc_size, acc_step, numbers, n * item, m, n);
  }
}
/// Reducer::columns of at most kTile columns, the same way.
[[gnu::noinline]] void converted_columns(const Job& job, char* acc, const char* in, int64_t row_stride, int64_t rows,
                                         int64_t columns) {
  const Scratch scratch(kConverted * int64_t(sizeof(Complex128)));
  char* const numbers = scratch.data();
  const int64_t item = item_size(job.to), step = columns * item, steps[] = {item, job.kept.items[0].in};
  const int64_t together = kConverted / columns;
  const bool follow = row_stride == columns * steps[1];  // rows come one after the other, as one
  const auto piece = [&](char* into, int64_t begin) {
    const int64_t m = std::min(together, rows - begin), runs = follow ? 1 : m;
    for (int64_t r = 0; r < runs; ++r) {
      char* const pair[] = {numbers + r * step, const_cast<char*>(in) + (begin + r) * row_stride};
      convert_elements(job.to, job.from, pair, steps, follow ? m * columns : columns);
    }
    job.reducer->columns(into, numbers, step, m, columns);
  };
  // Bands as of Reducer::columns enter one after another, then pairwise.
  const int64_t band = 4 * together;
  if (rows <= band) {
    for (int64_t begin = 0; begin < rows; begin += together) piece(acc, begin);
    return;
  }
  const auto room = std::make_unique_for_overwrite<char[]>(size_t(Pairwise::kLevels * columns * job.acc_size));
  Pairwise parts(*job.reducer, room.get(), columns, job.acc_size);
  for (int64_t begin = 0; begin < rows; begin += band) {
    char* const place = parts.place();
    for (int64_t r = begin; r < std::min(rows, begin + band); r += together) piece(place, r);
    parts.taken();
  }
  parts.finish(acc);
}
void Job::column_rows(char* into, const char* in, int64_t row_stride, int64_t rows, int64_t count) const {
  if (rows > kUnlooked / kTile) [[unlikely]]
    if (rows > kUnlooked / count)
      return long_way(*this, into, rows, count, [&](char* to, int64_t begin, int64_t some) {
        column_rows(to, in + begin * row_stride, row_stride, some, count);
      });
  if (converts() || apart()) [[unlikely]]
    return converted_columns(*this, into, in, row_stride, rows, count);
  reducer->columns(into, in, row_stride, rows, count);
}

constexpr int64_t kGroup = 64;  // inner runs that go into one accumulator one after another

/// `run(acc, address)` for each inner run of the reduced axes, which are the first `inner` of them, into `count`
/// accumulators at `acc`.
template <class Run>
void accumulate(const Job& job, const Axes& reduced, int inner, const char* in, char* acc, int64_t count,
                const Run& run) {
  int64_t runs = 1;
  for (int i = inner; i < reduced.count; ++i) runs *= reduced.items[i].size;
  if (runs <= kGroup) return each(reduced, inner, in, [&](const char* at) { run(acc, at); });
  const auto room = std::make_unique_for_overwrite<char[]>(size_t(Pairwise::kLevels * count * job.acc_size));
  Pairwise parts(*job.reducer, room.get(), count, job.acc_size);
  int64_t i = 0;
  char* place = nullptr;
  each(reduced, inner, in, [&](const char* at) {
    if (i == 0) place = parts.place();
    run(place, at);
    if (++i < kGroup) return;
    parts.taken();
    i = 0;
    poll_signals();
  });
  if (i) parts.taken();
  parts.finish(acc);
}

/// A row for each position of the next axis, all into one accumulator: rows by the dozen, whose results are joined in a
/// fixed tree.
void run_plane(const Job& job, const Axes& reduced, char* acc, const char* in) {
  constexpr int64_t most = 64;
  alignas(64) char local[most * kMaxAccumulator];
  const Axis inner = reduced.items[0], next = reduced.items[1];
  Patience patience;
  for (int64_t begin = 0; begin < next.size; begin += most) {
    patience();
    int64_t count = std::min(most, next.size - begin);
    job.reducer->start(local, count);
    job.rows(local, 1, in + begin * next.in, next.in, count, inner.size);
    for (; count > 1; count -= count / 2)
      job.reducer->join(local, local + (count - count / 2) * job.acc_size, count / 2);
    job.reducer->join(acc, local, 1);
  }
}

/// Number of independent items: results, or (columns) tiles of results.
int64_t item_count(const Job& job) {
  if (!job.columns) return job.kept.total();
  const int64_t width = job.kept.items[0].size;
  return job.kept.total() / width * ((width + kTile - 1) / kTile);
}

/// Reduces item `item` over `reduced` from `base` into `acc`, or, where that is null, through the job's `finish`.
void run_item(const Job& job, const Axes& reduced, const char* in, char* acc, int64_t item) {
  int64_t out = 0;
  alignas(64) char local[kTile * kMaxAccumulator];
  const Axis inner = reduced.count ? reduced.items[0] : Axis{1, 0, 0};
  if (!job.columns) {
    locate(job.kept, 0, item, in, out);
    char* const to = acc ? acc + out * job.acc_size : local;
    if (!acc) job.reducer->start(local, 1);
    if (reduced.count > 1 && job.dense_rows())
      accumulate(job, reduced, 2, in, to, 1, [&](char* part, const char* at) { run_plane(job, reduced, part, at); });
    else
      accumulate(job, reduced, 1, in, to, 1,
                 [&](char* part, const char* at) { job.row(part, at, inner.in, inner.size); });
    if (!acc) job.finish->call(job.finish->body, local, 1, out, 1);
    return;
  }
  const Axis across = job.kept.items[0];
  const int64_t tiles = (across.size + kTile - 1) / kTile;
  const int64_t begin = item % tiles * kTile, width = std::min(kTile, across.size - begin);
  locate(job.kept, 1, item / tiles, in, out);
  in += begin * across.in;
  out += begin * across.out;
  const auto run = [&](char* to, const char* at) { job.column_rows(to, at, inner.in, inner.size, width); };
  if (acc && across.out == 1) return accumulate(job, reduced, 1, in, acc + out * job.acc_size, width, run);
  job.reducer->start(local, width);
  accumulate(job, reduced, 1, in, local, width, run);
  if (!acc) return job.finish->call(job.finish->body, local, width, out, across.out);
  for (int64_t j = 0; j < width; ++j)
    job.reducer->join(acc + (out + j * across.out) * job.acc_size, local + j * job.acc_size, 1);
}

/// Results [begin, end) where each is of one row of contiguous elements: runs of them along the innermost kept axis.
void run_rows(const Job& job, int64_t begin, int64_t end) {
  constexpr int64_t most = 64;  // rows whose results wait for `finish`
  alignas(64) char local[most * kMaxAccumulator];
  const Axis along = job.kept.items[0], inner = job.reduced.items[0];
  while (begin < end) {
    const char* in = job.base;
    int64_t out = 0, count = std::min(end - begin, along.size - begin % along.size);
    locate(job.kept, 0, begin, in, out);
    if (job.acc) {
      job.rows(job.acc + out * job.acc_size, along.out, in, along.in, count, inner.size);
    } else {
      count = std::min(count, most);
      job.reducer->start(local, count);
      job.rows(local, 1, in, along.in, count, inner.size);
      job.finish->call(job.finish->body, local, count, out, along.out);
    }
    begin += count;
  }
}

void run_all(const Job& job, int64_t items, int64_t elements) {
  const int64_t grain = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, elements / items));
  const bool rows = job.kept.count && job.reduced.count == 1 && job.dense_rows();
  parallel_for(items, grain, [&](int64_t begin, int64_t end) {
    if (rows) return run_rows(job, begin, end);
    for (int64_t i = begin; i < end; ++i) run_item(job, job.reduced, job.base, job.acc, i);
  });
}

/// Few results from many elements: the longest reduced axis is cut into pieces, whose results are joined in a fixed
/// tree.
void run_split(Job& job, int64_t items, int64_t elements, int64_t results) {
  Axes& reduced = job.reduced;
  const int longest = int(std::max_element(reduced.items, reduced.items + reduced.count, shorter) - reduced.items);
  const int64_t size = reduced.items[longest].size;
  const int64_t wanted = std::clamp<int64_t>(elements / kPiece, 1, 256);
  const int64_t length = (size + wanted - 1) / wanted, pieces = (size + length - 1) / length;
  const Tensor partial = empty(Shape{pieces * results * job.acc_size}, DType::UInt8);
  job.reducer->start(partial.bytes(), pieces * results);
  parallel_for(pieces * items, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t p = i / items;
      Axes own = reduced;
      own.items[longest].size = std::min(length, size - p * length);
      run_item(job, own, job.base + p * length * reduced.items[longest].in,
               partial.bytes() + p * results * job.acc_size, i % items);
    }
  });
  const int64_t bytes = results * job.acc_size;
  for (int64_t step = 1; step < pieces; step *= 2)
    for (int64_t p = 0; p + step < pieces; p += 2 * step)
      job.reducer->join(partial.bytes() + p * bytes, partial.bytes() + (p + step) * bytes, results);
  if (job.acc) job.reducer->join(job.acc, partial.bytes(), results);
  else job.finish->call(job.finish->body, partial.bytes(), results, 0, 1);
}

/// Rows that are joined with others beyond results that stay: as an inner and an outer dimension are reduced. Each row
/// gets an accumulator first, in the order of memory; those of a result are joined in a fixed tree. Whether they are
/// few enough for that.
bool run_apart(Job& job, int64_t elements, int64_t results) {
  constexpr int64_t least = 4096, most = 1 << 23;  // elements; bytes of accumulators
  if (!job.kept.count || job.reduced.count < 2 || !job.dense_rows() || elements < least) return false;
  const Axis inner = job.reduced.items[0];
  const int64_t outer = elements / inner.size / results, bytes = results * job.acc_size;
  if (outer * bytes > most) return false;
  const Tensor partial = empty(Shape{outer * bytes}, DType::UInt8);
  job.reducer->start(partial.bytes(), outer * results);
  Job rows = job;
  rows.acc = partial.bytes();
  rows.reduced.count = 1;
  int64_t step = results;
  for (int i = 1; i < job.reduced.count; ++i) {
    const Axis axis = job.reduced.items[i];
    rows.kept.add({axis.size, axis.in, step});
    step *= axis.size;
  }
  rows.kept.settle();
  run_all(rows, rows.kept.total(), elements);
  parallel_for(results, std::max<int64_t>(1, kPiece / outer), [&](int64_t begin, int64_t end) {
    char* const first = partial.bytes() + begin * job.acc_size;
    for (int64_t by = 1; by < outer; by *= 2)
      for (int64_t p = 0; p + by < outer; p += 2 * by)
        job.reducer->join(first + p * bytes, first + (p + by) * bytes, end - begin);
    if (job.acc) job.reducer->join(job.acc + begin * job.acc_size, first, end - begin);
    else job.finish->call(job.finish->body, first, end - begin, begin, 1);
  });
  return true;
}

/// Few elements for each of many results, which lie in short runs: results far apart are handled together instead of
/// one after the other. Whether the kept axes are in that order now.
bool turn_to_columns(Job& job) {
  constexpr int64_t many = 64, few = 32;
  Axes& kept = job.kept;
  if (kept.count < 2 || !job.reduced.count || job.dense_rows() || job.reduced.total() > few) return false;
  Axis* const longest = std::max_element(kept.items, kept.items + kept.count, shorter);
  if (longest->size < many || longest->in <= 0) return false;
  std::swap(kept.items[0], *longest);
  return true;
}

/// Into `acc`, which is ready, or through `finish`.
void run(const loops::Reducer& reducer, const Operand& operand, uint64_t reduced, char* acc, const Finish* finish,
         int64_t acc_size, int64_t results) {
  const Tensor& self = operand.tensor;
  Job job;  // member by member: an initializer would zero the axes, most of a small call's time
  job.reducer = &reducer;
  job.base = self.bytes();
  job.acc = acc;
  job.finish = finish;
  job.acc_size = acc_size;
  job.from = self.dtype();
  job.to = operand.dtype;
  int64_t step = 1;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    const int64_t size = self.size(d), in = self.stride(d) * self.item_bytes();
    const bool gone = reduced >> d & 1;
    if (size != 1) gone ? job.reduced.add({size, in, 0}) : job.kept.add({size, in, step});
    if (!gone) step *= size;
  }
  job.reduced.settle();
  job.kept.settle();
  const int64_t item = self.item_bytes(), elements = self.numel();
  // Side by side, or at least nearer to each other than what is joined.
  job.columns = job.kept.count && job.kept.items[0].in >= item && job.kept.items[0].size >= 8 && job.reduced.count &&
                (std::abs(job.reduced.items[0].in) > job.kept.items[0].in ||
                 (job.reduced.items[0].in == 0 && job.kept.items[0].in == item));
  if (!job.columns) job.columns = turn_to_columns(job);
  const int64_t items = item_count(job);
  const Unlocked unlocked(elements > 32768);
  if (run_apart(job, elements, results)) return;
  if (items < 16 && elements >= 4 * kPiece && job.reduced.count) run_split(job, items, elements, results);
  else run_all(job, items, elements);
}

}  // namespace

void reduce_into(const loops::Reducer& reducer, const Operand& operand, uint64_t reduced, const Tensor& acc) {
  const Tensor& self = operand.tensor;
  const int64_t results = acc.numel();
  if (results == 0) return;
  reducer.start(acc.bytes(), results);
  const int64_t elements = self.numel();
  if (elements == 0) return;
  if (results == 1 && self.contiguous() && elements <= kPiece && self.dtype() == operand.dtype)
    return reducer.row(acc.bytes(), self.bytes(), self.item_bytes(), elements);
  run(reducer, operand, reduced, acc.bytes(), nullptr, acc.item_bytes(), results);
}

void reduce_through(const loops::Reducer& reducer, int64_t acc_size, const Operand& operand, uint64_t reduced,
                    int64_t results, const Finish& finish) {
  const Tensor& self = operand.tensor;
  if (results == 0) return;
  const int64_t elements = self.numel();
  alignas(64) char one[kMaxAccumulator];
  if (elements == 0) {
    reducer.start(one, 1);
    for (int64_t i = 0; i < results; ++i) finish.call(finish.body, one, 1, i, 1);
    return;
  }
  if (results == 1 && self.contiguous() && elements <= kPiece && self.dtype() == operand.dtype) {
    reducer.start(one, 1);
    reducer.row(one, self.bytes(), self.item_bytes(), elements);
    return finish.call(finish.body, one, 1, 0, 1);
  }
  run(reducer, operand, reduced, nullptr, &finish, acc_size, results);
}

void arg_reduce_into(const loops::ArgReducer& reducer, const Tensor& self, int64_t dim, int64_t* index) {
  // Of what is repeated the first is the result.
  const int64_t in_step = self.stride(dim) * self.item_bytes(), n = in_step ? self.size(dim) : 1;
  Axes kept;
  int64_t step = 1;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    if (d == dim) continue;
    if (self.size(d) != 1) kept.add({self.size(d), self.stride(d) * self.item_bytes(), step});
    step *= self.size(d);
  }
  if (step == 0) return;
  kept.settle();
  const Unlocked unlocked(self.numel() > 32768);
  const bool columns = kept.count && kept.items[0].in == self.item_bytes() && kept.items[0].out == 1 &&
                       kept.items[0].size >= 8 && std::abs(in_step) > self.item_bytes();
  if (!columns) {
    // Few elements in each row: rows far apart together, where those that follow each other are few.
    constexpr int64_t few = 16, many = 64;
    if (kept.count && n <= few && kept.items[0].size < many)
      std::swap(kept.items[0], *std::max_element(kept.items, kept.items + kept.count, shorter));
    const Axis along = kept.count ? kept.items[0] : Axis{1, 0, 0};
    parallel_for(step, std::max<int64_t>(1, kPiece / n), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const char* in = self.bytes();
        int64_t out = 0, count = std::min(end - begin, along.size - begin % along.size);
        locate(kept, 0, begin, in, out);
        reducer.rows(index + out, along.out, in, along.in, count, in_step, n);
        begin += count;
      }
    });
    return;
  }
  const int64_t width = kept.items[0].size, tiles = (width + kTile - 1) / kTile, items = step / width * tiles;
  parallel_for(items, std::max<int64_t>(1, kPiece / (n * std::min(width, kTile))), [&](int64_t begin, int64_t end) {
    alignas(64) char best[kTile * 16];
    for (int64_t i = begin; i < end; ++i) {
      const char* in = self.bytes();
      int64_t out = 0;
      locate(kept, 1, i / tiles, in, out);
      const int64_t first = i % tiles * kTile;
      reducer.columns(best, index + out + first, in + first * self.item_bytes(), in_step, n,
                      std::min(kTile, width - first));
    }
  });
}

}  // namespace taeda::cpu
