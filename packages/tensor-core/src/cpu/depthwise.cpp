// Convolutions whose channels each have a window of their own.
#include "cpu/depthwise.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "cpu/loops/depthwise.h"
#include "taeda/interrupt.h"
#include "taeda/parallel.h"

namespace taeda::cpu {
namespace {

using infer::ConvPlan;

/// One dimension of windows. Turned, results and sources have changed places: the gradient of an input.
struct Axis {
  int64_t results, sources, taps, stride, padding, dilation;
  bool turned;
  /// What result `i` reads by a tap; outside of the sources: nothing.
  int64_t source(int64_t i, int64_t tap) const {
    const int64_t reach = tap * dilation - padding;
    if (!turned) return i * stride + reach;
    const int64_t at = i - reach;
    return at >= 0 && at % stride == 0 ? at / stride : -1;
  }
  bool has(int64_t source) const { return source >= 0 && source < sources; }
};

/// What a tap reads for result 0 of a line, or of its results that are a step apart.
struct Tap {
  int64_t number, source;
};
/// Results `first`, `first` + `step`, ... of a line, whose taps are the same: `taps` of them from `tap` on, which are
/// neighbours, of the line's.
struct Segment {
  int64_t first, step, count;
  int64_t tap, taps;
  int64_t offset;  // of what the first result reads, from what result 0 would
};

/// All results of a line, in segments.
class Line {
 public:
  explicit Line(const Axis& axis) : source_step_(axis.turned ? 1 : axis.stride) {
    const int64_t step = axis.turned ? axis.stride : 1;
    for (int64_t first = 0; first < std::min(step, axis.results); ++first) add_results(axis, first, step);
  }
  int64_t source_step() const { return source_step_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const Tap* taps(const Segment& segment) const { return taps_.data() + segment.tap; }

 private:
  /// Those from `first` on that are `step` apart. The results that a tap reads for have no gaps, and begin and end
  /// later, or earlier, from each tap to the next: those of a result are neighbours, too.
  void add_results(const Axis& axis, int64_t first, int64_t step) {
    struct Range {
      int64_t begin, end;
    };
    const int64_t count = (axis.results - first + step - 1) / step, begin = int64_t(taps_.size());
    std::vector<Range> ranges;
    std::vector<int64_t> borders{0, count};
    for (int64_t tap = 0; tap < axis.taps; ++tap) {
      const int64_t reach = tap * axis.dilation - axis.padding;
      if (axis.turned && (first - reach) % step != 0) continue;
      const int64_t source = axis.turned ? (first - reach) / step : reach;
      const Range range{source >= 0 ? 0 : (-source + source_step_ - 1) / source_step_,
                        source >= axis.sources ? 0 : std::min(count, (axis.sources - 1 - source) / source_step_ + 1)};
      if (range.begin >= range.end) continue;
      taps_.push_back({tap, source});
      ranges.push_back(range);
      borders.push_back(range.begin), borders.push_back(range.end);
    }
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    for (size_t b = 0; b + 1 < borders.size(); ++b) {
      const int64_t from = borders[b], to = borders[b + 1];
      const auto begun = [=](const Range& r) { return r.begin <= from; };
      const auto ended = [=](const Range& r) { return r.end < to; };
      const auto all = [&](const auto& holds) { return std::ranges::partition_point(ranges, holds) - ranges.begin(); };
      const int64_t low = axis.turned ? all(ended) : all(std::not_fn(begun)),
                    high = axis.turned ? all(begun) : all(std::not_fn(ended));
      segments_.push_back(
          {first + from * step, step, to - from, begin + low, std::max<int64_t>(0, high - low), from * source_step_});
    }
  }

  int64_t source_step_;
  std::vector<Tap> taps_;
  std::vector<Segment> segments_;
};

/// The windows of a plan, of which the results are those of a forward pass or of the gradient of its input.
struct Windows {
  Axis depth, height, width;
  Line along;
  Windows(const ConvPlan& s, bool turned)
      : depth(axis(s.od, s.d, s.kd, s.sd, s.pd, s.dd, turned)),
        height(axis(s.oh, s.h, s.kh, s.sh, s.ph, s.dh, turned)),
        width(axis(s.ow, s.w, s.kw, s.sw, s.pw, s.dw, turned)),
        along(width) {}
  static Axis axis(int64_t out, int64_t in, int64_t taps, int64_t stride, int64_t padding, int64_t dilation,
                   bool turned) {
    return {turned ? in : out, turned ? out : in, taps, stride, padding, dilation, turned};
  }
  /// Lines of results of one image.
  int64_t lines() const { return depth.results * height.results; }
  /// Calls `body(first tap, pixel at which its line of sources begins)` for the rows of taps of a line of results.
  template <class Body>
  void each_row(int64_t line, const Body& body) const {
    const int64_t image = line / lines(), z = line % lines() / height.results, y = line % height.results;
    for (int64_t kd = 0; kd < depth.taps; ++kd) {
      const int64_t from_z = depth.source(z, kd);
      if (!depth.has(from_z)) continue;
      for (int64_t kh = 0; kh < height.taps; ++kh) {
        const int64_t from_y = height.source(y, kh);
        if (height.has(from_y))
          body((kd * height.taps + kh) * width.taps,
               ((image * depth.sources + from_z) * height.sources + from_y) * width.sources);
      }
    }
  }
};

/// Lines that are worth a thread's while.
int64_t grain(const ConvPlan& s, const Windows& w) {
  const int64_t line = s.work() / std::max<int64_t>(1, s.n * w.lines());
  return std::max<int64_t>(1, (1 << 17) / std::max<int64_t>(1, line));
}

template <class T>
void sums_of_windows(const ConvPlan& s, bool turned, const T* x, const T* weight, const T* start, T* out) {
  const Windows windows(s, turned);
  const int64_t c = s.c;
  const auto& loops = loops::depthwise_loops<T>();
  parallel_for(s.n * windows.lines(), grain(s, windows), [&](int64_t begin, int64_t end) {
    std::vector<const T*> pixels, weights;
    for (int64_t line = begin; line < end; ++line) {
      poll_signals();
      for (const Segment& segment : windows.along.segments()) {
        const Tap* const taps = windows.along.taps(segment);
        pixels.clear(), weights.clear();
        windows.each_row(line, [&](int64_t tap, int64_t row) {
          for (int64_t t = 0; t < segment.taps; ++t) {
            pixels.push_back(x + (row + taps[t].source + segment.offset) * c);
            weights.push_back(weight + (tap + taps[t].number) * c);
          }
        });
        loops.sums({int64_t(pixels.size()), pixels.data(), weights.data(), windows.along.source_step() * c}, start,
                   segment.count, c, out + (line * windows.width.results + segment.first) * c, segment.step * c);
      }
    }
  });
}

}  // namespace

template <class T>
void depthwise_forward(const ConvPlan& s, const T* x, const T* weight, const T* bias, T* y) {
  sums_of_windows(s, false, x, weight, bias, y);
}
template <class T>
void depthwise_backward_data(const ConvPlan& s, const T* grad, const T* weight, T* grad_x) {
  sums_of_windows(s, true, grad, weight, static_cast<const T*>(nullptr), grad_x);
}
template <class T>
void depthwise_backward_weights(const ConvPlan& s, const T* x, const T* grad, T* grad_weight) {
  const Windows windows(s, false);
  const int64_t c = s.c, size = s.kernel() * c, lines = s.n * windows.lines();
  // Each piece has sums of its own, which are to be few beside the work.
  const int64_t pieces = std::clamp<int64_t>(std::min(s.work() >> 18, s.work() / std::max<int64_t>(1, size * 64)), 1,
                                             std::min<int64_t>(16, std::max<int64_t>(1, lines)));
  const int64_t per_piece = (lines + pieces - 1) / pieces;
  std::vector<T> parts(size_t(pieces * size), T(0));
  const auto& loops = loops::depthwise_loops<T>();
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin * per_piece; line < std::min(lines, end * per_piece); ++line) {
      poll_signals();
      T* const sums = parts.data() + line / per_piece * size;
      windows.each_row(line, [&](int64_t tap, int64_t row) {
        for (const Segment& segment : windows.along.segments()) {
          if (segment.taps == 0) continue;
          const Tap& first = *windows.along.taps(segment);
          loops.products(grad + (line * s.ow + segment.first) * c, x + (row + first.source + segment.offset) * c,
                         segment.count, s.sw * c, segment.taps, s.dw * c, c, sums + (tap + first.number) * c);
        }
      });
    }
  });
  std::copy_n(parts.data(), size, grad_weight);
  for (int64_t p = 1; p < pieces; ++p)
    for (int64_t j = 0; j < size; ++j) grad_weight[j] += parts[size_t(p * size + j)];
}

#define TAEDA_INSTANTIATE(T)                                                             \
  template void depthwise_forward<T>(const ConvPlan&, const T*, const T*, const T*, T*); \
  template void depthwise_backward_data<T>(const ConvPlan&, const T*, const T*, T*);     \
  template void depthwise_backward_weights<T>(const ConvPlan&, const T*, const T*, T*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
#undef TAEDA_INSTANTIATE

}  // namespace taeda::cpu
