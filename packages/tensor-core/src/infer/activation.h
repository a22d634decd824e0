// Inference of the activation family that looks at the values of Python numbers.
#pragma once
#include "infer/numbers.h"
