"""Programs over libraries of attention, codes, adapters and sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, learned, named, numbers


def x_transformers(torch: Any, folder: Path) -> Found:
    """A decoder with its loss and generation, an encoder, pictures, and options of attention."""
    from x_transformers import (
        AutoregressiveWrapper,
        Decoder,
        Encoder,
        TransformerWrapper,
        ViTransformerWrapper,
    )

    ids = torch.arange(40).reshape(2, 20) % 16
    found: Found = {}
    for name, options in {
        "plain": {},
        "rotary": {"rotary_pos_emb": True, "use_rmsnorm": True, "ff_glu": True},
        "alibi": {"alibi_pos_bias": True},
        "flash": {"attn_flash": True, "attn_kv_heads": 1, "attn_qk_norm": True},
        "sparse": {"attn_sparse_topk": 4, "sandwich_norm": True},
        "memory": {"attn_num_mem_kv": 4, "use_scalenorm": True, "shift_tokens": 1},
    }.items():
        torch.manual_seed(0)
        net = TransformerWrapper(
            num_tokens=16,
            max_seq_len=32,
            attn_layers=Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, **options),
        )
        model = filled(torch, AutoregressiveWrapper(net).double()).eval()
        loss = model(ids)
        loss.backward()
        found[name] = loss
        found[f"{name} gradients"] = [p.grad for p in model.parameters() if p.grad is not None]
        found[f"{name} text"] = model.generate(ids[:, :4], 6, temperature=0.0).tolist()
    picture = ViTransformerWrapper(
        image_size=16, patch_size=8, num_classes=4, attn_layers=Encoder(dim=16, depth=1, heads=2)
    )
    return {**found, **named("picture", learned(torch, picture, numbers(torch, 2, 3, 16, 16)))}


def local_attention(torch: Any, folder: Path) -> Found:
    """Attention to near places, alone and in a language model."""
    from local_attention import LocalAttention
    from local_attention.transformer import LocalTransformer

    q, k, v = (numbers(torch, 2, 2, 32, 8, seed=i, dtype=torch.float32).requires_grad_() for i in range(3))
    attention = LocalAttention(dim=8, window_size=8, causal=True, look_backward=1, autopad=True)
    result = attention(q, k, v)
    result.sum().backward()
    model = LocalTransformer(
        num_tokens=16,
        dim=16,
        depth=2,
        heads=2,
        dim_head=8,
        max_seq_len=32,
        causal=True,
        local_attn_window_size=8,
    )
    ids = torch.arange(32).reshape(1, 32) % 16
    return {"result": result, "gradient": q.grad, **named("model", learned(torch, model, ids))}


def rotary_embedding_torch(torch: Any, folder: Path) -> Found:
    """Queries and keys turned by their place, in one and two dimensions."""
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    q = numbers(torch, 1, 2, 10, 16)
    turning, axial = RotaryEmbedding(dim=8), RotaryEmbedding(dim=8, freqs_for="pixel", max_freq=10)
    two = axial.get_axial_freqs(4, 6)
    return {
        "turned": turning.rotate_queries_or_keys(q),
        "longer": RotaryEmbedding(dim=8, use_xpos=True).rotate_queries_and_keys(q, q),
        "axial": apply_rotary_emb(two, numbers(torch, 1, 4, 6, 32)),
    }


def sentence_transformers(torch: Any, folder: Path) -> Found:
    """A model of words made here: texts as vectors, their likeness, a loss, and its files."""
    import sentence_transformers as s
    import transformers
    from sentence_transformers import util
    from sentence_transformers.sentence_transformer import losses, modules

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "sat", "ran", "on", "mat"]
    (folder / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    filled(torch, model := transformers.BertModel(config))
    model.save_pretrained(folder / "bert")
    tokenizer.save_pretrained(folder / "bert")
    words_model = modules.Transformer(str(folder / "bert"))
    net = s.SentenceTransformer(modules=[words_model, modules.Pooling(16), modules.Normalize()], device="cpu")
    texts = ["a cat sat", "a dog ran on a mat", "cat"]
    vectors = net.encode(texts, convert_to_tensor=True)
    loss = losses.MultipleNegativesRankingLoss(net)
    features = [net.tokenize(texts), net.tokenize(texts[::-1])]
    value = loss(features, torch.zeros(3))
    value.backward()
    net.save(str(folder / "kept"))
    again = s.SentenceTransformer(str(folder / "kept"), device="cpu")
    return {
        "vectors": vectors,
        "alike": util.cos_sim(vectors, vectors),
        "search": str(util.semantic_search(vectors, vectors, top_k=1)[0][0]["corpus_id"]),
        "loss": value,
        "gradient": net[0].auto_model.embeddings.word_embeddings.weight.grad,
        "again": again.encode(texts),
    }


def peft(torch: Any, folder: Path) -> Found:
    """Adapters of several kinds over a small model, merged and loaded."""
    import peft as p

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x).relu())

    found: Found = {}
    x = numbers(torch, 5, 6, dtype=torch.float32)
    for name, config in {
        "lora": p.LoraConfig(r=2, target_modules=["first"], modules_to_save=["second"]),
        "dora": p.LoraConfig(r=2, target_modules=["first"], use_dora=True),
        "ia3": p.IA3Config(target_modules=["first", "second"], feedforward_modules=[]),
        "loha": p.LoHaConfig(r=2, target_modules=["first"]),
        "lokr": p.LoKrConfig(r=2, target_modules=["first"]),
        "oft": p.OFTConfig(r=0, oft_block_size=2, target_modules=["first"]),
        "vera": p.VeraConfig(r=2, target_modules=["first"]),
        "hra": p.HRAConfig(r=2, target_modules=["first"]),
        "boft": p.BOFTConfig(boft_block_size=2, target_modules=["first"]),
    }.items():
        torch.manual_seed(0)
        model = filled(torch, p.get_peft_model(Net(), config))
        result = model(x)
        result.sum().backward()
        found[name] = [result, *(q.grad for q in model.parameters() if q.grad is not None)]
        model.save_pretrained(folder / name)
        found[f"{name} keys"] = sorted(p.get_peft_model_state_dict(model))
        found[f"{name} merged"] = model.merge_and_unload()(x)
    return found


def vector_quantize_pytorch(torch: Any, folder: Path) -> Found:
    """Codes of vectors by several ways."""
    from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

    torch.manual_seed(0)
    x = numbers(torch, 2, 8, 6, dtype=torch.float32)
    found: Found = {}
    for name, model in {
        "vq": VectorQuantize(dim=6, codebook_size=8),
        "residual": ResidualVQ(dim=6, codebook_size=8, num_quantizers=2),
    }.items():
        filled(torch, model).eval()
        made, codes, *_ = model(x)
        found |= {name: made, f"{name} codes": codes.tolist()}
    found["fsq"], codes = FSQ([4, 4, 4])(numbers(torch, 2, 5, 3, dtype=torch.float32))
    found["lfq"] = LFQ(codebook_size=16, dim=4).eval()(numbers(torch, 1, 5, 4, dtype=torch.float32))[0]
    return found
