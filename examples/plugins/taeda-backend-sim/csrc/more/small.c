/* Small numbers: float8 as kernels read and write it, and products with weights of float8 and of packed int4, whose
 * bytes hold two numbers, the first in the lower half. */
#include "more.h"

#include <math.h>

/* --- float8: e4m3fn has one NaN and no infinity, so that what is too large ends at its last number --- */

typedef struct Format {
  int fraction, bias, last; /* bits of the fraction; the largest code of a finite number */
} Format;
static Format format_of(int dtype) { return dtype == TAEDA_FLOAT8_E4M3FN ? (Format){3, 7, 0x7e} : (Format){2, 15, 0x7b}; }
double sim_from_float8(uint8_t code, int dtype) {
  const Format format = format_of(dtype);
  const int size = code & 0x7f, exponent = size >> format.fraction, fraction = size & ((1 << format.fraction) - 1);
  double value;
  if (size > format.last) value = dtype == TAEDA_FLOAT8_E5M2 && size == 0x7c ? INFINITY : NAN;
  else if (exponent == 0) value = ldexp(fraction, 1 - format.bias - format.fraction);
  else value = ldexp((1 << format.fraction) + fraction, exponent - format.bias - format.fraction);
  return code & 0x80 ? -value : value;
}
uint8_t sim_to_float8(double value, int dtype) {
  const Format format = format_of(dtype);
  const uint8_t sign = signbit(value) ? 0x80 : 0, most = dtype == TAEDA_FLOAT8_E5M2 ? 0x7c : 0x7e;
  value = fabs(value);
  if (isnan(value)) return sign | 0x7f;
  if (isinf(value)) return sign | most;
  int exponent;
  frexp(value, &exponent);                                                      /* of a number from a half to one */
  if (value == 0 || exponent - 1 < 1 - format.bias) exponent = 2 - format.bias; /* subnormal, or rounded up from it */
  const double code = nearbyint(ldexp(value, format.fraction + 1 - exponent)) +
                      ((exponent - 2 + format.bias) << format.fraction); /* a carry makes the next exponent */
  return sign | (code > format.last ? most : (uint8_t)code);
}

/* --- on a worker --- */

/* out; input, weight, scales: x W^T with a scale for each row of W */
static int32_t product(Call* call) {
  const View *out = call->a[0].view, *weight = call->a[2].view;
  const bool packed = weight->dtype == TAEDA_UINT8;
  const Array x = load(call, call->a[1].view, out->dtype), w = load(call, weight, packed ? TAEDA_UINT8 : out->dtype);
  const Array scales = load(call, call->a[3].view, out->dtype), to = array(call, true, out->n);
  const int64_t width = weight->sizes[0], bytes = weight->sizes[1], rows = width ? out->n / width : 0;
  const int64_t inner = rows ? x.n / rows : 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < width; ++k) {
      double sum = 0;
      for (int64_t j = 0; j < inner; ++j) {
        const int64_t half = packed ? w.i[k * bytes + j / 2] >> (j % 2 ? 4 : 0) & 15 : 0;
        sum += x.f[row * inner + j] * (packed ? (double)((half ^ 8) - 8) : w.f[k * bytes + j]);
      }
      to.f[row * width + k] = sum * scales.f[k];
    }
  return store(out, to), TAEDA_OK;
}
static const Kernel kKernels[] = {{"sim::linear_int4", product, NULL}, {"sim::linear_float8", product, NULL}, {NULL, NULL, NULL}};

/* --- for taeda --- */

static int32_t infer_product(void* context, const taeda_call* call, taeda_spec* result) {
  taeda_tensor_info info[3];
  for (int i = 0; i < 3; ++i) {
    info[i] = (taeda_tensor_info){.size = sizeof *info};
    TRY(api->tensor_read(call->arguments[i].as.tensor, info + i));
  }
  const taeda_tensor_info *input = info, *weight = info + 1, *scales = info + 2;
  const int64_t inner = input->ndim ? input->sizes[input->ndim - 1] : -1;
  const bool packed = weight->dtype == TAEDA_UINT8;
  if (input->dtype != TAEDA_FLOAT32 || weight->ndim != 2 || weight->sizes[1] != (packed ? (inner + 1) / 2 : inner) ||
      scales->ndim != 1 || scales->sizes[0] != weight->sizes[0])
    return api->set_error(TAEDA_E_VALUE, "expected float32 input, a weight of its last dimension, and a scale for each row");
  *result = (taeda_spec){.ndim = input->ndim, .dtype = input->dtype};
  for (int d = 0; d < input->ndim; ++d) result->sizes[d] = d + 1 < input->ndim ? input->sizes[d] : weight->sizes[0];
  return TAEDA_OK;
}

int32_t sim_register_small(void) {
  static const char* const schemas[] = {"sim::linear_int4(Tensor input, Tensor packed, Tensor scales) -> Tensor",
                                        "sim::linear_float8(Tensor input, Tensor weight, Tensor scales) -> Tensor"};
  for (int i = 0; i < 2; ++i) {
    const taeda_operator made = {.size = sizeof made, .schema = schemas[i], .owner = "taeda-backend-sim", .infer = infer_product};
    TRY(api->op_define(&made, NULL));
  }
  return sim_register(kKernels);
}
