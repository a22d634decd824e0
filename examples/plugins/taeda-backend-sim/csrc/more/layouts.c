/* An opaque layout, "columns": matrices whose columns lie in a row. taeda finds the operators of a layout by their names;
 * what it calls with packed arguments is whatever the device has an operator for, here `linear`. */
#include "more.h"

/* --- on a worker --- */

/* out; self: rows become columns. Elements are 8 bytes here, numbers of either class. */
static int32_t turn(Call* call) {
  const View* in = call->a[1].view;
  const int64_t rows = in->sizes[0], columns = in->sizes[1];
  const Array from = load(call, in, in->dtype), to = array(call, from.real, in->n);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to.i[j * rows + i] = from.i[i * columns + j];
  return store(call->a[0].view, to), TAEDA_OK;
}
/* out; input, packed weight, bias */
static int32_t linear(Call* call) {
  const View *out = call->a[0].view, *packed = call->a[2].view, *shift = call->a[3].view;
  const int64_t inner = packed->sizes[0], width = packed->sizes[1];
  const Array x = load(call, call->a[1].view, out->dtype), w = load(call, packed, out->dtype);
  const Array bias = shift ? load(call, shift, out->dtype) : array(call, true, width), to = array(call, true, out->n);
  for (int64_t row = 0; row < out->n / width; ++row)
    for (int64_t k = 0; k < width; ++k) {
      double sum = bias.f[k];
      for (int64_t j = 0; j < inner; ++j) sum += x.f[row * inner + j] * w.f[j * width + k];
      to.f[row * width + k] = sum;
    }
  return store(out, to), TAEDA_OK;
}
static const Kernel kKernels[] = {{"sim::pack_columns", turn, NULL},
                                  {"sim::unpack_columns", turn, NULL},
                                  {"sim::linear_columns", linear, NULL},
                                  {NULL, NULL, NULL}};

/* --- for taeda --- */

static taeda_tensor_info info_of(const taeda_value* value) {
  taeda_tensor_info info = {.size = sizeof info};
  api->tensor_read(value->as.tensor, &info);
  return info;
}
static int32_t infer_pack(void* context, const taeda_call* call, taeda_spec* result) {
  const taeda_tensor_info in = info_of(call->arguments);
  if (in.ndim != 2) return api->set_error(TAEDA_E_VALUE, "the layout 'columns' is one of matrices");
  *result = (taeda_spec){.ndim = 2, .dtype = in.dtype, .sizes = {in.sizes[1], in.sizes[0]}};
  return TAEDA_OK;
}
static int32_t infer_unpack(void* context, const taeda_call* call, taeda_spec* result) {
  const int64_t* sizes = call->arguments[1].as.integers;
  *result = (taeda_spec){.ndim = 2, .dtype = (int32_t)call->arguments[2].as.integer, .sizes = {sizes[0], sizes[1]}};
  return TAEDA_OK;
}
static int32_t infer_linear(void* context, const taeda_call* call, taeda_spec* result) {
  const taeda_tensor_info in = info_of(call->arguments), packed = info_of(call->arguments + 1);
  if (!in.ndim || in.sizes[in.ndim - 1] != packed.sizes[0] || !is_real(in.dtype))
    return api->set_error(TAEDA_E_VALUE, "linear: the input's last dimension must be the weight's, of real numbers");
  *result = (taeda_spec){.ndim = in.ndim, .dtype = in.dtype};
  for (int d = 0; d < in.ndim; ++d) result->sizes[d] = d + 1 < in.ndim ? in.sizes[d] : packed.sizes[1];
  return TAEDA_OK;
}

int32_t sim_register_layouts(void) {
  const taeda_operator operators[] = {
      {.schema = "sim::pack_columns(Tensor self) -> Tensor", .infer = infer_pack},
      {.schema = "sim::unpack_columns(Tensor packed, int[] shape, DType dtype) -> Tensor", .infer = infer_unpack},
      {.schema = "sim::linear_columns(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", .infer = infer_linear},
  };
  for (size_t i = 0; i < sizeof operators / sizeof *operators; ++i) {
    taeda_operator made = operators[i];
    made.size = sizeof made;
    made.owner = "taeda-backend-sim";
    TRY(api->op_define(&made, NULL));
  }
  return sim_register(kKernels);
}
