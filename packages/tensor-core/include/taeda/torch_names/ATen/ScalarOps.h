// What PyTorch has under this name; see taeda/torch_names/names.h.
#pragma once
#include "taeda/torch_names/names.h"
