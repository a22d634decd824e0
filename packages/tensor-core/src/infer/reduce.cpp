// Inference of reductions, scans and softmax.
#include "taeda/infer.h"

#include "infer/dims.h"
#include "infer/dtypes.h"

namespace taeda::infer {
namespace {

[[noreturn]] void unsupported(const char* op, DType d) {
  fail(ErrorKind::NotImplemented, op, ": not implemented for dtype ", name(d));
}
void check_not_empty(const char* op, const Tensor& self, uint64_t reduced, ErrorKind kind = ErrorKind::Index) {
  if (self.numel() > 0) return;
  for (int64_t d = 0; d < self.dim(); ++d)
    if ((reduced >> d & 1) && self.size(d) == 0) [[unlikely]]
      fail(kind, op, ": dimension ", d, " of shape ", shape_text(self.sizes()), " is empty and has no extremum");
}
/// Of a whole tensor. PyTorch raises one error for an extremum and another for its place.
void check_has_elements(const char* op, const Tensor& self, ErrorKind kind) {
  check(self.numel() > 0, kind, op, ": argument 'self' of shape ", shape_text(self.sizes()),
        " has no elements: Expected reduction dim to be specified for input.numel() == 0");
}
Spec same_layout(const Tensor& self, DType dtype) { return spec_like(self.sizes(), dtype, self); }

}  // namespace

uint64_t reduced_dims(const char* op, const Tensor& self, const Dims& dim) {
  uint64_t named = 0;
  for (int64_t d : dim.value_or(IntSpan())) {
    const uint64_t bit = uint64_t(1) << wrap_dim(d, self.dim(), op);
    if (named & bit) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": argument 'dim' ", shape_text(*dim), " names a dimension twice");
    named |= bit;
  }
  return reduced_mask(self, dim);
}
Shape reduced_shape(const Tensor& self, uint64_t reduced, bool keepdim) {
  Shape sizes;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!(reduced >> d & 1)) sizes.push_back(self.size(d));
    else if (keepdim) sizes.push_back(1);
  }
  return sizes;
}
Spec sum(const char* op, const Tensor& self, const Dims& dim, bool keepdim, std::optional<DType> dtype) {
  return spec(reduced_shape(self, reduced_dims(op, self, dim), keepdim), dtype.value_or(accumulated(self.dtype())));
}
Spec mean(const char* op, const Tensor& self, const Dims& dim, bool keepdim, std::optional<DType> dtype) {
  const DType out = dtype.value_or(self.dtype());
  check(!is_integral(out), ErrorKind::Runtime, op, ": expected a floating-point or complex dtype, got ", name(out),
        "; give dtype= or convert first");
  return spec(reduced_shape(self, reduced_dims(op, self, dim), keepdim), out);
}
Spec variance(const Tensor& self, const Dims& dim, bool keepdim) {
  Spec out = mean("var", self, dim, keepdim, std::nullopt);
  out.dtype = real_of(out.dtype);
  return out;
}
Spec extremum(const char* op, const Tensor& self, const Dims& dim, bool keepdim) {
  if (is_complex(self.dtype())) unsupported(op, self.dtype());
  if (!dim || dim->empty()) check_has_elements(op, self, ErrorKind::Runtime);
  const uint64_t reduced = reduced_dims(op, self, dim);
  check_not_empty(op, self, reduced);
  return spec(reduced_shape(self, reduced, keepdim), self.dtype());
}
std::array<Spec, 2> extremum_dim(const char* op, const Tensor& self, int64_t dim, bool keepdim) {
  const Spec values = extremum(op, self, IntSpan(&dim, 1), keepdim);
  return {values, spec(values.sizes, DType::Int64)};
}
Spec arg_extremum(const char* op, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  if (!dim) check_has_elements(op, self, ErrorKind::Index);
  Spec out = dim ? extremum(op, self, IntSpan(&*dim, 1), keepdim) : extremum(op, self, std::nullopt, keepdim);
  out.dtype = DType::Int64;
  return out;
}
Spec truth(const char* op, const Tensor& self, const Dims& dim, bool keepdim) {
  // uint8 was the dtype of truth before there was bool.
  const DType dtype = self.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool;
  return spec(reduced_shape(self, reduced_dims(op, self, dim), keepdim), dtype);
}
Spec vector_norm(const Tensor& self, const Scalar& ord, const Dims& dim, bool keepdim, std::optional<DType> dtype) {
  const DType in = dtype.value_or(self.dtype());
  check(!is_integral(in), ErrorKind::Runtime, "vector_norm: expected a floating-point or complex dtype, got ",
        name(in));
  check(!ord.is_complex(), ErrorKind::Runtime, "vector_norm: argument 'ord' must be a real number");
  const uint64_t reduced = reduced_dims("vector_norm", self, dim);
  if (ord.to_double() < 0 || ord.to_double() == __builtin_inf())
    check_not_empty("vector_norm", self, reduced, ErrorKind::Runtime);
  return spec(reduced_shape(self, reduced, keepdim), real_of(in));
}
Spec scan(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  wrap_dim(dim, self.dim(), op);
  return same_layout(self, dtype.value_or(accumulated(self.dtype())));
}
Spec scan_float(const char* op, const Tensor& self, int64_t dim) {
  wrap_dim(dim, self.dim(), op);
  if (!is_differentiable(self.dtype())) unsupported(op, self.dtype());
  return same_layout(self, self.dtype());
}
std::array<Spec, 2> scan_indices(const char* op, const Tensor& self, int64_t dim) {
  wrap_dim(dim, self.dim(), op);
  if (is_complex(self.dtype())) unsupported(op, self.dtype());
  return {same_layout(self, self.dtype()), same_layout(self, DType::Int64)};
}
Spec softmax(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  wrap_dim(dim, self.dim(), op);
  const DType out = dtype.value_or(self.dtype());
  if (!is_floating(out)) unsupported(op, out);
  return same_layout(self, out);
}

}  // namespace taeda::infer
