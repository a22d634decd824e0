"""Programs over libraries with layers and training loops of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found


def keras(torch: Any, folder: Path) -> Found:
    """Models of pictures and of words by its layers: fitted, evaluated, kept and loaded; and its operators."""
    import os

    os.environ["KERAS_BACKEND"] = "torch"
    import numpy as np
    from keras import Model, Sequential, layers, losses, models, ops, optimizers

    rng = np.random.default_rng(0)

    def drawn(model: Any) -> Any:
        model.set_weights([
            np.ones(variable.shape, "float32") if variable.path.endswith("variance")
            else rng.standard_normal(variable.shape).astype("float32") / 8
            for variable in model.weights
        ])  # fmt: skip
        return model

    def history(model: Any, x: Any, y: Any) -> dict[str, list[float]]:
        fitted = model.fit(x, y, batch_size=8, epochs=2, validation_split=0.25, shuffle=False, verbose=0)
        return {key: [float(value) for value in values] for key, values in fitted.history.items()}

    pictures = drawn(Sequential([
        layers.Input((12, 12, 1)), layers.Conv2D(4, 3, activation="relu", padding="same"),
        layers.BatchNormalization(), layers.MaxPooling2D(), layers.SeparableConv2D(6, 3),
        layers.LayerNormalization(), layers.Flatten(), layers.Dense(8, activation="gelu"),
        layers.Dense(2, activation="softmax"),
    ]))  # fmt: skip
    pictures.compile(optimizers.Adam(1e-2), "sparse_categorical_crossentropy", metrics=["accuracy"])
    x = rng.standard_normal((32, 12, 12, 1)).astype("float32")
    y = (x.mean((1, 2, 3)) > 0).astype("int64")
    found: Found = {"pictures": history(pictures, x, y), "classes": pictures.predict(x, verbose=0)}
    pictures.save(folder / "model.keras")
    found["again"] = models.load_model(folder / "model.keras").predict(x, verbose=0)

    read = layers.Input((7,))
    vectors = layers.Embedding(20, 8)(read)
    passed = layers.GRU(5)(layers.Bidirectional(layers.LSTM(6, return_sequences=True))(vectors))
    attended = layers.GlobalAveragePooling1D()(layers.MultiHeadAttention(2, 4)(vectors, vectors))
    words = drawn(Model(read, layers.Dense(3)(layers.Concatenate()([passed, attended]))))
    words.compile(optimizers.RMSprop(1e-2), losses.SparseCategoricalCrossentropy(from_logits=True))
    found["words"] = history(words, rng.integers(0, 20, (32, 7)), rng.integers(0, 3, 32))

    t = ops.convert_to_tensor(rng.standard_normal((32, 5)).astype("float32"))
    return found | {
        "softmax": ops.softmax(t), "products": ops.einsum("ij,kj->ik", t, t), "most": ops.top_k(t, 2)[0],
        "sums": ops.segment_sum(t, ops.convert_to_tensor(np.arange(32) // 8), 4), "triangle": ops.qr(t)[1],
        "resized": ops.image.resize(ops.reshape(t, (1, 8, 20, 1)), (4, 9)), "waves": ops.rfft(t)[0],
        "rows": ops.vectorized_map(ops.sum, t),
    }  # fmt: skip
