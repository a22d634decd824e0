// The short-time Fourier transform and its inverse: frames of a signal, weighed by a window, transformed.
#include <algorithm>

#include "composite/host.h"
#include "taeda/arithmetic.h"
#include "taeda/checked.h"
#include "taeda/ops/cast.h"
#include "taeda/ops/creation.h"
#include "taeda/ops/fft.h"
#include "taeda/ops/reduce.h"
#include "taeda/ops/shape.h"
#include "taeda/ops/unary.h"
#include "taeda/wrappers.h"

namespace taeda::impl {
namespace {

/// The sizes that both directions are given, with the usual ones in place of those that are not.
struct Frames {
  int64_t n_fft, hop, win;
  Frames(const char* op, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
         const Tensor& window)
      : n_fft(n_fft), hop(hop_length.value_or(n_fft / 4)), win(win_length.value_or(n_fft)) {
    check(n_fft > 0, ErrorKind::Runtime, op, ": argument 'n_fft' is ", n_fft, ", expected at least 1");
    check(hop > 0, ErrorKind::Runtime, op, ": argument 'hop_length' is ", hop, ", expected at least 1");
    check(win > 0 && win <= n_fft, ErrorKind::Runtime, op, ": argument 'win_length' is ", win,
          ", expected 1 to 'n_fft', ", n_fft);
    if (window.defined() && (window.dim() != 1 || window.size(0) != win)) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": argument 'window' has shape ", shape_text(window.sizes()), ", expected (", win,
           ",), one number for each of 'win_length'");
  }
  /// The window, in the middle of a frame; undefined for ones.
  Tensor window_of(const Tensor& window, const Tensor& like) const {
    Tensor w = window;
    if (win == n_fft) return w;
    if (!w.defined()) w = ops::ones(Shape{win}, real_of(like.dtype()), stated_device(like));
    const int64_t left = (n_fft - win) / 2;
    return ops::constant_pad_nd(w, Shape{left, n_fft - win - left}, 0);
  }
};

Tensor padded(const Tensor& signal, int64_t by, std::string_view mode) {
  // The modes that repeat a signal are defined for batches of channels.
  Shape sizes(signal.sizes()), batch(sizes);
  while (batch.size() < 3) batch.insert(0, 1);
  const Tensor wide = ops::pad(ops::reshape(signal, batch), Shape{by, by}, mode, std::nullopt);
  sizes.back() = wide.size(-1);
  return ops::reshape(wide, sizes);
}

}  // namespace

Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
            const Tensor& window, bool center, std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
            std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  check(is_floating(self.dtype()) || is_complex(self.dtype()), ErrorKind::Runtime, "stft: argument 'self' has dtype ",
        name(self.dtype()), ", expected a floating-point or complex one");
  if (self.dim() != 1 && self.dim() != 2) [[unlikely]]
    fail(ErrorKind::Runtime, "stft: argument 'self' has shape ", shape_text(self.sizes()),
         ", expected (samples) or (batch, samples)");
  check(!center || !align_to_window, ErrorKind::Runtime,
        "stft: argument 'align_to_window' is for center=False, found center=True");
  const bool complex = is_complex(self.dtype()) || (window.defined() && is_complex(window.dtype()));
  check(return_complex || complex, ErrorKind::Runtime,
        "stft: argument 'return_complex' must be given for real signals; view_as_real makes pairs of complex numbers");
  const bool half = onesided.value_or(!complex);
  check(!half || !complex, ErrorKind::Runtime,
        "stft: argument 'onesided' is True, but the spectrum of complex numbers has no symmetry");

  Tensor signal = self.dim() == 1 ? ops::unsqueeze(self, 0) : self;
  if (center) signal = padded(signal, n_fft / 2, pad_mode);
  const Frames frames("stft", n_fft, hop_length, win_length, window);
  const bool aligned = align_to_window.value_or(false);
  if (aligned) signal = ops::constant_pad_nd(signal, Shape{(n_fft - frames.win) / 2, (n_fft - frames.win) / 2}, 0);
  check(n_fft <= signal.size(1), ErrorKind::Runtime, "stft: argument 'n_fft' is ", n_fft, ", expected at most ",
        signal.size(1), ", the samples");

  Tensor x = ops::unfold(signal, 1, n_fft, frames.hop);
  const Tensor w = frames.window_of(window, self);
  if (w.defined()) x = ops::mul(x, w);
  Tensor spectrum;
  if (complex) {
    if (!is_complex(x.dtype())) x = ops::cast(x, complex_of(x.dtype()));
    spectrum = ops::_fft_c2c(x, Shape{2}, normalized ? 1 : 0, true);
  } else {
    spectrum = ops::_fft_r2c(x, Shape{2}, normalized ? 1 : 0, half);
  }
  spectrum = ops::transpose(spectrum, 1, 2);
  if (self.dim() == 1) spectrum = ops::squeeze_dims(spectrum, Shape{0});
  return return_complex.value_or(true) ? spectrum : ops::view_as_real(spectrum);
}

