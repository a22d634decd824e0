// What lists of parameters and their states must have in common.
#include "infer/optim.h"

#include "taeda/infer.h"
#include "taeda/ops/optim.h"

namespace taeda::infer {
namespace {

void check_params(const char* op, TensorList params) {
  for (const Tensor& param : params)
    check(is_floating(param.dtype()), ErrorKind::NotImplemented, op, ": not implemented for dtype ",
          name(param.dtype()));
}
void check_list(const char* op, const char* argument, TensorList list, TensorList params) {
  check(list.size() == params.size(), ErrorKind::Runtime, op, ": argument '", argument, "' has ", list.size(),
        " tensors, expected ", params.size());
  for (size_t i = 0; i < params.size(); ++i)
    if (!same_shape(list[i], params[i]) || list[i].dtype() != params[i].dtype()) [[unlikely]]
      fail(ErrorKind::Runtime, op, ": argument '", argument, "' has ", describe(list[i]), " at position ", i,
           ", expected the shape and dtype of the parameter, ", describe(params[i]));
}

}  // namespace

void fused_sgd(TensorList params, TensorList grads, TensorList buffers, double momentum) {
  const char* op = "_fused_sgd_";
  check_params(op, params);
  check_list(op, "grads", grads, params);
  if (momentum != 0) check_list(op, "momentum_buffers", buffers, params);
}

void fused_adam(TensorList params, TensorList grads, TensorList averages, TensorList squares, TensorList largest,
                IntSpan steps, bool amsgrad) {
  const char* op = "_fused_adam_";
  check_params(op, params);
  check_list(op, "grads", grads, params);
  check_list(op, "exp_avgs", averages, params);
  check_list(op, "exp_avg_sqs", squares, params);
  if (amsgrad) check_list(op, "max_exp_avg_sqs", largest, params);
  check(steps.size() == params.size(), ErrorKind::Runtime, op, ": argument 'steps' has ", steps.size(),
        " items, expected ", params.size());
}

}  // namespace taeda::infer
