/* What the files of abilities beyond the first afternoon share. */
#pragma once

#include "../sim.h"

/* Leaves a function with the status of a call that failed. */
#define TRY(call)                        \
  do {                                   \
    const int32_t tried = (call);        \
    if (tried != TAEDA_OK) return tried; \
  } while (0)

/* --- call.c: what a worker needs of a tensor. */
int32_t sim_see(Call* call, taeda_tensor tensor, View* view);

/* --- each file: what it offers of the backend, and what it registers. */
void sim_offer_activities(taeda_backend* backend);
void sim_offer_collectives(taeda_backend* backend);
void sim_offer_graphs(taeda_backend* backend);
int32_t sim_register_attention(void);
int32_t sim_register_layouts(void);
int32_t sim_register_small(void);
