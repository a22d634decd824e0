// Arguments of the optim family that are refused on every device alike.
#pragma once
#include "taeda/spec.h"

namespace taeda::infer {

void fused_sgd(TensorList params, TensorList grads, TensorList buffers, double momentum);
void fused_adam(TensorList params, TensorList grads, TensorList averages, TensorList squares, TensorList largest,
                IntSpan steps, bool amsgrad);

}  // namespace taeda::infer
