"""Programs over libraries of single ideas: attention of several kinds, spikes, flows, segments, warm-ups, costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, learned, named, network, numbers, table


def whisper(torch: Any, folder: Path) -> Found:
    """A tiny model of speech, and the spectrogram that it hears."""
    from whisper.audio import log_mel_spectrogram, pad_or_trim
    from whisper.model import ModelDimensions, Whisper

    sizes = ModelDimensions(
        n_mels=16, n_audio_ctx=10, n_audio_state=32, n_audio_head=4, n_audio_layer=2, n_vocab=99, n_text_ctx=12,
        n_text_state=32, n_text_head=4, n_text_layer=2,
    )  # fmt: skip
    model = filled(torch, Whisper(sizes)).eval()
    sound = numbers(torch, 2, 16, 20, dtype=torch.float32)
    result = model(sound, torch.arange(10).view(2, 5))
    result.pow(2).mean().backward()
    heard = log_mel_spectrogram(0.1 * numbers(torch, 8000, dtype=torch.float32))
    return {
        "result": result,
        "gradients": [p.grad for p in model.parameters() if p.grad is not None],
        "heard": heard,
        "cut": pad_or_trim(heard, 30),
    }


def attentions(torch: Any, folder: Path) -> Found:
    """Nystroem's, along axes, of a latent array, of low rank, and of graphs in space."""
    from axial_attention import AxialAttention
    from egnn_pytorch import EGNN
    from linformer import Linformer
    from mlp_mixer_pytorch import MLPMixer
    from nystrom_attention import NystromAttention
    from soft_moe_pytorch import SoftMoE

    words, image = numbers(torch, 1, 16, 32), numbers(torch, 1, 3, 16, 16)
    found = named(
        "low rank", learned(torch, Linformer(dim=32, seq_len=16, depth=2, heads=4, k=8), words.clone())
    )
    nystrom = NystromAttention(dim=32, dim_head=8, heads=2, num_landmarks=4, pinv_iterations=3, residual=True)
    found |= named("nystrom", learned(torch, nystrom, words.clone()))
    axial = AxialAttention(dim=16, dim_index=1, heads=2, num_dimensions=2)
    found |= named("axial", learned(torch, axial, numbers(torch, 1, 16, 4, 4)))
    mixer = MLPMixer(image_size=16, channels=3, patch_size=4, dim=16, depth=2, num_classes=3)
    found |= named("mixer", learned(torch, mixer, image))
    found |= named("experts", learned(torch, SoftMoE(dim=32, seq_len=16, num_experts=2), words.clone()))
    return found | named(
        "graph", learned(torch, EGNN(dim=16), numbers(torch, 1, 6, 16), numbers(torch, 1, 6, 3))
    )


def snntorch(torch: Any, folder: Path) -> Found:
    """Neurons that leak and fire, gradients through spikes, and losses of their rates."""
    import snntorch as snn
    from snntorch import functional, spikegen, surrogate

    layer = filled(torch, torch.nn.Linear(6, 3))
    leaky = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid())
    voltage, spikes = leaky.init_leaky(), []
    for inputs in numbers(torch, 5, 4, 6, dtype=torch.float32):
        spike, voltage = leaky(layer(inputs), voltage)
        spikes.append(spike)
    fired, wanted = torch.stack(spikes), torch.tensor([0, 1, 2, 0])
    loss = functional.ce_rate_loss()(fired, wanted)
    loss.backward()
    return {
        "spikes": fired,
        "loss": loss,
        "gradient": layer.weight.grad,
        "accuracy": functional.accuracy_rate(fired, wanted),
        "latency": spikegen.latency(numbers(torch, 3, dtype=torch.float32).sigmoid(), num_steps=5),
    }


def normflows(torch: Any, folder: Path) -> Found:
    """A flow of affine couplings: its loss and densities."""
    import normflows as nf

    flows: list[Any] = []
    for _ in range(4):
        flows += [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 16, 2])), nf.flows.Permute(2, mode="swap")]
    model = filled(torch, nf.NormalizingFlow(nf.distributions.DiagGaussian(2), flows))
    loss = model.forward_kld(numbers(torch, 8, 2, dtype=torch.float32))
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    density = model.log_prob(numbers(torch, 3, 2, seed=1, dtype=torch.float32))
    return {"loss": loss, "density": density, "gradients": gradients}


def segment_anything(torch: Any, folder: Path) -> Found:
    """Masks of what a point shows."""
    from segment_anything.modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer

    sizes = {"img_size": 64, "patch_size": 16, "embed_dim": 32, "depth": 2, "num_heads": 2, "out_chans": 32}
    encoder = ImageEncoderViT(**sizes, use_rel_pos=True, window_size=2, global_attn_indexes=[1])
    prompts = PromptEncoder(
        embed_dim=32, image_embedding_size=(4, 4), input_image_size=(64, 64), mask_in_chans=4
    )
    both_ways = TwoWayTransformer(depth=1, embedding_dim=32, mlp_dim=32, num_heads=2)
    decoder = MaskDecoder(transformer_dim=32, transformer=both_ways)
    model = filled(torch, Sam(image_encoder=encoder, prompt_encoder=prompts, mask_decoder=decoder)).eval()
    request = {
        "image": numbers(torch, 3, 64, 64, dtype=torch.float32),
        "original_size": (64, 64),
        "point_coords": torch.tensor([[[10.0, 20.0]]]),
        "point_labels": torch.tensor([[1]]),
    }
    (found,) = model([request], multimask_output=True)
    return {"quality": found["iou_predictions"], "logits": found["low_res_logits"]}


def costs(torch: Any, folder: Path) -> Found:
    """A network pruned, a rate of learning searched, and one that warms up."""
    import pytorch_warmup
    import torch_pruning as pruning
    from torch_lr_finder import LRFinder

    x, y = table(torch, dtype=torch.float32)
    model = network(torch, 8, torch.float32)
    pruner = pruning.pruner.MagnitudePruner(
        model, x, pruning.importance.MagnitudeImportance(p=2), pruning_ratio=0.5, ignored_layers=[model[3]]
    )
    before = pruning.utils.count_ops_and_params(model, x)
    pruner.step()
    found: Found = {"before": list(before), "after": list(pruning.utils.count_ops_and_params(model, x))}
    found["pruned"] = model(x)
    model = network(torch, 8, torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    finder = LRFinder(model, optimizer, torch.nn.CrossEntropyLoss(), device="cpu")
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
    finder.range_test(data, end_lr=1, num_iter=6)
    found |= {"rates": list(finder.history["lr"]), "losses": [float(v) for v in finder.history["loss"]]}
    finder.reset()
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    warmup, rates = pytorch_warmup.UntunedLinearWarmup(optimizer), []
    for _ in range(6):
        optimizer.step()
        with warmup.dampening():
            schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    return found | {"warm": rates}


def torch_dct(torch: Any, folder: Path) -> Found:
    """Cosine transforms of one to three dimensions."""
    import torch_dct as dct

    x = numbers(torch, 4, 8)
    cube = numbers(torch, 2, 4, 4)
    return {
        "one": dct.dct(x),
        "back": dct.idct(x),
        "two": dct.dct_2d(x),
        "three": dct.dct_3d(cube),
        "first": dct.dct1(x),
    }
