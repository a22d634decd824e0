// What PyTorch has under this name; see c10/cuda/CUDAGuard.h.
#pragma once
#include "c10/cuda/CUDAGuard.h"
