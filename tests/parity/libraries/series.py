"""Programs over libraries of series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, numbers


def pytorch_forecasting(torch: Any, folder: Path) -> Found:
    """Data of series, a fusion transformer's forward and backward, and N-BEATS."""
    import numpy as np
    import pandas as pd
    from pytorch_forecasting import NBeats, TemporalFusionTransformer, TimeSeriesDataSet
    from pytorch_forecasting.metrics import MAE, SMAPE, QuantileLoss

    frame = pd.DataFrame(
        {"t": np.tile(np.arange(20), 2), "g": ["a"] * 20 + ["b"] * 20, "v": np.sin(np.arange(40.0))}
    )
    data = TimeSeriesDataSet(
        frame,
        time_idx="t",
        target="v",
        group_ids=["g"],
        max_encoder_length=6,
        max_prediction_length=2,
        time_varying_unknown_reals=["v"],
    )
    x, y = next(iter(data.to_dataloader(train=False, batch_size=4)))
    found: Found = {}
    for name, model in {
        "tft": TemporalFusionTransformer.from_dataset(
            data, hidden_size=8, attention_head_size=2, hidden_continuous_size=4, loss=QuantileLoss()
        ),
        "nbeats": NBeats.from_dataset(data, widths=[8, 8], backcast_loss_ratio=0.1),
    }.items():
        filled(torch, model).eval()
        made = model(x)["prediction"]
        loss = model.loss(made, y) if name == "tft" else MAE()(made, y)
        loss.backward()
        found |= {
            name: made,
            f"{name} loss": loss,
            f"{name} gradients": torch.cat(
                [p.grad.flatten() for p in model.parameters() if p.grad is not None]
            ),
        }
    found["smape"] = SMAPE()(numbers(torch, 3, 2).abs(), numbers(torch, 3, 2, seed=1).abs())
    return found


def darts(torch: Any, folder: Path) -> Found:
    """A forecast by a network of blocks."""
    import numpy as np
    from darts import TimeSeries
    from darts.models import NBEATSModel, TCNModel

    series = TimeSeries.from_values(np.sin(np.arange(60.0)).astype(np.float32))
    found: Found = {}
    for kind, options in (
        (NBEATSModel, {"num_stacks": 1, "num_blocks": 1, "num_layers": 1, "layer_widths": 8}),
        (TCNModel, {}),
    ):
        model = kind(
            8,
            2,
            n_epochs=2,
            random_state=0,
            pl_trainer_kwargs={"accelerator": "cpu", "enable_progress_bar": False, "logger": False},
            **options,
        )
        model.fit(series)
        found[kind.__name__] = bool(np.isfinite(model.predict(3).values()).all())
    return found


def gluonts(torch: Any, folder: Path) -> Found:
    """Estimators of its package of networks: trained, forecasts, predictors' files."""
    import numpy as np
    import pandas as pd
    from gluonts.dataset.pandas import PandasDataset
    from gluonts.model.predictor import Predictor
    from gluonts.torch import (
        DeepAREstimator,
        DLinearEstimator,
        PatchTSTEstimator,
        SimpleFeedForwardEstimator,
        TemporalFusionTransformerEstimator,
        WaveNetEstimator,
    )

    frame = pd.DataFrame(
        {"target": np.sin(np.arange(120.0) / 5).astype("float32")},
        index=pd.period_range("2020-01-01", periods=120, freq="h"),
    )
    data = PandasDataset(frame)
    options = {"max_epochs": 1, "accelerator": "cpu", "enable_progress_bar": False, "logger": False}
    found: Found = {}
    for kind, more in (
        (SimpleFeedForwardEstimator, {"hidden_dimensions": [8]}),
        (DeepAREstimator, {"freq": "h", "hidden_size": 8, "num_layers": 1}),
        (DLinearEstimator, {"hidden_dimension": 8}),
        (PatchTSTEstimator, {"patch_len": 4, "d_model": 8, "nhead": 2, "dim_feedforward": 8}),
        (TemporalFusionTransformerEstimator, {"freq": "h", "hidden_dim": 8, "num_heads": 2}),
        (
            WaveNetEstimator,
            {
                "freq": "h",
                "num_residual_channels": 4,
                "num_skip_channels": 4,
                "embedding_dimension": 3,
                "seasonality": 4,
                "num_parallel_samples": 5,
            },
        ),
    ):
        context = {} if kind is WaveNetEstimator else {"context_length": 12}
        predictor = kind(
            prediction_length=4,
            batch_size=8,
            num_batches_per_epoch=2,
            trainer_kwargs=options,
            **context,
            **more,
        ).train(data)
        forecast = next(iter(predictor.predict(data)))
        place = folder / kind.__name__
        place.mkdir()
        predictor.serialize(place)
        again = next(iter(Predictor.deserialize(place).predict(data)))
        found[kind.__name__] = [
            type(forecast).__name__,
            list(np.asarray(forecast.mean).shape),
            bool(np.isfinite(again.mean).all()),
        ]
    return found


def chronos(torch: Any, folder: Path) -> Found:
    """Series as words: a small random model's quantiles, embeddings, and the files of its pipeline."""
    from chronos import ChronosBoltPipeline, ChronosConfig
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    series = numbers(torch, 2, 40, dtype=torch.float32).cumsum(1)
    words = ChronosConfig(
        tokenizer_class="MeanScaleUniformBins", tokenizer_kwargs={"low_limit": -15.0, "high_limit": 15.0},
        context_length=32, prediction_length=4, n_tokens=64, n_special_tokens=2, pad_token_id=0, eos_token_id=1,
        use_eos_token=True, model_type="seq2seq", num_samples=3, temperature=1.0, top_k=10, top_p=1.0,
    )  # fmt: skip
    tokens, attention, scale = words.create_tokenizer().context_input_transform(series)
    bolt = {
        "context_length": 32, "prediction_length": 8, "input_patch_size": 4, "input_patch_stride": 4,
        "quantiles": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], "use_reg_token": True,
    }  # fmt: skip
    shape = T5Config(
        vocab_size=2, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, dropout_rate=0.0,
        pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, chronos_config=bolt,
    )  # fmt: skip
    model = filled(torch, ChronosBoltModelForForecasting(shape))
    loss = model(context=series, target=numbers(torch, 2, 8, seed=1, dtype=torch.float32)).loss
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    pipeline = ChronosBoltPipeline(model.eval())
    quantiles, mean = pipeline.predict_quantiles(series, prediction_length=6, quantile_levels=[0.1, 0.5])
    model.save_pretrained(folder / "bolt")
    again = ChronosBoltPipeline.from_pretrained(folder / "bolt")
    return {
        "words": [tokens, attention, scale],
        "loss": loss,
        "gradients": gradients,
        "quantiles": quantiles,
        "mean": mean,
        "embedded": pipeline.embed(series)[0],
        "again": again.predict(series, prediction_length=6),
    }
