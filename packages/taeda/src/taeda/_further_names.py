"""Names of modules whose work is not there, written by tests/parity/further_names.py; see `_compiler_names`.

`name=module` is what stands there below taeda, `Name!Base` an error, `Name:A,B` an enumeration.
"""

# ruff: noqa: E501

NAMES: dict[str, str] = {
    "_awaits": "_PyAwaitMeta",
    "_classes": "_ClassNamespace _Classes",
    "_custom_op": "",
    "_custom_op.autograd":
    "autograd_kernel_indirection autograd_not_implemented construct_autograd_kernel gen_autograd_function "
    "grad_inputs_dict_to_flat_tuple mark_non_differentiable namedtuple_args save_pytree_for_backward unpack_saved "
    "validate_grad_inputs_dict",
    "_custom_op.impl":
    "CustomOp FuncAndLocation custom_op custom_op_from_existing find_ophandle_or_throw get_abstract_impl "
    "get_ctx=library get_op parse_qualname report_error_callback supported_param validate_device_type "
    "validate_function_matches_schema validate_namespace validate_schema warn_deprecated",
    "_dispatch": "",
    "_dispatch.python":
    "Lit all_py_loaded_overloads check_metadata_matches check_tensor_metadata_matches "
    "enable_crossref_functionalize make_crossref_functionalize suspend_functionalization",
    "_export.pass_base": "ExportPassBaseError!RuntimeError _ExportPassBaseDeprecatedDoNotUse",
    "_export.passes.replace_view_ops_with_view_copy_ops_pass":
    "ReplaceViewOpsWithViewCopyOpsPass get_view_copy_of_view_op is_view_op",
    "_export.serde.serialize":
    "EnumEncoder ExportedProgramDeserializer ExportedProgramSerializer ExtensionHandler Final "
    "GraphModuleDeserializer GraphModuleSerializer GraphState LazyMap SerializeError!RuntimeError "
    "SerializedArtifact _SerializedProgram canonicalize deserialize deserialize_device deserialize_scalar_type "
    "deserialize_size deserialize_storage_offset deserialize_stride deserialize_torch_artifact "
    "get_triton_kernel_and_cache_entry is_metadata_matched register_extension serialize "
    "serialize_range_constraints serialize_sym_bool serialize_sym_float serialize_sym_int serialize_tensor_meta "
    "serialize_torch_artifact",
    "_export.verifier":
    "SpecViolationError!Exception TrainingIRVerifier Verifier _VerifierMeta getattr_recursive is_functional "
    "load_verifier",
    "_functorch._activation_checkpointing": "",
    "_functorch._activation_checkpointing.ac_logging_utils":
    "create_activation_checkpointing_logging_structure_payload create_joint_graph_edges "
    "create_joint_graph_node_information create_structured_trace_for_min_cut_info",
    "_functorch._activation_checkpointing.graph_info_provider": "GraphInfoProvider",
    "_functorch._activation_checkpointing.knapsack":
    "dp_knapsack dp_knapsack_sliding_hirschberg greedy_knapsack ilp_knapsack",
    "_functorch._activation_checkpointing.knapsack_evaluator": "KnapsackEvaluator",
    "_functorch._activation_checkpointing.remat_using_tags_for_fwd_loss_bwd_graph_pass":
    "is_impure_node_for_dce remat_using_tags_for_fwd_loss_bwd_graph",
    "_functorch.compile_utils":
    "fx_graph_cse get_aten_target get_outputs get_placeholders raise_getitems strip_overloads",
    "_functorch.fx_minifier":
    "ConcreteProp LoadTensorMeta ReproState create_minified_hlo_graph dump_state is_load_tensor_node "
    "is_power_of_two minifier",
    "_functorch.predispatch": "lazy_load_decompositions",
    "_functorch.utils": "enable_single_level_autograd_function exposed_in=utils._exposed_in unwrap_dead_wrappers",
    "_higher_order_ops.auto_functionalize":
    "AliasViewInfo AsStridedViewInfo AutoFunctionalized AutoFunctionalizedV2 FunctionalCallableWithEpilogue "
    "NotView SchemaHolder SliceViewInfo ViewInfo auto_functionalized auto_functionalized_dense "
    "auto_functionalized_fake auto_functionalized_func auto_functionalized_proxy auto_functionalized_v2 "
    "auto_functionalized_v2_dense auto_functionalized_v2_fake auto_functionalized_v2_func "
    "auto_functionalized_v2_proxy can_auto_functionalize do_auto_functionalize do_auto_functionalize_v2 get_base "
    "get_mutable_args get_mutable_args_from_schema is_alias read_view_information_from_args try_use_slice "
    "write_view_information_to_args",
    "_higher_order_ops.effects":
    "WithEffects call_torchbind handle_effects has_aliasing has_effects hop_print invoke_leaf_function "
    "new_token_tensor with_effects with_effects_dense with_effects_fake with_effects_functional "
    "with_effects_proxy",
    "_higher_order_ops.invoke_subgraph":
    "InvokeSubgraphAutogradOp InvokeSubgraphHOP NestedCompileRegionOptions OutputMetadata create_fw_bw_graph "
    "get_invoke_subgraph_cache get_invoke_subgraph_compile_options get_non_differentiable_indices "
    "get_output_metadata invoke_subgraph invoke_subgraph_inductor_compile invoke_subgraph_infer "
    "invoke_subgraph_placeholder mark_compile_region trace_joint_graph trace_joint_graph_as_bwd "
    "warn_and_trace_duplicate_backward",
    "_higher_order_ops.strict_mode":
    "StrictMode inner strict_mode_fake_tensor_mode strict_mode_func strict_mode_op strict_mode_op_dense "
    "trace_strict_mode",
    "_higher_order_ops.torchbind":
    "CallTorchBind call_torchbind call_torchbind_fake call_torchbind_func call_torchbind_impl "
    "enable_torchbind_tracing inner torchbind_method_redispatch",
    "_lazy.closure": "AsyncClosureHandler ClosureHandler add_step_closure run_step_closures",
    "_lazy.computation": "get_graph_hash get_tensors_ts_device_data_node run_cached_graph",
    "_lazy.config": "get_force_fallback set_force_fallback set_reuse_ir",
    "_lazy.debug": "dump_ir render_ir_graph",
    "_lazy.device_context": "DeviceContext get_device_context",
    "_lazy.extract_compiled_graph":
    "GraphInputMatcher ReturnValueHandler extract_compiled_graph force_lazy_device get_fallback_ops",
    "_lazy.ir_cache": "dump reset",
    "_lazy.metrics": "counter_names counter_value metrics_report reset",
    "_lazy.tensor_factory_functions": "",
    "_lazy.ts_backend": "init",
    "_library._out_variant":
    "check_out_variant get_out_arg_names lookup_manual_out_variant register_out_variant to_out_variant",
    "_library.effects": "EffectHolder EffectType:ORDERED",
    "_library.fake_class_registry":
    "FakeClassRegistry FakeScriptMethod FakeScriptObject HasStaticMethodFromReal deregister_fake_class "
    "find_fake_class has_fake_class maybe_to_fake_obj maybe_unwrap_fake_script_object register_fake_class "
    "tracing_with_real",
    "_library.fake_impl":
    "FakeImplCtx FakeImplHolder allocate_size construct_meta_kernel get_none global_ctx_getter set_ctx_getter",
    "_library.fake_profile":
    "MissingOpProfile!RuntimeError OpProfile TensorMetadata generate_yaml_from_profiles get_torch_version "
    "load_op_profiles read_profiles_from_yaml save_op_profiles unsafe_generate_fake_kernels",
    "_library.opaque_object":
    "FakeOpaqueObject MemberType:USE_REAL,INLINED _OpaqueTypeInfo get_member_type get_opaque_obj_info "
    "get_opaque_obj_repr get_opaque_type_name get_reconstruct_fn has_members is_opaque_reference_type "
    "is_opaque_type is_opaque_value is_opaque_value_type register_opaque_type should_hoist",
    "_library.simple_registry":
    "GenericTorchDispatchRuleHolder SimpleLibraryRegistry SimpleOperatorEntry SymmMemArgsHolder "
    "find_torch_dispatch_rule",
    "_library.triton":
    "capture_triton get_inner_triton_kernels get_triton_kernels_for_op is_wrap_triton_enabled "
    "set_wrap_triton_enabled",
    "_library.utils":
    "Kernel MutationChecker RegistrationHandle can_generate_trivial_fake_impl check_aliasing_constraint "
    "fill_defaults generate_trivial_fake_impl get_device_arg_index get_layout_constraint_tag get_source "
    "handle_dispatch_mode has_fake_kernel has_kwarg_only_args has_kwarg_only_tensors has_tensor_arg hash_tensor "
    "hop_schema_from_fx_node is_builtin is_functional_schema is_impure is_inplace is_out is_tensor_like_type "
    "is_tensorlist_like_type iter_tensors lookup_op mutated_args_kwargs mutates_and_returns_first_arg "
    "parse_namespace requires_set_python_module zip_schema",
    "_linalg_utils": "basis bform eig get_floating_dtype is_sparse lstsq matmul matrix_rank qform solve symeig",
    "_lobpcg": "LOBPCG LOBPCGAutogradFunction LOBPCG_call_tracker LOBPCG_call_tracker_orig lobpcg",
    "_logging._registrations": "",
    "_logging.scribe": "make_scribe_logger open_source_signpost",
    "_logging.structured": "dump_file from_traceback get_framework_stack get_user_stack intern_string",
    "_prims.context": "TorchRefsMode",
    "_prims.executor": "execute make_traced",
    "_prims_common.wrappers":
    "backwards_not_supported check_copy_devices elementwise_type_promotion_wrapper "
    "elementwise_unary_scalar_wrapper is_cpu_scalar out_wrapper",
    "_python_dispatcher": "PythonDispatcher",
    "_sources": "ParsedDef SourceContext fake_range get_source_lines_and_file normalize_source_lines parse_def",
    "_streambase": "_EventBase _StreamBase",
    "_subclasses._fake_tensor_utils":
    "_CacheKeyState _DeconstructedSymNode _DeconstructedSymType _InputBackref _PySymInputStub _SymIntOutputStub",
    "_subclasses.fake_utils":
    "CrossRefFakeMode is_sdpa_error output_alias_each_other outputs_alias_inputs outputs_are_inputs "
    "try_convert_fake_to_real",
    "_utils_internal":
    "add_mlhub_insight check_if_torch_exportable compile_time_strobelight_meta deprecated "
    "export_training_ir_rollout_check find_compile_subproc_binary full_aoti_runtime_assert "
    "get_default_numa_options get_file_path get_file_path_2 get_mast_job_name_version get_torch_source_version "
    "get_writable_path is_fb_unit_test justknobs_check justknobs_getval_int log_cache_bypass "
    "log_chromium_event_internal log_compilation_event log_draft_export_usage log_export_usage "
    "log_torch_jit_trace_exportability log_torchscript_usage log_trace_structured_event log_triton_builds "
    "maybe_upload_prof_stats_to_manifold prepare_multiprocessing_environment "
    "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 record_chromium_event_internal resolve_library_path "
    "set_pytorch_distributed_envs_from_justknobs signpost_event throw_abstract_impl_not_imported_error "
    "upload_graph",
    "ao.nn.intrinsic.qat.modules.linear_fused": "LinearBn1d",
    "ao.nn.intrinsic.quantized.modules.conv_add": "ConvAdd2d ConvAddReLU2d",
    "ao.nn.quantized.dynamic.modules.conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "ao.nn.quantized.modules.utils": "WeightedQuantizedModule",
    "ao.nn.quantized.reference":
    "Conv1d=ao.nn.quantized.reference.modules.conv Conv2d=ao.nn.quantized.reference.modules.conv "
    "Conv3d=ao.nn.quantized.reference.modules.conv ConvTranspose1d=ao.nn.quantized.reference.modules.conv "
    "ConvTranspose2d=ao.nn.quantized.reference.modules.conv "
    "ConvTranspose3d=ao.nn.quantized.reference.modules.conv Embedding=ao.nn.quantized.reference.modules.sparse "
    "EmbeddingBag=ao.nn.quantized.reference.modules.sparse GRU=ao.nn.quantized.reference.modules.rnn "
    "GRUCell=ao.nn.quantized.reference.modules.rnn LSTM=ao.nn.quantized.reference.modules.rnn "
    "LSTMCell=ao.nn.quantized.reference.modules.rnn Linear=ao.nn.quantized.reference.modules.linear "
    "RNNCell=ao.nn.quantized.reference.modules.rnn",
    "ao.nn.quantized.reference.modules":
    "Conv1d=ao.nn.quantized.reference.modules.conv Conv2d=ao.nn.quantized.reference.modules.conv "
    "Conv3d=ao.nn.quantized.reference.modules.conv ConvTranspose1d=ao.nn.quantized.reference.modules.conv "
    "ConvTranspose2d=ao.nn.quantized.reference.modules.conv "
    "ConvTranspose3d=ao.nn.quantized.reference.modules.conv Embedding=ao.nn.quantized.reference.modules.sparse "
    "EmbeddingBag=ao.nn.quantized.reference.modules.sparse GRU=ao.nn.quantized.reference.modules.rnn "
    "GRUCell=ao.nn.quantized.reference.modules.rnn LSTM=ao.nn.quantized.reference.modules.rnn "
    "LSTMCell=ao.nn.quantized.reference.modules.rnn Linear=ao.nn.quantized.reference.modules.linear "
    "RNNCell=ao.nn.quantized.reference.modules.rnn",
    "ao.nn.quantized.reference.modules.conv":
    "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d _ConvNd _ConvTransposeNd",
    "ao.nn.quantized.reference.modules.linear": "Linear",
    "ao.nn.quantized.reference.modules.rnn":
    "GRU GRUCell LSTM LSTMCell RNNBase RNNCell RNNCellBase get_quantized_weight",
    "ao.nn.quantized.reference.modules.sparse": "Embedding EmbeddingBag",
    "ao.nn.quantized.reference.modules.utils": "ReferenceQuantizedModule",
    "ao.nn.sparse": "",
    "ao.nn.sparse.quantized": "Linear=ao.nn.sparse.quantized.linear LinearPackedParams=ao.nn.sparse.quantized.linear",
    "ao.nn.sparse.quantized.dynamic": "Linear=ao.nn.sparse.quantized.dynamic.linear",
    "ao.nn.sparse.quantized.dynamic.linear": "Linear",
    "ao.nn.sparse.quantized.linear": "Linear LinearPackedParams",
    "ao.nn.sparse.quantized.utils": "LinearBlockSparsePattern",
    "ao.ns": "",
    "ao.ns._numeric_suite":
    "Logger OutputLogger Shadow ShadowLogger compare_model_outputs compare_model_stub compare_weights "
    "get_logger_dict get_matching_activations prepare_model_outputs prepare_model_with_stubs",
    "ao.ns._numeric_suite_fx":
    "NSTracer OutputComparisonLogger OutputLogger add_loggers add_shadow_loggers convert_n_shadows_model "
    "extend_logger_results_with_comparison extract_logger_info extract_results_n_shadows_model "
    "extract_shadow_logger_info extract_weights loggers_set_enabled loggers_set_save_activations "
    "prepare_n_shadows_model print_comparisons_n_shadows_model",
    "ao.ns.fx": "",
    "ao.ns.fx.graph_matcher":
    "GraphMatchingException!Exception "
    "SubgraphTypeRelationship:EQUAL,EQUAL_BUT_UKNOWN,RELATED_BUT_NOT_EQUAL,NOT_RELATED "
    "_NSGraphMatchableSubgraphsIterator get_matching_subgraph_pairs",
    "ao.ns.fx.graph_passes": "add_loggers_to_model create_a_shadows_b",
    "ao.ns.fx.mappings":
    "add_op_to_sets_of_related_ops get_base_name_for_op get_base_name_to_sets_of_related_ops "
    "get_node_type_to_io_type_map get_unmatchable_types_map",
    "ao.ns.fx.n_shadows_utils":
    "OutputProp create_add_loggers_graph create_n_transformed_and_logged_copies_of_subgraph "
    "create_one_transformed_and_logged_copy_of_subgraph create_results_comparison create_submodule_from_subgraph "
    "extract_weight_comparison group_results_by_subgraph print_n_shadows_summary",
    "ao.ns.fx.ns_types": "NSSingleResultValuesType:WEIGHT,NODE_OUTPUT,NODE_INPUT NSSubgraph",
    "ao.ns.fx.pattern_utils": "end_node_matches_reversed_fusion get_reversed_fusions get_type_a_related_to_b",
    "ao.ns.fx.qconfig_multi_mapping": "QConfigMultiMapping",
    "ao.ns.fx.utils":
    "NodeInputOrOutputType:FP32,INT8,FP16,UNKNOWN,FP32_OR_INT8 compute_cosine_similarity "
    "compute_normalized_l2_error compute_sqnr get_arg_indices_of_inputs_to_log "
    "get_node_first_input_and_output_type get_node_input_qparams get_normalized_nth_input "
    "get_number_of_non_param_args get_target_type_str maybe_add_missing_fqns "
    "maybe_dequantize_first_two_tensor_args_and_handle_tuples op_type_supports_shadowing "
    "rekey_logger_info_on_node_name_of_model return_first_non_observer_node",
    "ao.ns.fx.weight_utils":
    "extract_weight_from_node get_conv_fun_weight get_conv_mod_weight get_linear_fun_weight get_linear_mod_weight "
    "get_lstm_mod_weights get_lstm_weight get_op_to_type_to_weight_extraction_fn get_qconv_fun_weight "
    "get_qlinear_fun_weight get_qlstm_weight mod_0_weight_detach mod_weight_bias_0 mod_weight_detach",
    "ao.pruning._experimental.data_sparsifier.base_data_sparsifier": "BaseDataSparsifier _Container",
    "ao.pruning._experimental.pruner.base_structured_sparsifier": "BaseStructuredSparsifier",
    "ao.quantization._correct_bias": "MeanShadowLogger bias_correction get_module get_param parent_child_names",
    "ao.quantization._equalize":
    "channel_range converged cross_layer_equalization equalize expand_groups_in_paired_modules_list "
    "get_module_bias get_module_weight get_name_by_module has_bias max_over_ndim min_over_ndim "
    "process_paired_modules_list_to_name set_module_bias set_module_weight",
    "ao.quantization._learnable_fake_quantize": "_LearnableFakeQuantize",
    "ao.quantization.fx":
    "convert=ao.quantization.fx.convert fuse=ao.quantization.fx.fuse prepare=ao.quantization.fx.prepare",
    "ao.quantization.fx._equalize":
    "EqualizationQConfig _InputEqualizationObserver _WeightEqualizationObserver calculate_equalization_scale "
    "clear_weight_quant_obs_node convert_eq_obs custom_module_supports_equalization "
    "fused_module_supports_equalization get_equalization_qconfig_dict get_layer_sqnr_dict "
    "get_op_node_and_weight_eq_obs input_equalization_observer is_equalization_observer "
    "maybe_get_next_equalization_scale maybe_get_next_input_eq_obs maybe_get_weight_eq_obs_node "
    "nn_module_supports_equalization node_supports_equalization remove_node reshape_scale scale_input_observer "
    "scale_weight_functional scale_weight_node update_obs_for_equalization weight_equalization_observer",
    "ao.quantization.fx._lower_to_native_backend":
    "fold_weight is_copy_node is_default_node is_dequantize_node is_fixed_qparams_node "
    "is_general_tensor_shape_node is_get_tensor_info_node is_getattr_tensor_metadata_node is_other_node "
    "is_special_pattern_node should_skip_lowering special_pattern_replacement",
    "ao.quantization.fx._model_report": "",
    "ao.quantization.fx._model_report.detector":
    "DetectorBase DetectorQConfigInfo DynamicStaticDetector InputWeightEqualizationDetector OutlierDetector "
    "PerChannelDetector default_dynamic_quant_observer default_observer default_per_channel_weight_observer "
    "default_weight_observer",
    "ao.quantization.fx._model_report.model_report": "ModelReport",
    "ao.quantization.fx._model_report.model_report_observer": "ModelReportObserver",
    "ao.quantization.fx._model_report.model_report_visualizer": "ModelReportVisualizer",
    "ao.quantization.fx.convert": "convert convert_custom_module convert_standalone_module convert_weighted_module",
    "ao.quantization.fx.fuse": "FuseHandler=ao.quantization.fx.fuse_handler fuse",
    "ao.quantization.fx.fuse_handler": "DefaultFuseHandler FuseHandler",
    "ao.quantization.fx.graph_module":
    "FusedGraphModule ObservedGraphModule ObservedStandaloneGraphModule QuantizedGraphModule",
    "ao.quantization.fx.lower_to_fbgemm": "lower_to_fbgemm",
    "ao.quantization.fx.lower_to_qnnpack": "lower_to_qnnpack",
    "ao.quantization.fx.lstm_utils": "default_weight_fake_quant default_weight_observer",
    "ao.quantization.fx.match_utils": "",
    "ao.quantization.fx.pattern_utils":
    "get_default_fusion_patterns get_default_output_activation_post_process_map get_default_quant_patterns",
    "ao.quantization.fx.prepare": "insert_observers_for_model prepare propagate_dtypes_for_known_nodes",
    "ao.quantization.fx.qconfig_mapping_utils": "",
    "ao.quantization.fx.quantize_handler":
    "BatchNormQuantizeHandler BinaryOpQuantizeHandler CatQuantizeHandler ConvReluQuantizeHandler "
    "CopyNodeQuantizeHandler CustomModuleQuantizeHandler DefaultNodeQuantizeHandler EmbeddingQuantizeHandler "
    "FixedQParamsOpQuantizeHandler GeneralTensorShapeOpQuantizeHandler LinearReLUQuantizeHandler QuantizeHandler "
    "RNNDynamicQuantizeHandler StandaloneModuleQuantizeHandler",
    "ao.quantization.fx.tracer": "QuantizationTracer ScopeContextManager",
    "ao.quantization.fx.utils":
    "NodeInfo ObservedGraphModuleAttrs all_node_args_except_first all_node_args_have_no_tensors "
    "collect_producer_nodes create_getattr_from_value create_node_from_old_node_preserve_meta "
    "get_custom_module_class_keys get_linear_prepack_op_for_dtype get_new_attr_name_with_prefix "
    "get_non_observable_arg_indexes_and_types get_qconv_prepack_op get_skipped_module_name_and_classes "
    "graph_module_from_producer_nodes maybe_get_next_module node_arg_is_bias node_arg_is_weight return_arg_list",
    "autograd._functions":
    "Function=autograd.function Resize=autograd._functions.tensor Type=autograd._functions.tensor",
    "autograd._functions.tensor": "Resize Type",
    "autograd._functions.utils": "maybe_unexpand maybe_view",
    "autograd.profiler_legacy": "profile",
    "backends.cudnn.rnn": "",
    "backends.python_native": "",
    "cuda._gpu_trace":
    "register_callback_for_device_synchronization register_callback_for_event_creation "
    "register_callback_for_event_deletion register_callback_for_event_record "
    "register_callback_for_event_synchronization register_callback_for_event_wait "
    "register_callback_for_memory_allocation register_callback_for_memory_deallocation "
    "register_callback_for_stream_creation register_callback_for_stream_synchronization",
    "cuda._sanitizer":
    "Access AccessType:READ,WRITE ArgumentHandler CUDASanitizer CUDASanitizerDispatchMode "
    "CUDASanitizerErrors!Exception EventHandler StreamSynchronizations SynchronizationError!Exception TensorInfo "
    "UnsynchronizedAccessError!Exception _TensorsAccessed enable_cuda_sanitizer zip_arguments zip_by_key",
    "cuda.gds": "GdsFile gds_deregister_buffer gds_register_buffer",
    "cuda.green_contexts": "GreenContext",
    "distributed._checkpointable": "_Checkpointable",
    "distributed._composable_state": "_State",
    "distributed._shard.sharded_tensor.api": "ShardedTensor ShardedTensorBase",
    "distributed._shard.sharded_tensor.metadata":
    "MEM_FORMAT_ENCODING:TORCH_CONTIGUOUS_FORMAT,TORCH_CHANNELS_LAST,TORCH_PRESERVE_FORMAT ShardedTensorMetadata "
    "TensorProperties",
    "distributed._shard.sharded_tensor.shard": "Shard",
    "distributed._shard.sharded_tensor.utils":
    "build_global_metadata build_metadata_from_local_shards recalc_global_sharded_tensor_metadata",
    "distributed._shard.sharder": "Sharder",
    "distributed._shard.sharding_plan":
    "ShardingPlan=distributed._shard.sharding_plan.api ShardingPlanner=distributed._shard.sharding_plan.api",
    "distributed._shard.sharding_plan.api": "ShardingPlan ShardingPlanner",
    "distributed._shard.sharding_spec.api":
    "DevicePlacementSpec EnumerableShardingSpec PlacementSpec ShardingSpec custom_sharding_spec_op",
    "distributed._shard.sharding_spec.chunk_sharding_spec": "ChunkShardingSpec",
    "distributed._sharded_tensor":
    "Shard=distributed._shard.sharded_tensor.shard ShardMetadata=distributed._shard.metadata "
    "ShardedTensor=distributed._shard.sharded_tensor.api ShardedTensorBase=distributed._shard.sharded_tensor.api "
    "ShardedTensorMetadata=distributed._shard.sharded_tensor.metadata "
    "TensorProperties=distributed._shard.sharded_tensor.metadata custom_sharded_op_impl empty full "
    "init_from_local_shards ones pre_load_state_dict_hook rand randn state_dict_hook zeros",
    "distributed._sharding_spec":
    "ChunkShardingSpec=distributed._shard.sharding_spec.chunk_sharding_spec "
    "DevicePlacementSpec=distributed._shard.sharding_spec.api "
    "EnumerableShardingSpec=distributed._shard.sharding_spec.api "
    "PlacementSpec=distributed._shard.sharding_spec.api ShardMetadata=distributed._shard.metadata "
    "ShardingSpec=distributed._shard.sharding_spec.api",
    "distributed._tools.fsdp2_mem_tracker":
    "FSDPMemTracker _FSDPModMemStats "
    "_FSDPModState:BEF_PRE_FW,AFT_PRE_FW,BEF_POST_FW,AFT_POST_FW,BEF_PRE_BW,AFT_PRE_BW,BEF_POST_BW,AFT_POST_BW,PRE_FW_AC,POST_FW_AC,PEAK_FW,PEAK_BW "
    "_FSDPRefType:SHARDED_PARAM,UNSHARDED_PARAM,BUFFER,SHARDED_GRAD,UNSHARDED_GRAD,ACT,TEMP,ALL_GATHER,REDUCE_SCATTER,OPT,INP "
    "_FSDPState:PRE_FW,FW,POST_FW,PRE_BW,BW,POST_BW _SavedFSDPMethods",
    "distributed._tools.mem_tracker":
    "MemTracker _MemRefType:PARAM,BUFFER,GRAD,ACT,TEMP,OPT,OTH _ModMemStats "
    "_ModState:PRE_FW,POST_FW,PEAK_FW,PRE_BW,PRE_FW_AC,POST_FW_AC,POST_BW,PEAK_BW _RefType _State "
    "_UpdateType:ADD,DEL,REF,SIZE _WeakRefInfo",
    "distributed._tools.memory_tracker": "MemoryProfileDispatchMode MemoryTracker",
    "distributed._tools.mod_tracker": "ModTracker",
    "distributed._tools.runtime_estimator": "RuntimeEstimator",
    "distributed.algorithms.ddp_comm_hooks.ddp_zero_hook": "hook_with_zero_step hook_with_zero_step_interleaved",
    "distributed.algorithms.ddp_comm_hooks.mixed_precision_hooks": "_AllreduceUpcastHookState",
    "distributed.argparse_util": "check_env env",
    "distributed.checkpoint._async_executor": "_AsyncCheckpointExecutor",
    "distributed.checkpoint._checkpointer": "_Checkpointer",
    "distributed.checkpoint._dedup_save_plans": "dedup_save_plans",
    "distributed.checkpoint._extension": "Extension ExtensionRegistry StreamTransformExtension ZStandard",
    "distributed.checkpoint._sharded_tensor_utils": "",
    "distributed.checkpoint._storage_utils": "",
    "distributed.checkpoint.logger": "",
    "distributed.checkpoint.logging_handlers": "",
    "distributed.checkpoint.quantized_hf_storage": "QuantizedHuggingFaceStorageReader",
    "distributed.checkpoint.resharding": "",
    "distributed.config": "",
    "distributed.debug": "start_debug_server stop_debug_server",
    "distributed.elastic.agent.server.health_check_server": "HealthCheckServer create_healthcheck_server",
    "distributed.elastic.agent.server.local_elastic_agent": "LocalElasticAgent _AliveCallbackProxy",
    "distributed.elastic.control_plane": "worker_main",
    "distributed.elastic.events.api":
    "Event EventSource:AGENT,WORKER NodeState:INIT,RUNNING,SUCCEEDED,FAILED RdzvEvent",
    "distributed.elastic.events.handlers": "get_logging_handler",
    "distributed.elastic.metrics.api":
    "ConsoleMetricHandler MetricData MetricHandler MetricStream MetricsConfig NullMetricHandler configure "
    "getStream get_elapsed_time_ms prof profile publish_metric put_metric",
    "distributed.elastic.multiprocessing.errors.error_handler":
    "ErrorHandler=distributed.elastic.multiprocessing.errors",
    "distributed.elastic.multiprocessing.errors.handlers":
    "get_error_handler=distributed.elastic.multiprocessing.errors",
    "distributed.elastic.multiprocessing.redirects": "get_libc redirect",
    "distributed.elastic.multiprocessing.subprocess_handler":
    "SubprocessHandler=distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler "
    "get_subprocess_handler=distributed.elastic.multiprocessing.subprocess_handler.handlers",
    "distributed.elastic.multiprocessing.subprocess_handler.handlers": "get_subprocess_handler",
    "distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler": "SubprocessHandler",
    "distributed.elastic.multiprocessing.tail_log": "TailLog tail_logfile",
    "distributed.elastic.rendezvous.api":
    "RendezvousClosedError!Exception RendezvousConnectionError!Exception RendezvousError!Exception "
    "RendezvousGracefulExitError!Exception RendezvousHandler RendezvousHandlerRegistry RendezvousInfo "
    "RendezvousParameters RendezvousStateError!Exception RendezvousStoreInfo RendezvousTimeoutError!Exception",
    "distributed.elastic.rendezvous.c10d_rendezvous_backend": "C10dRendezvousBackend create_backend",
    "distributed.elastic.rendezvous.dynamic_rendezvous":
    "DynamicRendezvousHandler RendezvousBackend RendezvousSettings RendezvousTimeout "
    "_Action:KEEP_ALIVE,ADD_TO_PARTICIPANTS,ADD_TO_WAIT_LIST,ADD_TO_REDUNDANCY_LIST,REMOVE_FROM_PARTICIPANTS,REMOVE_FROM_WAIT_LIST,REMOVE_FROM_REDUNDANCY_LIST,MARK_RENDEZVOUS_COMPLETE,MARK_RENDEZVOUS_CLOSED,SYNC,ERROR_CLOSED,ERROR_TIMEOUT,FINISH "
    "_BackendRendezvousStateHolder _DistributedRendezvousOpExecutor _NodeDesc _NodeDescGenerator "
    "_RendezvousCloseOp _RendezvousContext _RendezvousExitOp _RendezvousJoinOp _RendezvousKeepAliveOp "
    "_RendezvousOpExecutor _RendezvousState _RendezvousStateHolder create_handler get_method_name",
    "distributed.elastic.rendezvous.etcd_rendezvous":
    "EtcdRendezvous EtcdRendezvousHandler EtcdRendezvousRetryImmediately!Exception "
    "EtcdRendezvousRetryableFailure!Exception create_rdzv_handler",
    "distributed.elastic.rendezvous.etcd_rendezvous_backend": "EtcdRendezvousBackend create_backend",
    "distributed.elastic.rendezvous.etcd_server": "EtcdServer find_free_port stop_etcd",
    "distributed.elastic.rendezvous.etcd_store": "EtcdStore cas_delay",
    "distributed.elastic.rendezvous.registry": "get_rendezvous_handler",
    "distributed.elastic.rendezvous.static_tcp_rendezvous": "StaticTCPRendezvous create_rdzv_handler",
    "distributed.elastic.rendezvous.utils": "_PeriodicTimer parse_rendezvous_endpoint",
    "distributed.elastic.timer.api": "RequestQueue TimerClient TimerRequest TimerServer configure expires",
    "distributed.elastic.timer.debug_info_logging": "log_debug_info_for_expired_timers",
    "distributed.elastic.timer.file_based_local_timer": "FileTimerClient FileTimerRequest FileTimerServer",
    "distributed.elastic.timer.local_timer": "LocalTimerClient LocalTimerServer MultiprocessingRequestQueue",
    "distributed.elastic.utils.data":
    "CyclingIterator=distributed.elastic.utils.data.cycling_iterator "
    "ElasticDistributedSampler=distributed.elastic.utils.data.elastic_distributed_sampler",
    "distributed.elastic.utils.data.cycling_iterator": "CyclingIterator",
    "distributed.elastic.utils.data.elastic_distributed_sampler": "ElasticDistributedSampler",
    "distributed.elastic.utils.distributed": "create_c10d_store get_free_port get_socket_with_port",
    "distributed.elastic.utils.log_level": "get_log_level",
    "distributed.elastic.utils.process_state": "is_uninterruptible_state read_proc_state",
    "distributed.elastic.utils.store": "barrier get_all store_timeout synchronize",
    "distributed.fsdp._debug_utils": "SimpleProfiler",
    "distributed.fsdp._fsdp_extensions": "FSDPExtensions",
    "distributed.fsdp._fully_shard._fsdp_api": "AllGather Comm ReduceScatter",
    "distributed.fsdp._fully_shard._fsdp_collectives":
    "AllGatherResult DefaultAllGather DefaultAllocMixin DefaultReduceScatter ProcessGroupAllocAllGather "
    "ProcessGroupAllocMixin ProcessGroupAllocReduceScatter SymmMemAllGather SymmMemAllocMixin "
    "SymmMemReduceScatter all_gather_copy_in_cuda all_gather_copy_in_meta chunk_cat foreach_all_gather "
    "foreach_all_gather_copy_out foreach_reduce foreach_reduce_scatter_copy_in split_with_sizes_copy",
    "distributed.fsdp._fully_shard._fsdp_common":
    "DDPMeshInfo DataParallelMeshInfo FSDPMeshInfo HSDPMeshInfo ShardPlacementResult "
    "TrainingState:FORWARD,PRE_BACKWARD,POST_BACKWARD,IDLE is_bw resolve_shard_placement",
    "distributed.fsdp._fully_shard._fsdp_init": "",
    "distributed.fsdp._fully_shard._fsdp_param":
    "ExtensionsData FSDPParam ParamModuleInfo ShardedState:SHARDED,SHARDED_POST_FORWARD,UNSHARDED alloc_storage "
    "copy_ copy__functionalize free_storage set_requires_grad_if_needed unsafe_setattr_param",
    "distributed.fsdp._fully_shard._fsdp_param_group":
    "AllGatherState AllReduceState FSDPCommContext FSDPParamGroup ReduceScatterState RegisterPostBackwardFunction",
    "distributed.fsdp._fully_shard._fsdp_state": "FSDPState FSDPStateContext RegisterPreBackwardFunction",
    "distributed.fsdp._fully_shard._fully_shard":
    "FSDPModule=distributed.fsdp UnshardHandle=distributed.fsdp _UnshardHandleImpl disable_fsdp_module_new_init "
    "fully_shard=distributed.fsdp get_cls_to_fsdp_cls register_fsdp_forward_method=distributed.fsdp "
    "share_comm_ctx=distributed.fsdp",
    "distributed.fsdp._shard_utils": "",
    "distributed.logging_handlers": "",
    "distributed.nn.jit.instantiator":
    "_StringLoader get_arg_return_types_from_interface instantiate_non_scriptable_remote_module_template "
    "instantiate_scriptable_remote_module_template",
    "distributed.optim.functional_adadelta": "_FunctionalAdadelta",
    "distributed.optim.functional_adagrad": "_FunctionalAdagrad",
    "distributed.optim.functional_adam": "_FunctionalAdam",
    "distributed.optim.functional_adamax": "_FunctionalAdamax",
    "distributed.optim.functional_adamw": "_FunctionalAdamW",
    "distributed.optim.functional_rmsprop": "_FunctionalRMSprop",
    "distributed.optim.functional_rprop": "_FunctionalRprop",
    "distributed.optim.functional_sgd": "_FunctionalSGD",
    "distributed.optim.named_optimizer": "_NamedOptimizer",
    "distributed.optim.utils": "as_functional_optim register_functional_optim",
    "distributed.pipelining._IR":
    "DetachExecutor LossWrapper MultiUseParameterConfig:TRANSMIT,REPLICATE Pipe PipeSequential PipeSplitWrapper "
    "SplitPoint:BEGINNING,END TrivialLossWrapper _LinearNodeList _NodeReference annotate_split_points "
    "aten_pipe_split_alias get_submod_name pipe_split pipeline",
    "distributed.pipelining._backward":
    "construct_reverse_graph get_param_groups reverse_closure stage_backward stage_backward_input "
    "stage_backward_weight",
    "distributed.pipelining._debug": "friendly_debug_info map_debug_info",
    "distributed.pipelining._schedule_visualizer":
    "OpKey _ComputationTypeVisual add_schedule_op_spacing get_schedule_ops visualize_schedule",
    "distributed.pipelining._unflatten": "",
    "distributed.pipelining._utils":
    "GetMeshCallback InferenceMode:STATIC,DYNAMIC PipeInfo PipeliningMetadataError!RuntimeError _DTensorMeta "
    "_MeshCache _StageBackwardMeta _StageForwardMeta _StageMeta _TensorMeta extract_tensor_meta "
    "extract_tensor_metas flatten_args flatten_args_detach generate_rank_to_stage_mapping "
    "generate_stage_to_rank_mapping to_local_if_dtensor validate_and_normalize_to_tuple validate_metadata "
    "validate_static_arg_grad_correspondence validate_tensors_metadata",
    "distributed.rpc.internal":
    "PythonUDF RPCExecMode:SYNC,ASYNC,ASYNC_JIT,REMOTE RemoteException _InternalRPCPickler deserialize serialize",
    "distributed.rpc.server_process_global_profiler": "_server_process_global_profile",
    "distributed.tensor._collective_utils":
    "MeshTopoInfo allgather_cost allreduce_cost check_tensor_meta fill_empty_tensor_to_shards mesh_broadcast "
    "mesh_scatter one_step_redistribute_cost pad_tensor redistribute_cost reduce_scatter_cost shard_dim_alltoall "
    "spec_to_bytes unpad_tensor",
    "distributed.tensor._shards_wrapper": "LocalShardsWrapper",
    "distributed.tensor.debug._op_coverage": "fwd_bwd_compiler get_inductor_decomp_graphs print_op_coverage_summary",
    "distributed.tensor.debug._visualize_sharding": "make_color_iter visualize_sharding=distributed.tensor.debug",
    "distributed.tensor.experimental._context_parallel":
    "_CausalBehavior=distributed.tensor.experimental._context_parallel._attention "
    "_ContextParallel=distributed.tensor.experimental._context_parallel._attention "
    "_HeadTailLoadBalancer=distributed.tensor.experimental._context_parallel._load_balancer "
    "_LoadBalancer=distributed.tensor.experimental._context_parallel._load_balancer "
    "_PTRRLoadBalancer=distributed.tensor.experimental._context_parallel._load_balancer "
    "_PerDocumentHeadTailLoadBalancer=distributed.tensor.experimental._context_parallel._load_balancer "
    "_RotateMethod=distributed.tensor.experimental._context_parallel._attention "
    "context_parallel=distributed.tensor.experimental "
    "context_parallel_unshard=distributed.tensor.experimental._context_parallel._attention flex_cp_allgather "
    "set_rotate_method=distributed.tensor.experimental._context_parallel._attention",
    "distributed.tensor.experimental._context_parallel._attention":
    "_AllGatherRotater _AllToAllRotater _AttentionOp _CausalBehavior:SKIP,NOT_IS_CAUSAL,IS_CAUSAL "
    "_ContextParallel _ContextParallelOptions _DispatchMode:MONKEY_PATCH,MODULE_WRAPPER _RingRotater "
    "_RotateMethod:ALL_TO_ALL,ALL_GATHER _SDPAMerger context_parallel=distributed.tensor.experimental "
    "context_parallel_unshard set_rotate_method",
    "distributed.tensor.experimental._context_parallel._cp_custom_ops": "flex_cp_allgather flex_cp_allgather_backward",
    "distributed.tensor.experimental._context_parallel._load_balancer":
    "_HeadTailLoadBalancer _LoadBalancer _PTRRLoadBalancer _PerDocumentHeadTailLoadBalancer",
    "distributed.tensor.experimental._context_parallel._sharding_rules":
    "register_cp_sharding_rules unregister_cp_sharding_rules",
    "distributed.tensor.experimental._func_map": "local_map=distributed.tensor.experimental",
    "distributed.tensor.experimental._register_sharding": "register_sharding=distributed.tensor.experimental",
    "distributed.tensor.experimental._tp_transform": "_TensorParallelTransformPass tensor_parallel_transformation",
    "export._swap": "",
    "export._trace":
    "ATenExportArtifact ExportArtifact ExportDynamoConfig _ExportModuleSpecTrackerDict "
    "custom_triton_ops_decomposition_disabled detect_shape_env get_ep_stats patch_forward set_missing_meta_vals",
    "export._tree_utils": "is_equivalent reorder_kwargs",
    "export._unlift": "GuardsFn _StatefulGraphModule _StatefulGraphModuleFactory eq_spec",
    "export.custom_obj": "ScriptObjectMeta",
    "export.custom_ops": "",
    "export.decomp_utils": "CustomDecompTable",
    "export.experimental": "OrderedSet=utils._ordered_set _ExportMethod _ExportPackage",
    "export.passes": "move_to_device_pass",
    "export.pt2_archive": "PT2ArchiveReader PT2ArchiveWriter is_pt2_package",
    "export.pt2_archive.constants": "",
    "fx._lazy_graph_module": "_LazyGraphModule",
    "fx._utils": "first_call_function_nn_module_stack get_node_context lazy_format_graph_code",
    "fx.experimental._backward_state": "BackwardState",
    "fx.experimental.accelerator_partitioner":
    "DAG DAGNode PartitionResult Partitioner check_dependency combine_two_partitions get_bfs_level_partition "
    "get_device_partition_stats get_device_to_partitions_mapping get_logical_id_to_device "
    "get_node_to_partition_mapping reorganize_partitions reset_partition_device set_parents_and_children",
    "fx.experimental.debug": "set_trace",
    "fx.experimental.dynamic_spec": "DictSpec IntVar ObjectSpec ParamsSpec SeqSpec ShapeVar ShapesSpec TensorSpec",
    "fx.experimental.merge_matmul": "are_nodes_independent may_depend_on merge_matmul split_result_tensors",
    "fx.experimental.partitioner_utils":
    "Device NodeLatency Partition PartitionLatency "
    "PartitionMode:size_based,sparse_nn,cost_aware,kl_based,aot_based PartitionerConfig get_comm_latency_between "
    "get_extra_size_of get_latency_of_one_partition get_latency_of_partitioned_graph "
    "get_partition_to_latency_mapping",
    "fx.experimental.recording":
    "FakeTensorMeta NotEqualError!Exception ShapeEnvEvent record_shapeenv_event replay_shape_env_events "
    "shape_env_check_state_equal",
    "fx.experimental.refinement_types": "Equality",
    "fx.experimental.rewriter": "AST_Rewriter RewritingTracer",
    "fx.experimental.schema_type_annotation": "AnnotateTypesWithSchema",
    "fx.experimental.unification":
    "Var=fx.experimental.unification.variable isvar reify=fx.experimental.unification.core "
    "unifiable=fx.experimental.unification.more unify var=fx.experimental.unification.variable "
    "variables=fx.experimental.unification.variable vars=fx.experimental.unification.variable",
    "fx.experimental.unification.core": "reify unify",
    "fx.experimental.unification.dispatch": "",
    "fx.experimental.unification.match": "Dispatcher VarDispatcher edge isvar match ordering supercedes unify",
    "fx.experimental.unification.more": "reify_object unifiable unify_object",
    "fx.experimental.unification.multipledispatch":
    "Dispatcher=fx.experimental.unification.multipledispatch.dispatcher "
    "MDNotImplementedError=fx.experimental.unification.multipledispatch.dispatcher "
    "dispatch=fx.experimental.unification.multipledispatch.core "
    "halt_ordering=fx.experimental.unification.multipledispatch.dispatcher "
    "restart_ordering=fx.experimental.unification.multipledispatch.dispatcher",
    "fx.experimental.unification.multipledispatch.conflict":
    "AmbiguityWarning!Warning ambiguities ambiguous consistent edge ordering super_signature supercedes",
    "fx.experimental.unification.multipledispatch.core": "dispatch ismethod",
    "fx.experimental.unification.multipledispatch.dispatcher":
    "Dispatcher MDNotImplementedError!NotImplementedError MethodDispatcher ambiguity_warn halt_ordering "
    "restart_ordering source str_signature variadic_signature_matches variadic_signature_matches_iter "
    "warning_text",
    "fx.experimental.unification.multipledispatch.utils": "expand_tuples groupby raises reverse_dict typename",
    "fx.experimental.unification.multipledispatch.variadic":
    "Variadic VariadicSignatureMeta VariadicSignatureType isvariadic",
    "fx.experimental.unification.unification_tools":
    "assoc assoc_in dissoc first get_in getter groupby itemfilter itemmap keyfilter keymap merge merge_with "
    "update_in valfilter valmap",
    "fx.experimental.unification.utils": "freeze hashable raises reverse_dict transitive_get xfail",
    "fx.experimental.unification.variable": "Var isvar var variables vars",
    "fx.experimental.unify_refinements":
    "check_for_type_equality convert_eq infer_symbolic_types infer_symbolic_types_single_pass "
    "substitute_all_types substitute_solution_one_type unify_eq",
    "fx.passes.annotate_getitem_nodes": "annotate_getitem_nodes",
    "fx.passes.backends": "",
    "fx.passes.backends.cudagraphs": "CudaGraphsSupport partition_cudagraphs",
    "fx.passes.dialect": "",
    "fx.passes.dialect.common": "",
    "fx.passes.dialect.common.cse_pass": "CSEPass get_CSE_banned_ops",
    "fx.passes.graph_transform_observer": "GraphTransformObserver",
    "fx.passes.net_min_base":
    "FxNetMinimizerBadModuleError!Exception FxNetMinimizerResultMismatchError!Exception "
    "FxNetMinimizerRunFuncError!Exception _MinimizerBase _MinimizerSettingBase",
    "fx.passes.pass_manager":
    "PassManager inplace_wrapper log_hook loop_pass these_before_those_pass_constraint "
    "this_before_that_pass_constraint",
    "fx.passes.regional_inductor": "_RegionCompiler _RegionScooper regional_inductor",
    "fx.passes.regional_inductor_invoke_subgraph": "regional_inductor_invoke_subgraph",
    "fx.passes.runtime_assert": "insert_deferred_runtime_asserts",
    "fx.passes.splitter_base":
    "FxNetAccNodesFinder FxNetSplitterInternalError!Exception NodeEvent NodeEventTracker SplitResult Subgraph "
    "_SplitterBase _SplitterSettingBase generate_inputs_for_submodules",
    "fx.passes.utils.matcher_with_name_node_map_utils": "SubgraphMatcherWithNameNodeMap",
    "jit._check": "AttributeTypeIsSupportedChecker",
    "jit._decompositions":
    "check_decomposition_has_type_annotations register_decomposition signatures_match var var_decomposition",
    "jit._monkeytype_config":
    "JitTypeTraceConfig JitTypeTraceStore JitTypeTraceStoreLogger get_optional_of_element_type get_qualified_name "
    "get_type is_torch_native_class jit_code_filter",
    "jit.generate_bytecode": "format_bytecode generate_upgraders_bytecode",
    "jit.quantized":
    "QuantizedGRU QuantizedGRUCell QuantizedLSTM QuantizedLSTMCell QuantizedLinear QuantizedLinearFP16 "
    "QuantizedRNNBase QuantizedRNNCell QuantizedRNNCellBase quantize_linear_modules quantize_rnn_cell_modules "
    "quantize_rnn_modules",
    "jit.supported_ops": "",
    "jit.unsupported_tensor_ops": "execWrapper",
    "masked.maskedtensor.passthrough": "",
    "masked.maskedtensor.unary": "",
    "nativert": "",
    "nativert.backends": "",
    "nested._internal.nested_tensor":
    "NestedTensor=nested ViewBufferFromNested ViewNestedFromBuffer buffer_from_jagged=nested._jagged get_tensor_symint "
    "jagged_from_list=nested._jagged jagged_from_tensor_and_lengths nested_from_padded=nested._jagged "
    "nested_view_from_values_offsets=nested._jagged nested_view_from_values_offsets_lengths=nested._jagged",
    "nn.attention.experimental": "",
    "nn.backends": "",
    "nn.backends.thnn": "",
    "nn.cpp": "ModuleWrapper OrderedDictWrapper",
    "nn.intrinsic.qat.modules.linear_fused": "LinearBn1d=ao.nn.intrinsic.qat.modules.linear_fused",
    "nn.modules._functions": "BackwardHookFunction CrossMapLRN2d SyncBatchNorm",
    "nn.modules.linear_cross_entropy": "_ChunkContext _ChunkViews",
    "nn.quantized._reference":
    "Conv1d=ao.nn.quantized.reference.modules.conv Conv2d=ao.nn.quantized.reference.modules.conv "
    "Conv3d=ao.nn.quantized.reference.modules.conv ConvTranspose1d=ao.nn.quantized.reference.modules.conv "
    "ConvTranspose2d=ao.nn.quantized.reference.modules.conv "
    "ConvTranspose3d=ao.nn.quantized.reference.modules.conv Embedding=ao.nn.quantized.reference.modules.sparse "
    "EmbeddingBag=ao.nn.quantized.reference.modules.sparse GRUCell=ao.nn.quantized.reference.modules.rnn "
    "LSTM=ao.nn.quantized.reference.modules.rnn LSTMCell=ao.nn.quantized.reference.modules.rnn "
    "Linear=ao.nn.quantized.reference.modules.linear RNNCell=ao.nn.quantized.reference.modules.rnn",
    "nn.quantized._reference.modules":
    "Conv1d=ao.nn.quantized.reference.modules.conv Conv2d=ao.nn.quantized.reference.modules.conv "
    "Conv3d=ao.nn.quantized.reference.modules.conv ConvTranspose1d=ao.nn.quantized.reference.modules.conv "
    "ConvTranspose2d=ao.nn.quantized.reference.modules.conv "
    "ConvTranspose3d=ao.nn.quantized.reference.modules.conv Embedding=ao.nn.quantized.reference.modules.sparse "
    "EmbeddingBag=ao.nn.quantized.reference.modules.sparse GRUCell=ao.nn.quantized.reference.modules.rnn "
    "LSTM=ao.nn.quantized.reference.modules.rnn LSTMCell=ao.nn.quantized.reference.modules.rnn "
    "Linear=ao.nn.quantized.reference.modules.linear RNNCell=ao.nn.quantized.reference.modules.rnn",
    "nn.quantized._reference.modules.conv": "",
    "nn.quantized._reference.modules.linear": "",
    "nn.quantized._reference.modules.rnn": "",
    "nn.quantized._reference.modules.sparse": "",
    "nn.quantized._reference.modules.utils": "",
    "nn.quantized.dynamic.modules.conv":
    "Conv1d=ao.nn.quantized.dynamic.modules.conv Conv2d=ao.nn.quantized.dynamic.modules.conv "
    "Conv3d=ao.nn.quantized.dynamic.modules.conv ConvTranspose1d=ao.nn.quantized.dynamic.modules.conv "
    "ConvTranspose2d=ao.nn.quantized.dynamic.modules.conv ConvTranspose3d=ao.nn.quantized.dynamic.modules.conv",
    "nn.quantized.modules.rnn": "",
    "nn.quantized.modules.utils": "",
    "nn.utils._deprecation_utils": "lazy_deprecated_import",
    "nn.utils._expanded_weights.expanded_weights_impl":
    "ExpandedWeight allow_smaller_batches batch_second implements_per_sample_grads setup_rnn",
    "numa": "",
    "numa.binding": "AffinityMode:NODE,SOCKET,EXCLUSIVE,CORE_COMPLEX NumaOptions",
    "onnx._constants": "",
    "onnx._flags": "",
    "onnx.ops": "aten_decompositions attention rotary_embedding symbolic symbolic_multi_out",
    "onnx.symbolic_opset19": "",
    "onnx.symbolic_opset20": "",
    "onnx.symbolic_opset7": "",
    "onnx.symbolic_opset8": "",
    "onnx.testing": "assert_onnx_program",
    "package._digraph": "DiGraph",
    "package._directory_reader": "DirectoryReader _HasStorage",
    "package._importlib": "",
    "package._mangling": "PackageMangler demangle get_mangle_prefix is_mangled",
    "package._mock": "MockedObject install_method",
    "package._package_pickler": "PackagePickler _PyTorchLegacyPickler create_pickler",
    "package._package_unpickler": "PackageUnpickler",
    "package._stdlib": "is_stdlib_module",
    "package.analyze":
    "find_first_use_of_broken_modules=package.analyze.find_first_use_of_broken_modules "
    "trace_dependencies=package.analyze.trace_dependencies",
    "package.analyze.find_first_use_of_broken_modules": "find_first_use_of_broken_modules",
    "package.analyze.is_from_package": "is_from_package",
    "package.analyze.trace_dependencies": "trace_dependencies",
    "package.find_file_dependencies": "_ExtractModuleReferences",
    "profiler._pattern_matcher":
    "Conv2dBiasFollowedByBatchNorm2dPattern ExtraCUDACopyPattern FP32MatMulPattern ForLoopIndexingPattern "
    "GradNotSetToNonePattern MatMulDimInFP16Pattern NamePattern OptimizerSingleTensorPattern Pattern "
    "SynchronizedDataLoaderPattern input_dtypes input_shapes report_all_anti_patterns source_code_location",
    "profiler.itt": "is_available mark range range_pop range_push",
    "profiler.python_tracer": "",
    "quantization._numeric_suite": "",
    "quantization._numeric_suite_fx": "",
    "quantization._quantized_conversions":
    "pack_int4_to_int8 quantized_weight_reorder_for_mixed_dtypes_linear_cutlass unpack_int8_to_int4",
    "quantization.fuser_method_mappings": "",
    "quantization.fx":
    "convert=ao.quantization.fx.convert fuse=ao.quantization.fx.fuse prepare=ao.quantization.fx.prepare",
    "quantization.fx._equalize": "input_equalization_observer weight_equalization_observer",
    "quantization.fx.convert": "",
    "quantization.fx.fuse": "",
    "quantization.fx.fusion_patterns": "",
    "quantization.fx.graph_module": "",
    "quantization.fx.match_utils": "",
    "quantization.fx.pattern_utils": "",
    "quantization.fx.prepare": "",
    "quantization.fx.quantization_patterns": "",
    "quantization.fx.quantization_types": "",
    "quantization.fx.utils": "",
    "quantization.quantize_jit": "",
    "sparse._semi_structured_conversions":
    "sparse_semi_structured_from_dense_cutlass sparse_semi_structured_to_dense_cutlass",
    "sparse._semi_structured_ops":
    "fallback_dispatcher no_dispatch semi_sparse_addmm semi_sparse_clone semi_sparse_detach semi_sparse_indices "
    "semi_sparse_linear semi_sparse_mm semi_sparse_scaled_mm semi_sparse_t semi_sparse_to semi_sparse_to_copy "
    "semi_sparse_values semi_sparse_view",
    "sparse._triton_ops":
    "TensorAsKey as1Dbatch broadcast_batch_dims broadcast_batch_dims_bsr bsr_dense_addmm bsr_dense_addmm_meta "
    "bsr_scatter_mm bsr_scatter_mm_indices_data check check_blocksize check_bsr_layout check_device check_dtype "
    "check_mm_compatible_shapes grid_partitioner launch_kernel make_triton_contiguous multidim_slicer "
    "prepare_inputs ptr_stride_extractor scatter_mm scatter_mm_meta slicer tile_to_blocksize",
    "sparse._triton_ops_meta":
    "create_blocked_tensor dump get_meta main minimize optimize_bsr_dense_addmm optimize_scatter_mm "
    "tune__int_bsr_dense_addmm tune_bsr_dense_addmm update",
    "sparse.semi_structured":
    "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT SparseSemiStructuredTensorCUTLASS "
    "_SEMI_STRUCTURED_SPARSE_CONFIG to_sparse_semi_structured",
    "utils._content_store": "ContentStoreReader ContentStoreWriter hash_storage hash_storage_kernel lazy_compile",
    "utils._dtype_abbrs": "",
    "utils._exposed_in": "exposed_in",
    "utils._functools": "cache_method prefetchable_cache",
    "utils._inspect": "",
    "utils._stats": "count count_label",
    "utils._thunk": "Thunk",
    "utils._traceback":
    "CapturedTraceback format_frame format_traceback_short report_compile_source_on_error shorten_filename",
    "utils._zip": "main remove_prefix write_to_zip",
    "utils.benchmark.op_fuzzers": "",
    "utils.benchmark.op_fuzzers.binary": "BinaryOpFuzzer",
    "utils.benchmark.op_fuzzers.sparse_binary": "BinaryOpSparseFuzzer",
    "utils.benchmark.op_fuzzers.sparse_unary": "UnaryOpSparseFuzzer",
    "utils.benchmark.op_fuzzers.spectral": "SpectralOpFuzzer power_range",
    "utils.benchmark.op_fuzzers.unary": "UnaryOpFuzzer",
    "utils.benchmark.utils.compile": "bench_all bench_loop benchmark_compile",
    "utils.benchmark.utils.cpp_jit": "compile_callgrind_template compile_timeit_template get_compat_bindings",
    "utils.benchmark.utils.valgrind_wrapper": "",
    "utils.benchmark.utils.valgrind_wrapper.timer_interface":
    "CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts GlobalsBridge "
    "Serialization:PICKLE,TORCH,TORCH_JIT _ValgrindWrapper wrapper_singleton",
    "utils.data.backward_compatibility": "worker_init_fn",
    "utils.data.datapipes.dataframe":
    "CaptureDataFrame=utils.data.datapipes.dataframe.dataframes "
    "DataFramesAsTuplesPipe=utils.data.datapipes.dataframe.datapipes",
    "utils.data.datapipes.dataframe.dataframe_wrapper":
    "PandasWrapper concat create_dataframe default_wrapper get_columns get_df_wrapper get_item get_len is_column "
    "is_dataframe iterate set_df_wrapper",
    "utils.data.datapipes.dataframe.dataframes":
    "Capture CaptureA CaptureAdd CaptureCall CaptureControl CaptureDataFrame CaptureDataFrameWithDataPipeOps "
    "CaptureF CaptureGetAttr CaptureGetItem CaptureInitial CaptureLikeMock CaptureMul CaptureSetItem CaptureSub "
    "CaptureVariable CaptureVariableAssign DataFrameTracedOps DataFrameTracer disable_capture get_val",
    "utils.data.datapipes.dataframe.datapipes":
    "ConcatDataFramesPipe DataFramesAsTuplesPipe ExampleAggregateAsDataFrames FilterDataFramesPipe "
    "PerRowDataFramesPipe ShuffleDataFramesPipe",
    "utils.data.datapipes.dataframe.structures": "DataChunkDF",
    "utils.data.datapipes.iter.routeddecoder": "RoutedDecoderIterDataPipe",
    "utils.data.datapipes.utils": "",
    "utils.data.datapipes.utils.common":
    "StreamWrapper get_file_binaries_from_pathnames get_file_pathnames_from_root match_masks validate_input_col "
    "validate_pathname_binary_tuple",
    "utils.data.datapipes.utils.decoder":
    "Decoder ImageHandler MatHandler audiohandler basichandlers extension_extract_fn handle_extension "
    "imagehandler mathandler videohandler",
    "utils.data.datapipes.utils.snapshot": "",
    "utils.data.graph": "traverse traverse_dps",
    "utils.data.graph_settings":
    "apply_random_seed apply_sharding apply_shuffle_seed apply_shuffle_settings get_all_graph_pipes",
    "utils.debug_log": "debug_grad_log",
    "utils.hipify.constants": "",
    "utils.hipify.version": "",
    "utils.jit": "",
    "utils.jit.log_extract":
    "extract_ir load_graph_and_inputs make_tensor_from_type no_fuser run_baseline_no_fusion run_nnc run_nvfuser "
    "run_test time_cpu time_cuda",
    "utils.model_dump":
    "burn_in_info get_info_and_burn_skeleton get_inline_skeleton get_model_info get_storage_info "
    "hierarchical_pickle main",
    "utils.serialization": "",
    "utils.serialization.config": "",
    "utils.show_pickle": "DumpUnpickler FakeClass FakeObject main",
    "utils.tensorboard._convert_np": "make_np",
    "utils.tensorboard._embedding": "get_embedding_info make_mat make_sprite make_tsv write_pbtxt",
    "utils.tensorboard._onnx_graph": "load_onnx_graph parse",
    "utils.tensorboard._proto_graph": "attr_value_proto node_proto tensor_shape_proto",
    "utils.tensorboard._pytorch_graph": "GraphPy NodeBase NodePy NodePyIO NodePyOP parse "
    "graph=utils.tensorboard._graph",
    "utils.tensorboard._utils": "convert_to_HWC figure_to_image make_grid",
    "utils.throughput_benchmark": "ExecutionStats ThroughputBenchmark format_time",
    "utils.viz": "",
}  # fmt: skip
