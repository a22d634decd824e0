"""Programs over libraries of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, numbers, table


def pytorch_tabnet(torch: Any, folder: Path) -> Found:
    """A classifier of tables, which tables explain it, and its file."""
    import numpy as np
    from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor
    from pytorch_tabnet.tab_network import TabNet

    x, y = (np.asarray(t) for t in table(torch, dtype=torch.float32))
    model = TabNetClassifier(n_d=4, n_a=4, n_steps=2, verbose=0, seed=0)
    model.fit(x, y, eval_set=[(x, y)], max_epochs=2, batch_size=16, virtual_batch_size=8)
    path = model.save_model(str(folder / "net"))
    again = TabNetClassifier()
    again.load_model(path)
    group = torch.eye(6)
    net = filled(torch, TabNet(6, 3, n_d=4, n_a=4, n_steps=2, group_attention_matrix=group)).eval()
    scores, loss = net(torch.from_numpy(x))
    scores.sum().backward()
    del TabNetRegressor
    return {
        "same": bool(np.allclose(model.predict_proba(x), again.predict_proba(x), atol=1e-6)),
        "scores": scores,
        "loss": loss,
        "gradients": [p.grad for p in net.parameters() if p.grad is not None],
        "importance": list(model.feature_importances_.shape),
    }


def rtdl(torch: Any, folder: Path) -> Found:
    """Networks of tables: perceptrons, residual ones, transformers over features; embeddings of numbers."""
    import rtdl as r
    import rtdl_num_embeddings as e

    x, _ = table(torch)
    codes = torch.arange(80).reshape(40, 2) % 3
    found: Found = {}
    for name, net, inputs in (
        ("mlp", r.MLP.make_baseline(d_in=6, d_layers=[8, 8], dropout=0.1, d_out=3), (x,)),
        (
            "resnet",
            r.ResNet.make_baseline(
                d_in=6, n_blocks=2, d_main=8, d_hidden=8, dropout_first=0.1, dropout_second=0.0, d_out=3
            ),
            (x,),
        ),
        (
            "transformer",
            r.FTTransformer.make_default(
                n_num_features=6, cat_cardinalities=[3, 3], n_blocks=1, last_layer_query_idx=[-1], d_out=3
            ),
            (x, codes),
        ),
    ):
        filled(torch, net.double()).eval()
        result = net(*inputs)
        result.pow(2).mean().backward()
        found |= {name: result, f"{name} gradients": [p.grad for p in net.parameters() if p.grad is not None]}
        found[f"{name} text"] = repr(net)
    bins = e.compute_bins(x.float(), n_bins=4)
    for name, part in (
        ("linear", e.LinearReLUEmbeddings(6, 4)),
        ("periodic", e.PeriodicEmbeddings(6, 4, lite=False)),
        ("piecewise", e.PiecewiseLinearEmbeddings(bins, 4, activation=True, version="B")),
    ):
        found[name] = filled(torch, part)(x.float())
    return found


def deepctr_torch(torch: Any, folder: Path) -> Found:
    """Its models of clicks over sparse, dense and sequence features, fitted, and their files."""
    import numpy as np
    from deepctr_torch import models as m
    from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat, get_feature_names

    r = np.random.RandomState(0)
    columns = [
        SparseFeat("a", 5, 4),
        SparseFeat("b", 3, 4),
        DenseFeat("c", 1),
        VarLenSparseFeat(SparseFeat("d", 6, 4), 3, "mean"),
    ]
    data = {
        "a": r.randint(0, 5, 32),
        "b": r.randint(0, 3, 32),
        "c": r.rand(32),
        "d": r.randint(0, 6, (32, 3)),
    }
    y = r.randint(0, 2, (32, 1)).astype("float32")
    found: Found = {"names": get_feature_names(columns)}
    for name in (
        "DeepFM",
        "WDL",
        "DCN",
        "DCNMix",
        "xDeepFM",
        "AutoInt",
        "NFM",
        "PNN",
        "FiBiNET",
        "IFM",
        "DIFM",
        "MLR",
        "AFN",
        "ONN",
    ):
        if name == "PNN":
            model = m.PNN(columns, dnn_hidden_units=(8,), device="cpu")
        elif name in ("MLR", "AFN"):
            model = getattr(m, name)(*(columns,) * (2 if name == "AFN" else 1), device="cpu")
        else:
            model = getattr(m, name)(columns, columns, dnn_hidden_units=(8,), device="cpu")
        filled(torch, model)
        model.compile("adagrad", "binary_crossentropy", metrics=["binary_crossentropy", "auc"])
        history = model.fit(data, y, batch_size=8, epochs=2, verbose=0, validation_split=0.25, shuffle=False)
        filled(torch, model)
        found[name] = [float(history.history["loss"][-1] > 0), model.predict(data, 16)]
    torch.save(model, folder / "model.pt")
    found["again"] = torch.load(folder / "model.pt", weights_only=False).predict(data, 16)
    return found


def pyod(torch: Any, folder: Path) -> Found:
    """Detectors of outliers that are networks: fitted, and what they say of shapes."""
    import numpy as np
    from pyod.models.alad import ALAD
    from pyod.models.auto_encoder import AutoEncoder
    from pyod.models.deep_svdd import DeepSVDD
    from pyod.models.lunar import LUNAR
    from pyod.models.so_gaal import SO_GAAL
    from pyod.models.vae import VAE

    x = np.asarray(numbers(torch, 60, 6)).astype("float32")
    x[:3] += 6
    found: Found = {}
    for name, detector in {
        "AutoEncoder": AutoEncoder(epoch_num=3, hidden_neuron_list=[8, 4], verbose=0),
        "VAE": VAE(epoch_num=3, encoder_neuron_list=[8, 4], decoder_neuron_list=[4, 8], verbose=0),
        "DeepSVDD": DeepSVDD(n_features=6, epochs=3, hidden_neurons=[8, 4], verbose=0),
        "LUNAR": LUNAR(n_epochs=3, n_neighbours=4),
        "SO_GAAL": SO_GAAL(stop_epochs=1),
        "ALAD": ALAD(epochs=2),
    }.items():
        detector.fit(x)
        scores = detector.decision_function(x)
        found[name] = [list(scores.shape), bool(np.isfinite(scores).all()), int(detector.labels_.sum()) > 0]
    return found
