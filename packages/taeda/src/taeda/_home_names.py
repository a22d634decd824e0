"""Where PyTorch has what stands in other files here; all else has the place of its file, see `_homes`.

Paths are below torch, and "" is torch itself.
"""

from __future__ import annotations

#: Packages whose files PyTorch does not have: what they show is the package's.
FOLDED = frozenset({
    "taeda_distributions.transforms", "taeda_nn.functional", "taeda_optim.lr_scheduler",
    "taeda_tensor_core.checkpoint", "taeda_tensor_core.quantized", "taeda_tensor_core.sparse",
    "taeda_tensor_core.nested",
})  # fmt: skip
#: Files that PyTorch does not have, by package: they keep their own names, but for what a package above shows.
_INNER = {
    "taeda": "_functorch.extension",
    "taeda_data": "collate crew inert iterators packing parts pinning progress randomness reading readers transforms "
    "workers",
    "taeda_multiprocessing": "devices queues",
    "taeda_optim": "adafactor adam_family adaptive counting muon saving swap_in",
    "taeda_profiler": "activities arguments averages benchmark.compiled_timer benchmark.counts chrome marks memory "
    "memory_line module_names pages profiles results schedules settings table trace",
    "taeda_tensor_core": "composed_names default_device device_module errors foreach legacy_types opaque ops packed "
    "packed_weights private_names program_names quantized removed_names sharing streams",
}
INNER = frozenset(f"{package}.{name}" for package, names in _INNER.items() for name in names.split())
#: What a package shows of other packages' own files.
ALSO = {"taeda_nn.functional": ("taeda_tensor_core.ops",)}
#: Modules that have another place there as a whole.
MOVED = {
    "taeda.ao.quantization.granularity": "ao.quantization.observer",
    "taeda_data.loader": "utils.data.dataloader",
    "taeda_nn.modules.attention": "nn.modules.activation",
    "taeda_nn.parallel.comm": "nn.parallel.comm",
    "taeda_profiler.benchmark.common": "utils.benchmark.utils.common",
    "taeda_profiler.benchmark.compare": "utils.benchmark.utils.compare",
    "taeda_profiler.benchmark.fuzzer": "utils.benchmark.utils.fuzzer",
    "taeda_profiler.benchmark.timer": "utils.benchmark.utils.timer",
    "taeda_tensor_core.masked": "masked._ops",
    "taeda_tensor_core.signal.windows": "signal.windows.windows",
}
#: By module and place there: the names that have that place.
NAMED: dict[str, dict[str, str]] = {
    "taeda._checks": {
        "": "typename _check_with _check _check_is_size _check_index _check_value _check_type _check_not_implemented "
        "_check_tensor_all_with _check_tensor_all set_vital",
    },
    "taeda._ops": {"": "Tag"},
    "taeda.ao.nn.quantizable._attention": {"ao.nn.quantizable.modules.activation": "MultiheadAttention"},
    "taeda.ao.nn.quantizable._rnn": {"ao.nn.quantizable.modules.rnn": "LSTM LSTMCell _LSTMLayer _LSTMSingleLayer"},
    "taeda.ao.nn.quantized._several_steps": {
        "ao.nn.quantized.modules.activation": "MultiheadAttention", "ao.nn.quantized.modules.rnn": "LSTM",
    },
    "taeda.compiler": {"": "compile"},
    "taeda.cuda": {
        "cuda.streams": "Event ExternalStream Stream", "cuda.memory": "CUDAPluggableAllocator MemPool",
        "cuda.green_contexts": "GreenContext",
    },
    "taeda.export._calls": {"export.exported_program": "ModuleCallEntry ModuleCallSignature"},
    "taeda.export._dims": {"export.dynamic_shapes": "Dim dims"},
    "taeda.export._program": {
        "export.exported_program": "ExportedProgram", "export.unflatten": "unflatten UnflattenedModule",
    },
    "taeda.export._shapes": {"export.dynamic_shapes": "AdditionalInputs ShapesCollection"},
    "taeda.futures": {"": "Future"},
    "taeda.fx._code": {"fx.graph": "CodeGen PythonCode _PyTreeInfo _PyTreeCodeGen"},
    "taeda.fx._symbolic_trace": {"fx._symbolic_trace": "ProxyableClassMeta Tracer symbolic_trace wrap"},
    "taeda.package._exporting": {"package.package_exporter": "EmptyMatchError PackageExporter PackagingError"},
    "taeda.package._importing": {
        "package.file_structure_representation": "Directory", "package.package_importer": "PackageImporter",
    },
    "taeda.package._names": {
        "package.glob_group": "GlobGroup",
        "package.importer": "Importer ObjMismatchError ObjNotFoundError OrderedImporter",
    },
    "taeda_autograd._C": {"autograd.graph": "Node"},
    "taeda_autograd._anomaly": {
        "autograd.anomaly_mode": "detect_anomaly set_detect_anomaly",
        "": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    },
    "taeda_autograd._function": {"autograd.function": "Function FunctionCtx once_differentiable"},
    "taeda_data.datapipes.iter": {
        f"utils.data.datapipes.iter.{home}": " ".join(f"{name}IterDataPipe" for name in names.split())
        for home, names in {
            "callable": "Collator Mapper", "combinatorics": "Sampler Shuffler",
            "combining": "Concater Demultiplexer Forker Multiplexer Zipper", "filelister": "FileLister",
            "fileopener": "FileOpener", "grouping": "Batcher Grouper UnBatcher", "selecting": "Filter",
            "sharding": "ShardingFilter", "streamreader": "StreamReader", "utils": "IterableWrapper",
        }.items()
    },
    "taeda_data.datapipes.map": {
        f"utils.data.datapipes.map.{home}": names
        for home, names in {
            "callable": "MapperMapDataPipe", "combinatorics": "ShufflerIterDataPipe",
            "combining": "ConcaterMapDataPipe ZipperMapDataPipe", "grouping": "BatcherMapDataPipe",
            "utils": "SequenceWrapperMapDataPipe",
        }.items()
    },
    "taeda_multiprocessing._spawn": {
        "multiprocessing.spawn": "spawn ProcessContext ProcessExitedException ProcessRaisedException SpawnContext "
        "start_processes ProcessException",
    },
    "taeda_data.collate": {"utils.data._utils.collate": "default_collate default_convert"},
    "taeda_data.reading": {"utils.data._utils.worker": "get_worker_info"},
    "taeda_data.sampler": {"utils.data.distributed": "DistributedSampler"},
    "taeda_nn._hooks": {"nn.modules.module": "_WrappedHook", "utils.hooks": "RemovableHandle"},
    "taeda_nn.modules._state": {"nn.modules.module": "_IncompatibleKeys"},
    "taeda_nn.parallel.data_parallel": {
        "nn.parallel.parallel_apply": "parallel_apply", "nn.parallel.replicate": "replicate",
        "nn.parallel.scatter_gather": "gather scatter",
    },
    "taeda_optim._functional": {
        f"optim.{name}": name
        for name in (
            "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd",
        )
    },
    "taeda_optim.adafactor": {"optim": "Adafactor"},
    "taeda_optim.adam": {"optim.adamw": "AdamW"},
    "taeda_optim.adam_family": {"optim.adamax": "Adamax", "optim.nadam": "NAdam", "optim.radam": "RAdam"},
    "taeda_optim.adaptive": {
        "optim.adadelta": "Adadelta", "optim.adagrad": "Adagrad", "optim.rmsprop": "RMSprop", "optim.rprop": "Rprop",
    },
    "taeda_optim.muon": {"optim": "Muon"},
    "taeda_optim.swap_in": {"optim": "swap_in_optimizer_params_and_state"},
    "taeda_profiler.averages": {"autograd.profiler_util": "EventList FunctionEvent FunctionEventAvg"},
    "taeda_profiler.benchmark.fuzzer": {"utils.benchmark.utils.sparse_fuzzer": "FuzzedSparseTensor"},
    "taeda_profiler.marks": {"autograd.profiler": "record_function emit_itt emit_nvtx"},
    "taeda_profiler.profiles": {
        "profiler.profiler": "profile supported_activities tensorboard_trace_handler",
    },
    "taeda_profiler.schedules": {"profiler.profiler": "ProfilerAction schedule", "_C._profiler": "ProfilerActivity"},
    "taeda.utils._swap": {"utils": "swap_tensors"},
    "taeda_tensor_core": {"_C": "Generator"},
    "taeda_tensor_core._lowrank": {"_lowrank": "pca_lowrank svd_lowrank"},
    "taeda_tensor_core._overridable": {"_C": "DisableTorchFunctionSubclass DisableTorchFunction"},
    "taeda_tensor_core._modes": {"autograd.grad_mode": "enable_grad inference_mode no_grad set_grad_enabled"},
    "taeda_tensor_core.accelerator": {
        "accelerator.memory": "empty_cache empty_host_cache get_memory_info max_memory_allocated max_memory_reserved "
        "memory_allocated memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats",
    },
    "taeda_tensor_core.amp": {
        "": "get_autocast_cpu_dtype get_autocast_gpu_dtype is_autocast_cpu_enabled set_autocast_cpu_dtype "
        "set_autocast_cpu_enabled set_autocast_gpu_dtype",
    },
    "taeda_tensor_core.checkpoint.options": {
        "serialization": "LoadEndianness SourceChangeWarning StorageType check_module_version_greater_or_equal "
        "default_restore_location get_crc32_options get_default_load_endianness get_default_mmap_options "
        "get_unsafe_globals_in_checkpoint location_tag normalize_storage_type register_package set_crc32_options "
        "set_default_load_endianness set_default_mmap_options skip_data storage_to_tensor_type",
    },
    "taeda_tensor_core.testing._comparison": {"testing._comparison": "assert_allclose assert_close"},
    "taeda_tensor_core.testing._creation": {"testing._creation": "make_tensor"},
    "taeda_tensor_core.maskedtensor": {
        "masked.maskedtensor.core": "is_masked_tensor MaskedTensor",
        "masked.maskedtensor.creation": "as_masked_tensor masked_tensor",
    },
    "taeda_tensor_core.storage": {
        "": "is_storage ByteStorage DoubleStorage FloatStorage HalfStorage LongStorage IntStorage ShortStorage "
        "CharStorage BoolStorage BFloat16Storage ComplexFloatStorage ComplexDoubleStorage",
    },
}  # fmt: skip
