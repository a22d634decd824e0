// The tables of inner loops of network layers (pooling, normalisation, losses, cells): one copy per instruction set.
#pragma once
#include <cstdint>

#include "taeda/dtype.h"

namespace taeda::loops {

/// Windows of a pooling operator: output row y covers input rows row_begin[y], + row_step, ... < row_end[y]; columns
/// likewise.
struct Windows {
  int64_t n, c, h, w, oh, ow;
  int64_t row_step = 1, column_step = 1;
  int64_t kernel_w = 0;  // for window numbers
  const int32_t *row_begin = nullptr, *row_end = nullptr, *column_begin = nullptr, *column_end = nullptr;
  const int32_t *row_first = nullptr, *column_first = nullptr;  // begin before clipping, for window numbers
  // For gradients by numbers: elements of a window, and how many pixels each of the 256 numbers lies from the first one
  // (those that are none lie outside of any image).
  int64_t elements = 0;
  const int64_t* apart = nullptr;
};

/// Element-wise losses of an input and a target.
enum PairLoss { kMse, kL1, kSmoothL1, kHuber, kBce, kBceWithLogits, kPairLossCount };
struct PairLoops {
  double (*sum)(const void* x, const void* t, double parameter, int64_t n);
  void (*map)(const void* x, const void* t, double parameter, int64_t n, void* out);
  /// out = grad * slope, or scale * slope when grad is null.
  void (*slope)(const void* x, const void* t, const void* grad, double scale, double parameter, int64_t n, void* out);
};

/// Loops for one floating type (void* is T*). "rows" are output rows n * oh + y of channels-last tensors.
struct LayerLoops {
  /// Maxima with window numbers (uint8) or positions (int64); exactly one of the two is given.
  void (*max_pool)(const Windows& s, const void* x, void* out, uint8_t* offsets, int64_t* positions, int64_t row_begin,
                   int64_t row_end);
  /// The same for row-major planes n * c.
  void (*max_pool_planes)(const Windows& s, const void* x, void* out, uint8_t* offsets, int64_t* positions,
                          int64_t begin, int64_t end);
  /// Sums over windows, divided by divisors[y * ow + x].
  void (*avg_pool)(const Windows& s, const void* x, void* out, const double* divisors, int64_t row_begin,
                   int64_t row_end);
  void (*avg_pool_planes)(const Windows& s, const void* x, void* out, const double* divisors, int64_t begin,
                          int64_t end);
  /// grad_x of one image, channels [c0, c1): cleared, then added to.
  void (*max_pool_backward)(const Windows& s, const void* grad, const uint8_t* offsets, void* grad_x, int64_t image,
                            int64_t c0, int64_t c1);
  void (*avg_pool_backward)(const Windows& s, const void* grad, void* grad_x, const double* divisors, int64_t image,
                            int64_t c0, int64_t c1);

  /// Rows of c channels: sums of (x - shift) and of its square, into sums[0..c) and sums[c..2c).
  void (*channel_moments)(const void* x, const void* shift, int64_t rows, int64_t c, double* sums);
  /// Sums of grad and of grad * (x - mean).
  void (*channel_products)(const void* grad, const void* x, const void* mean, int64_t rows, int64_t c, double* sums);
  /// y = (x - center) * scale + offset for each channel; the center first, for a large mean would cancel late.
  void (*channel_affine)(const void* x, const void* center, const void* scale, const void* offset, int64_t rows,
                         int64_t c, void* y);
  /// out = a * grad + b * (x - center) + d for each channel.
  void (*channel_combine)(const void* grad, const void* x, const void* center, const void* a, const void* b,
                          const void* d, int64_t rows, int64_t c, void* out);
  // The same for planes of n elements of one channel each, one after the other, with what the channel has for each of
  // them; sums are added to first[plane] and second[plane].
  void (*plane_moments)(const void* x, const void* shift, int64_t planes, int64_t n, double* first, double* second);
  void (*plane_products)(const void* grad, const void* x, const void* mean, int64_t planes, int64_t n, double* first,
                         double* second);
  void (*plane_affine)(const void* x, const void* center, const void* scale, const void* offset, int64_t planes,
                       int64_t n, void* y);
  void (*plane_combine)(const void* grad, const void* x, const void* center, const void* a, const void* b,
                        const void* d, int64_t planes, int64_t n, void* out);

