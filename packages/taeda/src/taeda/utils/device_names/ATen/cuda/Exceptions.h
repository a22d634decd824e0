// What PyTorch has under this name; see c10/cuda/CUDAException.h.
#pragma once
#include "c10/cuda/CUDAException.h"
