"""Programs over libraries of graphs, words and training loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, network, numbers, table


def torch_geometric(torch: Any, folder: Path) -> Found:
    """Layers over a graph, batches, pooling, transforms, sampling and data of several kinds of nodes."""
    import torch_geometric.nn as g
    from torch_geometric.data import Batch, Data, HeteroData
    from torch_geometric.loader import DataLoader
    from torch_geometric.transforms import AddSelfLoops, Compose, NormalizeFeatures, ToUndirected
    from torch_geometric.utils import coalesce, degree, scatter, softmax, subgraph, to_dense_adj

    edges = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 0], [1, 0, 2, 1, 4, 3, 0, 4]])
    x = numbers(torch, 5, 6)
    found: Found = {}
    for name, layer, options in (
        ("GCNConv", g.GCNConv(6, 4), {}),
        ("GATConv", g.GATConv(6, 4, heads=2), {}),
        ("GATv2Conv", g.GATv2Conv(6, 4, heads=2, concat=False), {}),
        ("SAGEConv", g.SAGEConv(6, 4), {}),
        ("GINConv", g.GINConv(torch.nn.Linear(6, 4)), {}),
        ("TransformerConv", g.TransformerConv(6, 4, heads=2), {}),
        ("ChebConv", g.ChebConv(6, 4, K=2), {}),
        ("GraphConv", g.GraphConv(6, 4), {}),
        ("TAGConv", g.TAGConv(6, 4), {}),
        ("ARMAConv", g.ARMAConv(6, 4), {}),
        ("SGConv", g.SGConv(6, 4, K=2), {}),
        ("APPNP", g.APPNP(2, 0.1), {}),
        ("EdgeConv", g.EdgeConv(torch.nn.Linear(12, 4)), {}),
        ("GatedGraphConv", g.GatedGraphConv(6, 2), {}),
        ("ResGatedGraphConv", g.ResGatedGraphConv(6, 4), {}),
        (
            "PNAConv",
            g.PNAConv(
                6, 4, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([0, 2, 2, 1])
            ),
            {},
        ),
        ("GENConv", g.GENConv(6, 4), {}),
    ):
        layer = filled(torch, layer.double()).eval()
        inputs = x.clone().requires_grad_()
        result = layer(inputs, edges, **options)
        result.pow(2).mean().backward()
        found |= {name: result, f"{name} gradient": inputs.grad, f"{name} text": repr(layer)}
    data = [
        Data(x=x[: n + 2], edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([n % 2]))
        for n in range(4)
    ]
    for batch in DataLoader(data, batch_size=3):
        found[f"batch {batch.num_graphs}"] = [
            batch.batch,
            batch.ptr,
            g.global_mean_pool(batch.x, batch.batch),
        ]
    model = filled(torch, g.GIN(6, 8, 2, 3).double()).eval()
    batch = Batch.from_data_list(data)
    found["gin"] = g.global_add_pool(model(batch.x, batch.edge_index), batch.batch)
    found["pooled"] = filled(torch, g.TopKPooling(6).double())(x, edges)[0]
    found["attended"] = filled(torch, g.AttentionalAggregation(torch.nn.Linear(6, 1)).double())(
        x, torch.tensor([0, 0, 1, 1, 1])
    )
    changed = Compose([ToUndirected(), AddSelfLoops(), NormalizeFeatures()])(
        Data(x=x.abs(), edge_index=edges)
    )
    found["changed"] = [changed.x, changed.edge_index]
    found["utils"] = [
        degree(edges[0]),
        to_dense_adj(edges),
        softmax(numbers(torch, 8), edges[1]),
        scatter(numbers(torch, 8, 2), edges[1], reduce="max"),
        *coalesce(torch.cat([edges, edges], 1), torch.ones(16), reduce="sum"),
        subgraph([0, 1, 4], edges)[0],
    ]
    hetero = HeteroData()
    hetero["a"].x, hetero["b"].x = x, x[:3]
    hetero["a", "to", "b"].edge_index = torch.tensor([[0, 1, 4], [0, 2, 1]])
    conv = filled(torch, g.HeteroConv({("a", "to", "b"): g.SAGEConv((6, 6), 4)}).double())
    found["hetero"] = conv(hetero.x_dict, hetero.edge_index_dict)["b"]
    found["text"] = [repr(hetero), repr(batch), repr(data[0])]
    torch.save(data, folder / "data.pt")
    found["again"] = torch.load(folder / "data.pt", weights_only=False)[1].x
    adjacency = torch.sparse_coo_tensor(edges, torch.ones(8).double(), (5, 5))
    found["sparse"] = filled(torch, g.GCNConv(6, 4, normalize=False).double())(x, adjacency.t())
    return found


def fastai(torch: Any, folder: Path) -> Found:
    """A learner over tensors: one cycle, its record, predictions, its file."""
    import fastai.basics as f
    from fastai.callback.all import SaveModelCallback  # noqa: F401
    from fastai.metrics import accuracy
    from fastai.vision.all import TensorImage, xresnet18

    x, y = table(torch, dtype=torch.float32)
    data = torch.utils.data.TensorDataset(x, y)
    loaders = f.DataLoaders.from_dsets(data, data, bs=8, shuffle=False, drop_last=False, device="cpu")
    model = network(torch, 8, torch.float32)
    learn = f.Learner(loaders, model, loss_func=torch.nn.CrossEntropyLoss(), metrics=accuracy, path=folder)
    with learn.no_bar(), learn.no_logging():
        learn.fit(2, 0.05)
        learn.fit_one_cycle(1, 0.02)
        predicted, _ = learn.get_preds()
        learn.save("kept")
        learn.load("kept")
    image = TensorImage(numbers(torch, 3, 4, 4))
    torch.manual_seed(0)
    net = filled(torch, xresnet18(n_out=3)).eval()
    return {
        "predicted": torch.as_tensor(predicted),
        "kind": type(image * 2).__name__,
        "image": torch.as_tensor(image + 1),
        "losses": [float(v) for v in learn.recorder.losses],
        "net": net(numbers(torch, 1, 3, 32, 32, dtype=torch.float32)),
    }


def transformers_generation(torch: Any, folder: Path) -> Found:
    """Texts by search of several kinds, streams of words, files, and pipelines."""
    import transformers as t

    found: Found = {}
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 50,
        "intermediate_size": 48,
    }
    configs = {
        "llama": (t.LlamaForCausalLM, t.LlamaConfig(**sizes, num_key_value_heads=2)),
        "gpt2": (t.GPT2LMHeadModel, t.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=50)),
        "mistral": (t.MistralForCausalLM, t.MistralConfig(**sizes, num_key_value_heads=2, sliding_window=4)),
        "qwen": (t.Qwen2ForCausalLM, t.Qwen2Config(**sizes, num_key_value_heads=2)),
        "gemma": (t.Gemma2ForCausalLM, t.Gemma2Config(**sizes, num_key_value_heads=2, head_dim=8)),
        "mixtral": (
            t.MixtralForCausalLM,
            t.MixtralConfig(**sizes, num_key_value_heads=2, num_local_experts=4),
        ),
        "mamba": (
            t.MambaForCausalLM,
            t.MambaConfig(hidden_size=32, num_hidden_layers=2, vocab_size=50, state_size=4),
        ),
        "t5": (
            t.T5ForConditionalGeneration,
            t.T5Config(
                d_model=32,
                d_kv=8,
                d_ff=48,
                num_layers=2,
                num_heads=4,
                vocab_size=50,
                decoder_start_token_id=0,
            ),
        ),
        "bart": (
            t.BartForConditionalGeneration,
            t.BartConfig(
                d_model=32,
                encoder_layers=2,
                decoder_layers=2,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                encoder_ffn_dim=48,
                decoder_ffn_dim=48,
                vocab_size=50,
            ),
        ),
    }
    words = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])
    for name, (kind, config) in configs.items():
        config.eos_token_id, config.pad_token_id = 1, 0
        model = filled(torch, kind(config)).eval()
        model.generation_config.eos_token_id = None
        model.generation_config.pad_token_id = 0
        for way, options in {
            "greedy": {"do_sample": False},
            "beams": {"num_beams": 3, "do_sample": False},
            "penalty": {
                "do_sample": False,
                "repetition_penalty": 1.3,
                "no_repeat_ngram_size": 2,
                "min_new_tokens": 3,
            },
            "uncached": {"do_sample": False, "use_cache": False},
        }.items():
            if name == "mamba" and way == "beams":
                continue
            found[f"{name} {way}"] = model.generate(words, max_new_tokens=6, **options).tolist()
        torch.manual_seed(0)
        drawn = model.generate(words, max_new_tokens=5, do_sample=True, top_k=10, top_p=0.9, temperature=0.8)
        found[f"{name} drawn"] = list(drawn.shape)
        result = model.generate(
            words, max_new_tokens=3, do_sample=False, output_scores=True, return_dict_in_generate=True
        )
        found[f"{name} scores"] = result.scores
        model.save_pretrained(folder / name)
        again = kind.from_pretrained(folder / name)
        found[f"{name} again"] = again.generate(words, max_new_tokens=4, do_sample=False).tolist()
    return found


def transformers_training(torch: Any, folder: Path) -> Found:
    """The Trainer: classes of rows of words, evaluation, checkpoints; and its schedulers and optimizers."""
    import transformers as t

    torch.manual_seed(0)
    config = t.BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        vocab_size=30,
        num_labels=2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = filled(torch, t.BertForSequenceClassification(config))
    rows = [{"input_ids": [i % 28 + 2, (3 * i) % 28 + 2, 4], "labels": i % 2} for i in range(16)]
    args = t.TrainingArguments(
        str(folder / "out"),
        num_train_epochs=2,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        report_to=[],
        logging_steps=1,
        save_strategy="epoch",
        eval_strategy="epoch",
        use_cpu=True,
        seed=0,
        data_seed=0,
        lr_scheduler_type="cosine",
        warmup_steps=2,
        gradient_accumulation_steps=2,
        max_grad_norm=0.5,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = t.Trainer(
        model,
        args,
        train_dataset=rows,
        eval_dataset=rows[:6],
        data_collator=t.default_data_collator,
        compute_metrics=lambda p: {"right": float((p.predictions.argmax(-1) == p.label_ids).mean())},
    )
    trainer._get_train_sampler = lambda *_: torch.utils.data.SequentialSampler(rows)
    done = trainer.train()
    scores = trainer.predict(rows[:5]).predictions
    again = t.BertForSequenceClassification.from_pretrained(
        t.trainer_utils.get_last_checkpoint(str(folder / "out"))
    )
    x = torch.tensor([[3, 4, 5]])
    return {
        "loss": done.training_loss,
        "scores": scores,
        "same": bool(torch.allclose(again.eval()(x).logits, model.eval()(x).logits)),
        "log": [
            [
                round(v, 4)
                for k, v in sorted(e.items())
                if k in ("loss", "eval_loss", "learning_rate", "grad_norm", "eval_right")
            ]
            for e in trainer.state.log_history
        ],
    }
