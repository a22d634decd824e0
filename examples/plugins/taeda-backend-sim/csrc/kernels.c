/* All families of kernels. */
#include "sim.h"

int32_t sim_register_kernels(void) {
  int32_t (*const families[])(void) = {sim_register_elementwise, sim_register_lines, sim_register_index, sim_register_linalg, sim_register_window, sim_register_norm, sim_register_random, sim_register_loss, sim_register_step};
  int32_t status = TAEDA_OK;
  for (size_t i = 0; i < sizeof families / sizeof *families && status == TAEDA_OK; ++i) status = families[i]();
  return status;
}
