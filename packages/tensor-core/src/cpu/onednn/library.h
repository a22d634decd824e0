// oneDNN's interface, whose library is loaded when the first of its functions is called.
#pragma once
#ifdef TAEDA_WITH_ONEDNN
#include <dnnl.h>

#include <atomic>

namespace taeda::onednn {

// Note [oneDNN is loaded late]
// Its library is as large as all others together: a process that multiplies small matrices, or none, reads fewer pages
// and starts sooner without it. So nothing is linked with it. The names below, in oneDNN's own C++ header too, stand
// for functions that are looked up in the library when they are first called; one that is used and not listed is
// missing when libtaeda is linked.

/// Loads the library beside this one, and gives it this library's threads; once, from any thread.
void load();

/// A function of the library, which is loaded for it; RuntimeError where it is not there.
void* find(const char* name);

template <class Function>
class Late {
 public:
  explicit constexpr Late(const char* name) : name_(name) {}
  Function* get() {
    Function* function = found_.load(std::memory_order_acquire);
    if (!function) found_.store(function = reinterpret_cast<Function*>(find(name_)), std::memory_order_release);
    return function;
  }

 private:
  std::atomic<Function*> found_{nullptr};
  const char* name_;
};

}  // namespace taeda::onednn

#define TAEDA_LATE(function)                                                  \
  ([] {                                                                       \
    static constinit taeda::onednn::Late<decltype(function)> late{#function}; \
    return late.get();                                                        \
  }())
#define dnnl_convolution_backward_data_primitive_desc_create \
  TAEDA_LATE(dnnl_convolution_backward_data_primitive_desc_create)
#define dnnl_convolution_backward_weights_primitive_desc_create \
  TAEDA_LATE(dnnl_convolution_backward_weights_primitive_desc_create)
#define dnnl_convolution_forward_primitive_desc_create TAEDA_LATE(dnnl_convolution_forward_primitive_desc_create)
#define dnnl_engine_create TAEDA_LATE(dnnl_engine_create)
#define dnnl_engine_destroy TAEDA_LATE(dnnl_engine_destroy)
#define dnnl_get_effective_cpu_isa TAEDA_LATE(dnnl_get_effective_cpu_isa)
#define dnnl_matmul_primitive_desc_create TAEDA_LATE(dnnl_matmul_primitive_desc_create)
#define dnnl_memory_create_v2 TAEDA_LATE(dnnl_memory_create_v2)
#define dnnl_memory_desc_clone TAEDA_LATE(dnnl_memory_desc_clone)
#define dnnl_memory_desc_create_with_strides TAEDA_LATE(dnnl_memory_desc_create_with_strides)
#define dnnl_memory_desc_create_with_tag TAEDA_LATE(dnnl_memory_desc_create_with_tag)
#define dnnl_memory_desc_destroy TAEDA_LATE(dnnl_memory_desc_destroy)
#define dnnl_memory_desc_equal TAEDA_LATE(dnnl_memory_desc_equal)
#define dnnl_memory_desc_get_size_v2 TAEDA_LATE(dnnl_memory_desc_get_size_v2)
#define dnnl_memory_desc_query TAEDA_LATE(dnnl_memory_desc_query)
#define dnnl_memory_desc_query_v2 TAEDA_LATE(dnnl_memory_desc_query_v2)
#define dnnl_memory_destroy TAEDA_LATE(dnnl_memory_destroy)
#define dnnl_memory_set_data_handle TAEDA_LATE(dnnl_memory_set_data_handle)
#define dnnl_post_ops_append_eltwise TAEDA_LATE(dnnl_post_ops_append_eltwise)
#define dnnl_post_ops_append_sum TAEDA_LATE(dnnl_post_ops_append_sum)
#define dnnl_post_ops_create TAEDA_LATE(dnnl_post_ops_create)
#define dnnl_post_ops_destroy TAEDA_LATE(dnnl_post_ops_destroy)
#define dnnl_primitive_attr_create TAEDA_LATE(dnnl_primitive_attr_create)
#define dnnl_primitive_attr_destroy TAEDA_LATE(dnnl_primitive_attr_destroy)
#define dnnl_primitive_attr_set_post_ops TAEDA_LATE(dnnl_primitive_attr_set_post_ops)
#define dnnl_primitive_attr_set_scales_mask TAEDA_LATE(dnnl_primitive_attr_set_scales_mask)
#define dnnl_primitive_attr_set_scratchpad_mode TAEDA_LATE(dnnl_primitive_attr_set_scratchpad_mode)
#define dnnl_primitive_attr_set_zero_points_mask TAEDA_LATE(dnnl_primitive_attr_set_zero_points_mask)
#define dnnl_primitive_create TAEDA_LATE(dnnl_primitive_create)
#define dnnl_primitive_desc_destroy TAEDA_LATE(dnnl_primitive_desc_destroy)
#define dnnl_primitive_desc_next_impl TAEDA_LATE(dnnl_primitive_desc_next_impl)
#define dnnl_primitive_desc_query TAEDA_LATE(dnnl_primitive_desc_query)
#define dnnl_primitive_desc_query_md TAEDA_LATE(dnnl_primitive_desc_query_md)
#define dnnl_primitive_destroy TAEDA_LATE(dnnl_primitive_destroy)
#define dnnl_primitive_execute TAEDA_LATE(dnnl_primitive_execute)
#define dnnl_reorder_primitive_desc_create TAEDA_LATE(dnnl_reorder_primitive_desc_create)
#define dnnl_sgemm TAEDA_LATE(dnnl_sgemm)
#define dnnl_stream_create TAEDA_LATE(dnnl_stream_create)
#define dnnl_stream_destroy TAEDA_LATE(dnnl_stream_destroy)

#include <dnnl.hpp>
#endif
