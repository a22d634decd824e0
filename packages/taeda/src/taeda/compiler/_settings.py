"""What settings of a compiler are unless a program makes others: nothing reads them but programs."""

from __future__ import annotations

from typing import Any

# fmt: off
# ruff: noqa: C408
#: `taeda.compiler.config`
COMPILER: dict[str, Any] = dict(
    cache_key_tag="", dynamic_sources="", dynamic_values="", force_cudagraph_gc=False, force_disable_caches=False,
    job_id=None, pgo_extra_read_key=None, pgo_extra_write_key=None, unbacked_sources="",
)
#: `taeda._dynamo.config`
DYNAMO: dict[str, Any] = dict(
    accumulated_cache_size_limit=256, accumulated_recompile_limit=256, allow_empty_graphs=False,
    allow_ignore_mark_dynamic=False, allow_rnn=False, allow_unspec_int_on_nn_module=False,
    assume_dunder_attributes_remain_unchanged=True, assume_static_by_default=True,
    automatic_dynamic_exclusion_guard=False, automatic_dynamic_local_pgo=True, automatic_dynamic_remote_pgo=None,
    automatic_dynamic_shapes=True, automatic_dynamic_shapes_mark_as="dynamic", cache_size_limit=8,
    caching_precompile=False, capture_autograd_function=True, capture_dynamic_output_shape_ops=False,
    capture_func_transforms=True, capture_profiler_record_function=False, capture_scalar_outputs=False,
    capture_sparse_compute=True, compiled_autograd=False, compiled_autograd_kwargs_override={},
    constant_fold_autograd_profiler_enabled=False, cprofile=False, cudagraph_backend_keep_input_mutation=False,
    cudagraph_backend_support_input_mutation=False, dead_code_elimination=None, debug_backend_override="",
    debug_disable_compile_counter=False, debug_dynamo_config_override="",
    debug_force_graph_break_on_leaf_return=False, debug_force_nested_calls=False, debug_inductor_config_override="",
    disable=False, do_not_emit_runtime_asserts=False, dont_skip_tracing=False, dynamic_shapes=True,
    dynamo_profiler=False, enable_aot_compile=True, enable_compiler_collectives=False,
    enable_cpp_framelocals_guard_eval=True, enable_cpp_guard_manager=True, enable_cpp_symbolic_shape_guards=False,
    enable_dynamo_decompositions=True, enable_faithful_generator_behavior=True,
    enable_invoke_subgraph_regional_compile=False, enable_p2p_compilation=False, enable_trace_contextlib=True,
    enable_trace_load_build_class=False, enable_trace_unittest=False,
    error_on_dynamo_callback_in_fullgraph_compiled_code=False, error_on_nested_fx_trace=True,
    error_on_nested_jit_trace=True, error_on_recompile=False, fail_on_cache_limit_hit=False,
    fail_on_recompile_limit_hit=False, fake_tensor_cache_crosscheck_enabled=False, fake_tensor_cache_enabled=True,
    fake_tensor_disable_inference_mode=True, force_compile_during_fx_trace=False,
    force_nn_module_property_static_shapes=True, force_parameter_static_shapes=True,
    force_unspec_int_unbacked_size_like_on_torchrec_kjt=False, generate_pycode=False,
    graph_break_on_nn_param_ctor=True, graph_deduplication_lint=False, guard_nn_modules=True,
    guard_nn_modules_using_dict_tags=True, ignore_logging_functions=set(),
    inject_BUILD_SET_unimplemented_TESTING_ONLY=False, inline_inbuilt_nn_modules=True, inline_invoke_subgraph=False,
    inline_single_use_invoke_subgraph=True, inline_torch_dispatch_torch_compile=True, install_free_tensors=False,
    install_free_tensors_for_export=True, invalidate_compile_context_weakrefs=None, issue_3_13_0_warning=True,
    leaf_function_check_escaped_gradients=False, leaf_function_validate_outputs=False, log_compilation_metrics=True,
    log_graph_in_out_metadata=False, max_saved_pointers_for_recursive_dict_tags_check=256, minimum_call_count=1,
    nested_graph_breaks=False, nontraceable_tensor_subclasses=set(), numpy_default_complex="complex128",
    numpy_default_float="float64", numpy_default_int="int64", only_allow_pt2_compliant_ops=False, optimize_ddp=True,
    optimize_ddp_lazy_compile=False, prefer_deferred_runtime_asserts_over_guards=False, prepare_freezing=False,
    pt2_compile_id_prefix=None, raise_on_ctx_manager_usage=True, raise_on_unsafe_aot_autograd=False,
    recompile_limit=8, record_compile_time_instruction_count=False, record_runtime_overhead=True,
    reorderable_logging_functions=set(), replay_record_enabled=False, replay_side_effects=True,
    report_guard_failures=True, repro_after=None, repro_forward_only=False, repro_ignore_non_fp=False,
    repro_level=2, repro_tolerance=0.001, rewrite_assert_with_torch_assert=True, run_gc_after_compile=True,
    same_two_models_use_fp64=True, side_effect_replay_policy="info",
    skip_code_recursive_on_recompile_limit_hit=True, skip_fsdp_guards=True,
    skip_fwd_side_effects_in_bwd_under_checkpoint=False, skip_guards_on_constant_func_defaults=False,
    skip_nnmodule_hook_guards=True, skip_no_tensor_aliasing_guards_on_parameters=True,
    skip_tensor_guards_with_matching_dict_tags=True, skip_torchrec=True, skipfiles_inline_module_allowlist={},
    specialize_float=False, specialize_int=False, strict_precompile=False, suppress_errors=False,
    trace_autograd_ops=False, trace_numpy=True, traceable_tensor_subclasses=set(),
    track_nodes_for_deduplication=False, use_graph_deduplication=False, use_lamba_guard_for_object_aliasing=True,
    use_lazy_graph_module=True, use_numpy_random_stream=False, use_recursive_dict_tags_for_guards=False,
    verbose=False, verify_correctness=False, wrap_top_frame=False,
)
#: `taeda._functorch.config`
FUNCTORCH: dict[str, Any] = dict(
    activation_memory_budget=1.0, activation_memory_budget_runtime_estimator="flops",
    activation_memory_budget_solver="dp", activation_offload_cpu_gpu_bw=50.0,
    activation_offload_separate_stream=False, activation_offload_sink_wait=False, activation_reload_prefetch=False,
    aggressive_recomputation=False, autograd_cache_allow_custom_autograd_functions=False,
    autograd_cache_normalize_inputs=True, backward_pass_autocast="same_as_forward",
    ban_recompute_long_fusible_chains=True, ban_recompute_materialized_backward=True,
    ban_recompute_not_in_allowlist=True, ban_recompute_reductions=True, ban_recompute_used_far_apart=True,
    bundled_autograd_cache=False, bypass_autograd_cache_key=False, check_custom_op_aliasing=True, cse=True,
    custom_op_default_layout_constraint="needs_exact_strides", debug_assert=False, debug_partitioner=False,
    decompose_custom_triton_ops=True, disable_guess_zero_tangent_for_mutated_input_subclass=False,
    donated_buffer=False, enable_activation_offloading=False, enable_autograd_cache=True,
    enable_complex_wrapper=False, enable_remote_autograd_cache=None, error_on_custom_op_aliasing=False,
    fake_tensor_allow_meta=True, fake_tensor_allow_unsafe_data_ptr_access=True, fake_tensor_crossref=False,
    fake_tensor_prefer_device_type=None, fake_tensor_propagate_real_tensors=False, force_autograd_cache=False,
    force_non_lazy_backward_lowering=False, functionalize_rng_ops=False,
    generate_fake_kernels_from_real_mismatches=False, graphsafe_rng_functionalization=True,
    guess_tangent_strides_as_outputs=True, is_non_builtin_to_include=False, joint_custom_pass=None,
    max_dist_from_bw=1000, memory_budget_pareto_dir=None, recompute_views=False,
    remat_using_tags_for_fwd_loss_bwd_graph=True, saved_tensors_hooks_filtering_mode="donated",
    selective_decompose=False, static_weight_shapes=True, strict_autograd_cache=False,
    torch_compile_graph_format="svg", treat_parameters_as_free_to_save=True, unlift_effect_tokens=False,
    unsafe_allow_optimization_of_collectives=False, unsafe_treat_script_objects_as_zero_size=False,
    view_replay_for_aliased_outputs=True, visualize_memory_budget_pareto=False,
)
#: `taeda.fx.experimental._config`
SHAPES: dict[str, Any] = dict(
    aggressive_guard_free_semantics=0, backed_size_oblivious=False, check_shape_env_recorded_events=False,
    enrich_profiler_metadata=False, extended_debug_cpp=False, extended_debug_create_symbol=None,
    extended_debug_current_loc=False, extended_debug_guard_added=None,
    inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY=False, meta_nonzero_assume_all_nonzero=False,
    no_data_dependent_graph_break=False, print_specializations=False, skip_dtype_check_in_meta_registrations=False,
    soft_pending_unbacked_not_found_error=False, symbol_guard_limit_before_specialize=None,
    translation_validation=False, translation_validation_no_bisect=False, translation_validation_timeout=600000,
    unify_view_symbols_bso_meta=False, use_duck_shape=True, validate_shape_env_version_key=False,
)
# fmt: on
