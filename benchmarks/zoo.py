"""Other people's models: how long a training step and a prediction take, in float32 and in bfloat16.

torchvision's, timm's and Hugging Face's models, unmodified, with weights drawn at random; taeda stands under the name
torch. Each library runs in a process of its own, and they take turns. The least of several times counts.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from _measure import REST, failure, machine, parser, ratio, table
from _served import Served

MODELS = {
    "torchvision": "alexnet vgg11_bn resnet18 resnet50 resnext50_32x4d densenet121 squeezenet1_0 googlenet "
    "inception_v3 shufflenet_v2_x1_0 mobilenet_v2 mobilenet_v3_small efficientnet_b0 regnet_y_400mf "
    "convnext_tiny vit_b_16 swin_t swin_v2_t maxvit_t",
    "timm": "resnet26d mixer_s32_224 convnextv2_atto deit_tiny_patch16_224 efficientvit_b0 pvt_v2_b0",
    "transformers": "bert gpt2 llama t5 vit whisper",
}
WAYS = ("train", "predict", "train in bfloat16", "predict in bfloat16")


def images(name: str, collection: str, torch: Any) -> tuple[Any, dict[str, Any]]:
    """A classifier and what it is called with."""
    if collection == "timm":
        import timm

        model = timm.create_model(name, pretrained=False)
        return model, {"x": torch.randn(2, *model.default_cfg["input_size"])}
    import torchvision

    large = name.startswith(("vit", "swin", "maxvit"))
    options = {"init_weights": False, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    model = torchvision.models.get_model(name, weights=None, **options)
    side = 299 if name == "inception_v3" else 224 if large else 128
    return model, {"x": torch.randn(2 if large else 4, 3, side, side)}


def of_transformers(name: str, torch: Any) -> tuple[Any, dict[str, Any]]:
    """A model of Hugging Face's of a few million parameters, and what it is called with."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers as hf

    hf.logging.set_verbosity_error()
    common = {"vocab_size": 4000, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
    ids = torch.randint(3, 4000, (4, 128))
    if name == "vit":
        del common["vocab_size"]
        config = hf.ViTConfig(**common, intermediate_size=1024, image_size=112)
        return hf.ViTForImageClassification(config), {"pixel_values": torch.randn(4, 3, 112, 112)}
    if name == "bert":
        model = hf.BertForMaskedLM(hf.BertConfig(**common, intermediate_size=1024))
    elif name == "llama":
        model = hf.LlamaForCausalLM(hf.LlamaConfig(**common, intermediate_size=768))
    elif name == "gpt2":
        sizes = {"vocab_size": 4000, "n_positions": 128, "n_embd": 256, "n_layer": 4, "n_head": 4}
        model = hf.GPT2LMHeadModel(hf.GPT2Config(**sizes, bos_token_id=1, eos_token_id=2))
    elif name == "t5":
        sizes = {"vocab_size": 4000, "d_model": 256, "d_ff": 1024, "num_layers": 3, "num_heads": 4}
        model = hf.T5ForConditionalGeneration(hf.T5Config(**sizes, decoder_start_token_id=0))
    else:
        sizes = {"vocab_size": 4000, "d_model": 256, "encoder_layers": 2, "decoder_layers": 2}
        sizes |= {"encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024, "max_source_positions": 200}
        sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
        special = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"), 1)
        model = hf.WhisperForConditionalGeneration(hf.WhisperConfig(**sizes, **special))
        return model, {"input_features": torch.randn(2, 80, 400), "labels": ids[:2, :32]}
    return model, {"input_ids": ids, "labels": ids}


def runner(torch: Any, collection: str, name: str, way: str) -> Callable[[], None]:
    """One training step without the optimizer's, or one prediction."""
    torch.manual_seed(0)
    model, inputs = (
        of_transformers(name, torch) if collection == "transformers" else images(name, collection, torch)
    )
    call = (lambda: model(*inputs.values())) if collection != "transformers" else (lambda: model(**inputs))

    def precision() -> Any:
        return torch.autocast("cpu", torch.bfloat16) if "bfloat16" in way else contextlib.nullcontext()

    def predict() -> None:
        with torch.no_grad(), precision():
            call()

    def train() -> None:
        model.zero_grad()
        with precision():
            result = call()
            loss = getattr(result, "loss", None)
            if loss is None:
                loss = (result if isinstance(result, torch.Tensor) else result.logits).float().square().mean()
        loss.backward()

    training = way.startswith("train")
    model.train(training)
    return train if training else predict


def serve(library: str, threads: str) -> None:
    """The process of one library: ``make COLLECTION NAME WAY`` and ``run``, which answers with seconds."""
    warnings.filterwarnings("ignore")
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "parity"))
    import zoo_worker

    torch = zoo_worker.library(library)
    torch.set_num_threads(int(threads))
    # What models print must not stand among the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    print("ready", file=answers, flush=True)
    run: Callable[[], None] | None = None
    for line in sys.stdin:
        word, *rest = line.split(maxsplit=3)
        try:
            if word == "make":
                run = None
                gc.collect()
                run = runner(torch, rest[0], rest[1], rest[2].strip())
                run()
            start = time.perf_counter()
            run()
            answer = repr(time.perf_counter() - start)
        except Exception as error:
            answer = failure(error)
        print(answer, file=answers, flush=True)


def rows(
    libraries: list[str], names: list[str], ways: list[str], threads: int, repeats: int
) -> Iterator[list[Any]]:
    """One row for every model and way."""
    with ExitStack() as stack:
        served = {name: stack.enter_context(Served(__file__, name, str(threads))) for name in libraries}
        for full in names:
            collection, name = full.split("/")
            for way in ways:
                answers = {
                    library: [process.ask("make", collection, name, way)]
                    for library, process in served.items()
                }
                failed = {
                    library: found[0] for library, found in answers.items() if not found[0][0].isdigit()
                }
                if failed:
                    yield [full, way, *(failed.get(library, "") for library in libraries), ""]
                    continue
                for _round in range(repeats):
                    for library, process in served.items():
                        time.sleep(REST)
                        answers[library].append(process.ask("run"))
                times = {library: min(map(float, found)) for library, found in answers.items()}
                yield [full, way, *(f"{1e3 * seconds:.1f}" for seconds in times.values()), ratio(times)]


def main() -> None:
    """Prints the table, or serves."""
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:])
    every = [f"{collection}/{name}" for collection, names in MODELS.items() for name in names.split()]
    options = parser(__doc__)
    options.add_argument("models", nargs="*", default=every, help="COLLECTION/NAME")
    options.add_argument("--ways", default=",".join(WAYS), help="comma-separated")
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--repeats", type=int, default=5, help="times, of which the least counts")
    chosen = options.parse_args()
    names = chosen.libraries.split(",")
    print(machine())
    header = ["model", "way", *(f"{name} ms" for name in names), f"{names[0]} / {names[-1]}"]
    found = rows(names, chosen.models, chosen.ways.split(","), chosen.threads, chosen.repeats)
    table("Other people's models", header, found)
    return None


if __name__ == "__main__":
    main()