namespace {

/// Frames (batch, count, n), `hop` samples apart, added where they overlap: (batch, n + hop (count - 1)).
Tensor overlapped(Tensor frames, int64_t hop) {
  const int64_t batch = frames.size(0), count = frames.size(1), n = frames.size(2), pieces = (n + hop - 1) / hop;
  const int64_t length = (Count(n) + Count(hop) * (count - 1)).of("istft");
  if (pieces * hop != n) frames = ops::constant_pad_nd(frames, Shape{0, pieces * hop - n}, 0);
  Tensor sum;
  for (int64_t k = 0; k < pieces; ++k) {
    const Tensor piece = ops::narrow(frames, 2, k * hop, hop);
    const Tensor moved = ops::constant_pad_nd(piece, Shape{0, 0, k, pieces - 1 - k}, 0);
    sum = sum.defined() ? sum + moved : moved;
  }
  return ops::narrow(ops::reshape(sum, Shape{batch, -1}), 1, 0, length);
}

}  // namespace

Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
             const Tensor& window, bool center, bool normalized, std::optional<bool> onesided,
             std::optional<int64_t> length, bool return_complex) {
  const char* const op = "istft";
  check(is_complex(self.dtype()), ErrorKind::Runtime, op, ": argument 'self' has dtype ", name(self.dtype()),
        ", expected a complex one, as stft gives it with return_complex=True");
  if ((self.dim() != 2 && self.dim() != 3) || self.numel() == 0) [[unlikely]]
    fail(ErrorKind::Runtime, op, ": argument 'self' has shape ", shape_text(self.sizes()),
         ", expected (frequencies, frames) or (batch, frequencies, frames) with elements");
  const Frames frames(op, n_fft, hop_length, win_length, window);
  check(frames.hop <= frames.win, ErrorKind::Runtime, op, ": argument 'hop_length' is ", frames.hop,
        ", expected 1 to 'win_length', ", frames.win);
  check(!window.defined() || window.device() == self.device(), ErrorKind::Runtime, op,
        ": arguments 'self' and 'window' are on different devices");
  const int64_t count = self.size(-1), points = self.size(-2);
  const bool half = onesided.value_or(points != n_fft);
  check(points == (half ? n_fft / 2 + 1 : n_fft), ErrorKind::Runtime, op, ": argument 'self' has ", points,
        " frequencies, expected ", half ? n_fft / 2 + 1 : n_fft, " for n_fft ", n_fft,
        half ? " and onesided" : " and all of them");
  const bool complex_window = window.defined() && is_complex(window.dtype());
  check(!half || !(return_complex || complex_window), ErrorKind::Runtime, op,
        ": a onesided spectrum belongs to a real signal, which 'return_complex' and a complex window cannot give");
  check(return_complex || !complex_window, ErrorKind::Runtime, op,
        ": argument 'window' is complex, which needs return_complex=True");

  const Tensor spectrum = ops::transpose(self.dim() == 2 ? ops::unsqueeze(self, 0) : self, 1, 2);
  const int64_t norm = normalized ? 1 : 2;
  Tensor x;
  if (return_complex) x = ops::_fft_c2c(spectrum, Shape{2}, norm, false);
  else x = ops::_fft_c2r(half ? spectrum : ops::narrow(spectrum, 2, 0, n_fft / 2 + 1), Shape{2}, norm, n_fft);
  Tensor w = frames.window_of(window, self);
  if (!w.defined()) w = ops::ones(Shape{n_fft}, real_of(self.dtype()), stated_device(self));

  const Tensor sum = overlapped(x * w, frames.hop);
  const Tensor envelope = overlapped(ops::expand(w * w, Shape{1, count, n_fft}), frames.hop);
  const int64_t all = sum.size(1), start = center ? n_fft / 2 : 0;
  check(!length || *length > 0, ErrorKind::Runtime, op, ": argument 'length' is ", length.value_or(0),
        ", expected at least 1");
  const int64_t end = length ? (Count(start) + *length).of(op) : center ? all - n_fft / 2 : all;
  const int64_t stop = std::min(end, all);
  check(start < stop, ErrorKind::Runtime, op, ": nothing is left of ", all, " samples between ", start, " and ", stop);
  const Tensor weight = ops::narrow(envelope, 1, start, stop - start);
  if (readable(weight)) {
    const double least = number_of(ops::amin(ops::abs(ops::detach(weight))));
    check(least > 1e-11, ErrorKind::Runtime, op,
          ": argument 'window' leaves out samples: the least sum of its overlapping squares is ", least);
  }
  Tensor y = ops::narrow(sum, 1, start, stop - start) / weight;
  if (end > all) y = ops::constant_pad_nd(y, Shape{0, end - all}, 0);
  return self.dim() == 2 ? ops::squeeze_dims(y, Shape{0}) : y;
}

}  // namespace taeda::impl