  /// Rows of n: y = (x - mean) * rstd * weight + bias (either may be null); writes the statistics.
  void (*layer_norm)(const void* x, const void* weight, const void* bias, int64_t rows, int64_t n, double eps, void* y,
                     void* mean, void* rstd);
  /// The same rows: grad_x, and additions to grad_weight and grad_bias (any may be null).
  void (*layer_norm_backward)(const void* grad, const void* x, const void* weight, const void* mean, const void* rstd,
                              int64_t rows, int64_t n, void* grad_x, void* grad_weight, void* grad_bias);

  PairLoops pair[kPairLossCount];
  /// Index of the first value outside [0, 1], or -1.
  int64_t (*outside_unit)(const void* x, int64_t n);

  /// The logarithm of the sum of exp(x - largest).
  double (*log_sum_exp)(const void* x, int64_t n, double* largest);
  double (*row_sum)(const void* x, int64_t n);
  /// out = scale * (exp(x - lse) - smooth), where the exponentials are made to sum up to 1 if `lse` has lost
  /// digits: the gradient of cross entropy without the target's own term.
  void (*softmax_scaled)(const void* x, double lse, double scale, double smooth, int64_t n, void* out);
  // The same of n positions of c planes that lie `step` elements apart.
  /// The largest of each position, and the logarithm of the sum of exp(x - largest).
  void (*plane_log_sum_exp)(const void* x, int64_t step, int64_t c, int64_t n, void* largest, void* log_sum);
  /// out = exp(x - lse) * factor - even * weight[class], with the same exponentials, where factor and even are those of
  /// the position.
  void (*plane_softmax_scaled)(const void* x, const void* lse, const void* factor, const void* even,
                               const double* weight, int64_t step, int64_t c, int64_t n, void* out);
  /// Whether each number is `ignored` or at least 0 and less than c.
  bool (*all_classes)(const int64_t* numbers, int64_t n, int64_t c, int64_t ignored);

  /// out = x * sigmoid(gate).
  void (*gated)(const void* x, const void* gate, int64_t n, void* out);
  void (*gated_backward)(const void* grad, const void* x, const void* gate, int64_t n, void* grad_x, void* grad_gate);
  // Gates of recurrent cells; formulas stand with the operators.
  void (*lstm_gates)(const void* a, const void* b, const void* c, int64_t rows, int64_t h, void* h_out, void* c_out,
                     void* gates);
  void (*lstm_gates_backward)(const void* grad_h, const void* grad_c, const void* gates, const void* c,
                              const void* c_out, int64_t rows, int64_t h, void* grad_gates, void* grad_c_in);
  void (*gru_gates)(const void* a, const void* b, const void* h_in, int64_t rows, int64_t h, void* h_out, void* gates);
  void (*gru_gates_backward)(const void* grad, const void* gates, const void* h_in, int64_t rows, int64_t h,
                             void* grad_a, void* grad_b, void* grad_h);
};

/// Declares the copy of one instruction set.
#define TAEDA_LAYER_LOOPS(ISA)                         \
  namespace ISA {                                      \
  extern const LayerLoops layers_float, layers_double; \
  }
#ifdef TAEDA_ISA
TAEDA_LAYER_LOOPS(TAEDA_ISA)
#endif

namespace base {
/// LayerLoops::max_pool_planes of whole numbers; there for all their dtypes.
template <class T>
void max_pool_planes(const Windows& s, const void* x, void* out, uint8_t* offsets, int64_t* positions, int64_t begin,
                     int64_t end);
}  // namespace base

/// The loops for this machine (src/cpu/isa.cpp).
struct LayerTables {
  const LayerLoops &of_float, &of_double;
};
const LayerTables& layer_tables() noexcept;

/// The same by element type: float or double.
template <class T>
const LayerLoops& layers() noexcept {
  static const LayerLoops& chosen = sizeof(T) == 4 ? layer_tables().of_float : layer_tables().of_double;
  return chosen;
}

}  // namespace taeda::loops
