"""Programs over libraries of models of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, learned, numbers


def segmentation_models(torch: Any, folder: Path) -> Found:
    """A U-Net and its losses and scores."""
    import segmentation_models_pytorch as s

    found = {}
    for name in ("Unet", "FPN", "DeepLabV3Plus", "Linknet", "PSPNet", "UnetPlusPlus", "MAnet", "Segformer"):
        torch.manual_seed(0)
        model = getattr(s, name)("resnet18", encoder_weights=None, in_channels=3, classes=2)
        made = learned(torch, model, numbers(torch, 1, 3, 64, 64))
        found |= {
            f"{name} result": made["result"],
            f"{name} gradients": made["gradients"],
            name: made["keys"],
        }
    scores, truth = numbers(torch, 2, 1, 8, 8), (numbers(torch, 2, 1, 8, 8, seed=3) > 0).long()
    for name in ("DiceLoss", "JaccardLoss", "LovaszLoss", "FocalLoss", "TverskyLoss"):
        found[name] = getattr(s.losses, name)("binary")(scores.float(), truth)
    counts = s.metrics.get_stats(scores.sigmoid(), truth, mode="binary", threshold=0.5)
    found["iou"] = s.metrics.iou_score(*counts, reduction="micro")
    return found


def open_clip(torch: Any, folder: Path) -> Found:
    """A small CLIP, its loss, and words as numbers."""
    import open_clip

    torch.manual_seed(0)
    model = open_clip.CLIP(
        16,
        {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 16},
        {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
    ).double()
    filled(torch, model)
    words = open_clip.get_tokenizer("ViT-B-32", context_length=16)(["a dog", "two cats on a mat"])
    image, text, scale = model(numbers(torch, 2, 3, 32, 32), words)
    loss = open_clip.ClipLoss()(image, text, scale)
    loss.backward()
    return {
        "image": image,
        "text": text,
        "loss": loss,
        "words": words.tolist(),
        "gradients": [p.grad for p in model.parameters() if p.grad is not None],
    }


def vit_pytorch(torch: Any, folder: Path) -> Found:
    """Several of its models."""
    from vit_pytorch import SimpleViT, ViT
    from vit_pytorch.cait import CaiT
    from vit_pytorch.cct import CCT
    from vit_pytorch.deepvit import DeepViT
    from vit_pytorch.max_vit import MaxViT
    from vit_pytorch.t2t import T2TViT

    sizes: dict[str, Any] = {
        "image_size": 32,
        "patch_size": 8,
        "num_classes": 5,
        "dim": 16,
        "heads": 2,
        "mlp_dim": 32,
    }
    models = {
        "vit": ViT(**sizes, depth=2),
        "simple": SimpleViT(**sizes, depth=2),
        "deep": DeepViT(**sizes, depth=2),
        "cait": CaiT(**sizes, depth=2, cls_depth=1),
        "cct": CCT(
            img_size=32,
            embedding_dim=16,
            n_conv_layers=1,
            num_layers=2,
            num_heads=2,
            mlp_ratio=2.0,
            num_classes=5,
            positional_embedding="learnable",
        ),
        "t2t": T2TViT(
            dim=16, image_size=32, depth=1, heads=2, mlp_dim=32, num_classes=5, t2t_layers=((7, 4), (3, 2))
        ),
        "max": MaxViT(num_classes=5, dim=8, dim_head=4, depth=(1,), window_size=4),
    }
    found = {}
    for name, model in models.items():
        made = learned(torch, model, numbers(torch, 2, 3, 32, 32))
        found |= {f"{name} {key}": value for key, value in made.items() if key != "after"}
    return found


def lpips(torch: Any, folder: Path) -> Found:
    """The distance of two pictures by a network of its own."""
    import lpips

    found = {}
    for name in ("alex", "vgg", "squeeze"):
        model = lpips.LPIPS(net=name, pretrained=False, pnet_rand=True, verbose=False).double()
        a = numbers(torch, 1, 3, 64, 64).tanh()
        filled(torch, model)
        found[name] = model(a, a.flip(-1))
    return found


def monai(torch: Any, folder: Path) -> Found:
    """Transforms of volumes, a U-Net, losses, scores, and inference by windows."""
    import numpy as np
    from monai.data import Dataset, decollate_batch
    from monai.inferers import sliding_window_inference
    from monai.losses import DiceCELoss, DiceLoss, FocalLoss
    from monai.metrics import DiceMetric, HausdorffDistanceMetric
    from monai.networks.nets import UNETR, BasicUNet, DenseNet121, SegResNet, UNet
    from monai.transforms import AsDiscrete, Compose, EnsureTyped, Rotate90d, ScaleIntensityd, Spacing

    volume = np.random.default_rng(0).standard_normal((1, 16, 16, 16)).astype(np.float32)
    way = Compose([ScaleIntensityd("image"), Rotate90d("image"), EnsureTyped("image")])
    loader = torch.utils.data.DataLoader(Dataset([{"image": volume}] * 2, way), batch_size=2)
    batch = next(iter(loader))["image"]
    model = filled(torch, UNet(3, 1, 2, channels=(4, 8), strides=(2,), num_res_units=1, norm="instance"))
    scores = model(batch)
    truth = torch.as_tensor(np.random.default_rng(1).integers(0, 2, (2, 1, 16, 16, 16)))
    loss = DiceCELoss(to_onehot_y=True, softmax=True)(scores, truth)
    loss.backward()
    windows = sliding_window_inference(batch, 8, 2, model, overlap=0.25, mode="gaussian")
    both = Compose([AsDiscrete(argmax=True, to_onehot=2)])
    parts = [both(i) for i in decollate_batch(scores)]
    truths = [AsDiscrete(to_onehot=2)(i) for i in decollate_batch(truth)]
    dice, hausdorff = DiceMetric(include_background=False), HausdorffDistanceMetric(percentile=95)
    dice(parts, truths)
    hausdorff(parts, truths)
    found: Found = {
        "batch": torch.as_tensor(batch),
        "scores": torch.as_tensor(scores),
        "loss": torch.as_tensor(loss),
        "gradients": [p.grad for p in model.parameters() if p.dim() > 1],
        "windows": torch.as_tensor(windows),
        "dice": torch.as_tensor(dice.aggregate()),
        "hausdorff": torch.as_tensor(hausdorff.aggregate()),
        "focal": FocalLoss(to_onehot_y=True)(torch.as_tensor(scores), truth),
        "plain": DiceLoss(sigmoid=True)(torch.as_tensor(scores)[:, :1], truth),
        "spacing": torch.as_tensor(Spacing(pixdim=(2.0, 2.0, 2.0))(volume)),
    }
    x = numbers(torch, 1, 1, 32, 32, 32)
    for net in (
        BasicUNet(3, 1, 2, features=(4, 4, 8, 8, 8, 4)),
        SegResNet(3, init_filters=8, in_channels=1, out_channels=2, blocks_down=(1, 1), blocks_up=(1,)),
        UNETR(1, 2, (32, 32, 32), 4, 16, 32, 2),
        DenseNet121(3, 1, 2, init_features=8, growth_rate=4, block_config=(1, 1)),
    ):
        found[type(net).__name__] = filled(torch, net.double()).eval()(x)
    return found


def ultralytics(torch: Any, folder: Path) -> Found:
    """A small detector of its own: forward, loss, boxes kept, and its file."""
    from ultralytics.nn.tasks import DetectionModel, SegmentationModel
    from ultralytics.utils import ops
    from ultralytics.utils.loss import BboxLoss  # noqa: F401
    from ultralytics.utils.metrics import bbox_iou

    found: Found = {}
    for kind, file in (
        (DetectionModel, "yolov8n.yaml"),
        (SegmentationModel, "yolov8n-seg.yaml"),
        (DetectionModel, "yolo11n.yaml"),
    ):
        torch.manual_seed(0)
        model = filled(torch, kind(file, ch=3, nc=3, verbose=False)).eval()
        result = model(numbers(torch, 1, 3, 64, 64, dtype=torch.float32))
        result = result[0]
        found[file] = result[0] if isinstance(result, tuple) else result
        found[f"{file} keys"] = list(model.state_dict())
    boxes = numbers(torch, 6, 2).abs()
    boxes = torch.cat([boxes, boxes + 1], 1)
    found["iou"] = bbox_iou(boxes[:1], boxes, xywh=False, CIoU=True)
    found["xywh"] = ops.xyxy2xywh(boxes)
    return found


def timm_training(torch: Any, folder: Path) -> Found:
    """timm's schedulers, optimizers, mixing, averages and losses."""
    import timm
    from timm.data import Mixup
    from timm.loss import AsymmetricLossMultiLabel, LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
    from timm.optim import create_optimizer_v2
    from timm.scheduler import CosineLRScheduler
    from timm.utils import ModelEmaV3, accuracy

    from libraries.common import network, steps, table

    found: Found = {}
    for name in [
        "adamw",
        "lamb",
        "lars",
        "adafactor",
        "nadamw",
        "lion",
        "adopt",
        "sgdp",
        "adabelief",
        "radabelief",
        "madgrad",
        "rmsproptf",
    ]:
        model = network(torch, 8)
        optimizer = create_optimizer_v2(model, opt=name, lr=1e-2, weight_decay=0.01)
        schedule = CosineLRScheduler(optimizer, t_initial=5, warmup_t=2, warmup_lr_init=1e-4)
        average = ModelEmaV3(model, decay=0.9)
        found[name] = []
        for i in range(4):
            found[name] += steps(torch, model, optimizer, 1)
            schedule.step(i + 1)
            average.update(model)
        found[f"{name} average"] = list(average.module.parameters())
    x, y = table(torch)
    scores = network(torch, 8)(x)
    found["smooth"] = LabelSmoothingCrossEntropy(0.1)(scores, y)
    soft = torch.nn.functional.one_hot(y, 3).double()
    found["soft"] = SoftTargetCrossEntropy()(scores, soft)
    found["asymmetric"] = AsymmetricLossMultiLabel()(scores, soft)
    found["right"] = accuracy(scores, y, topk=(1, 2))
    mixed, targets = Mixup(mixup_alpha=0.2, num_classes=3, prob=0.0)(
        numbers(torch, 4, 3, 8, 8), torch.tensor([0, 1, 2, 0])
    )
    found["mixed"] = [mixed, targets]
    found["features"] = timm.create_model("resnet18", features_only=True).feature_info.channels()
    return found


def lightly(torch: Any, folder: Path) -> Found:
    """Losses and heads of learning without labels."""
    from lightly import loss, models

    found: Found = {}
    a, b = numbers(torch, 6, 8, dtype=torch.float32), numbers(torch, 6, 8, seed=1, dtype=torch.float32)
    for name, make in {
        "ntx": loss.NTXentLoss(),
        "barlow": loss.BarlowTwinsLoss(),
        "vicreg": loss.VICRegLoss(),
        "cosine": loss.NegativeCosineSimilarity(),
        "dcl": loss.DCLLoss(),
        "tico": loss.TiCoLoss(),
    }.items():
        x = a.clone().requires_grad_()
        value = make(x, b)
        value.backward()
        found |= {name: value, f"{name} gradient": x.grad}
    for name in (
        "SimCLRProjectionHead",
        "BYOLPredictionHead",
        "SimSiamPredictionHead",
        "SwaVProjectionHead",
        "BarlowTwinsProjectionHead",
    ):
        head = filled(torch, getattr(models.modules.heads, name)(8, 12, 6)).eval()
        found[name] = head(a)
    found["dino"] = loss.DINOLoss(output_dim=8)([a, b], [a, b, a], epoch=1)
    return found


def diffusers(torch: Any, folder: Path) -> Found:
    """Networks, schedules and pipelines of diffusion."""
    import diffusers as d

    found: Found = {}
    torch.manual_seed(0)
    unet = filled(
        torch,
        d.UNet2DModel(
            sample_size=8,
            in_channels=3,
            out_channels=3,
            block_out_channels=(8, 16),
            layers_per_block=1,
            norm_num_groups=4,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=4,
        ),
    ).eval()
    x = numbers(torch, 2, 3, 8, 8, dtype=torch.float32)
    out = unet(x, 5).sample
    out.pow(2).mean().backward()
    found |= {"unet": out, "gradients": [p.grad for p in unet.parameters() if p.grad is not None][:6]}
    for name in (
        "DDPMScheduler",
        "DDIMScheduler",
        "PNDMScheduler",
        "EulerDiscreteScheduler",
        "EulerAncestralDiscreteScheduler",
        "DPMSolverMultistepScheduler",
        "DPMSolverSinglestepScheduler",
        "HeunDiscreteScheduler",
        "LMSDiscreteScheduler",
        "UniPCMultistepScheduler",
        "KDPM2DiscreteScheduler",
        "DEISMultistepScheduler",
        "LCMScheduler",
        "FlowMatchEulerDiscreteScheduler",
        "EDMEulerScheduler",
    ):
        scheduler = getattr(d, name)()
        scheduler.set_timesteps(4)
        sample = numbers(torch, 1, 3, 4, 4, dtype=torch.float32)
        random = torch.Generator().manual_seed(0)
        for step in scheduler.timesteps:
            model_input = (
                scheduler.scale_model_input(sample, step)
                if hasattr(scheduler, "scale_model_input")
                else sample
            )
            given = {"generator": random} if "generator" in scheduler.step.__code__.co_varnames else {}
            sample = scheduler.step(model_input * 0.1, step, sample, **given).prev_sample
        found[name] = (
            list(sample.shape)
            if name
            in ("DDPMScheduler", "EulerAncestralDiscreteScheduler", "LCMScheduler", "KDPM2DiscreteScheduler")
            else sample
        )
    vae = filled(
        torch,
        d.AutoencoderKL(
            block_out_channels=(8, 16),
            norm_num_groups=4,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            latent_channels=4,
            sample_size=16,
        ),
    ).eval()
    picture = numbers(torch, 1, 3, 16, 16, dtype=torch.float32)
    latent = vae.encode(picture).latent_dist
    found |= {"latent": latent.mean, "kl": latent.kl(), "decoded": vae.decode(latent.mode()).sample}
    conditioned = filled(
        torch,
        d.UNet2DConditionModel(
            sample_size=8,
            block_out_channels=(8, 16),
            layers_per_block=1,
            norm_num_groups=4,
            cross_attention_dim=12,
            attention_head_dim=4,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        ),
    ).eval()
    found["conditioned"] = conditioned(
        numbers(torch, 1, 4, 8, 8, dtype=torch.float32), 3, numbers(torch, 1, 5, 12, dtype=torch.float32)
    ).sample
    dit = filled(
        torch,
        d.DiTTransformer2DModel(
            num_attention_heads=2,
            attention_head_dim=8,
            in_channels=4,
            num_layers=1,
            sample_size=8,
            num_embeds_ada_norm=10,
            norm_num_groups=1,
        ),
    ).eval()
    dit.transformer_blocks[0].norm1.emb.class_embedder.embedding_table.weight.detach().copy_(
        numbers(torch, 11, 16)
    )
    found["dit"] = dit(
        numbers(torch, 1, 4, 8, 8, dtype=torch.float32), torch.tensor([3]), class_labels=torch.tensor([1])
    ).sample
    pipe = d.DDIMPipeline(unet=unet, scheduler=d.DDIMScheduler())
    pipe.set_progress_bar_config(disable=True)
    found["pipeline"] = list(
        pipe(
            batch_size=1, num_inference_steps=3, output_type="np", generator=torch.Generator().manual_seed(0)
        ).images.shape
    )
    pipe.save_pretrained(folder / "pipe")
    again = d.DDIMPipeline.from_pretrained(folder / "pipe")
    found["again"] = again.unet(x, 5).sample
    ema = d.training_utils.EMAModel(unet.parameters(), decay=0.9)
    ema.step(unet.parameters())
    return found


def torchvision_parts(torch: Any, folder: Path) -> Found:
    """Transforms, boxes, features of inner layers, and models of pixels."""
    import torchvision as v
    from torchvision import tv_tensors
    from torchvision.models import feature_extraction as f
    from torchvision.transforms import v2

    found: Found = {}
    x = numbers(torch, 3, 20, 24, dtype=torch.float32).sigmoid()
    u = (x * 255).to(torch.uint8)
    for name, change in {
        "resize": v2.Resize((10, 12)),
        "crop": v2.CenterCrop(8),
        "pad": v2.Pad(3, padding_mode="reflect"),
        "gray": v2.Grayscale(3),
        "blur": v2.GaussianBlur(5, (1.0, 1.0)),
        "flip": v2.RandomHorizontalFlip(1.0),
        "invert": v2.RandomInvert(1.0),
        "poster": v2.RandomPosterize(3, 1.0),
        "solar": v2.RandomSolarize(0.5, 1.0),
        "sharp": v2.RandomAdjustSharpness(2.0, 1.0),
        "contrast": v2.RandomAutocontrast(1.0),
        "equal": v2.RandomEqualize(1.0),
        "five": v2.FiveCrop(6),
        "normal": v2.Normalize([0.5] * 3, [0.2] * 3),
    }.items():
        for kind, picture in (("float", x), ("uint8", u)):
            if (name, kind) not in (("normal", "uint8"), ("poster", "float"), ("equal", "float")):
                made = change(picture)
                found[f"{name} {kind}"] = list(made) if isinstance(made, tuple) else made
    g = v2.functional
    found |= {
        "affine": g.affine(x, 20.0, [2, 3], 1.2, [5.0, 3.0]),
        "rotate": g.rotate(x, 30.0, interpolation=v2.InterpolationMode.BILINEAR, expand=True),
        "perspective": g.perspective(
            x, [[0, 0], [23, 0], [23, 19], [0, 19]], [[2, 1], [20, 3], [22, 18], [1, 17]]
        ),
        "hue": g.adjust_hue(x, 0.2),
        "saturation": g.adjust_saturation(x, 1.5),
        "gamma": g.adjust_gamma(x, 0.7),
        "elastic": g.elastic(x, torch.zeros(1, 20, 24, 2)),
    }
    boxes = tv_tensors.BoundingBoxes([[1, 2, 8, 9], [3, 3, 20, 15]], format="XYXY", canvas_size=(20, 24))
    mask = tv_tensors.Mask(torch.ones(2, 20, 24, dtype=torch.uint8))
    image, at, over = v2.Compose(
        [v2.Resize((40, 48)), v2.RandomHorizontalFlip(1.0), v2.ConvertBoundingBoxFormat("CXCYWH")]
    )(tv_tensors.Image(u), boxes, mask)
    found |= {
        "image": image,
        "at": torch.as_tensor(at),
        "over": over,
        "kinds": [type(i).__name__ for i in (image, at, over)],
    }
    torch.manual_seed(0)
    found["shapes"] = [
        list(t(u).shape)
        for t in (
            v2.RandomResizedCrop(9),
            v2.RandAugment(),
            v2.TrivialAugmentWide(),
            v2.AugMix(),
            v2.ColorJitter(0.2, 0.2, 0.2, 0.1),
            v2.RandomErasing(1.0),
            v2.RandomAffine(20.0),
            v2.RandomPerspective(0.3, 1.0),
        )
    ]
    mixed = v2.MixUp(num_classes=3)(torch.stack([x, x]), torch.tensor([0, 2]))
    found["mixed"] = [list(i.shape) for i in mixed]
    a, b = boxes.float()[:, :4], torch.tensor([[0.0, 0, 10, 10], [5, 5, 25, 14]])
    o = v.ops
    found["iou"] = [
        o.box_iou(a, b),
        o.generalized_box_iou(a, b),
        o.distance_box_iou(a, b),
        o.complete_box_iou(a, b),
        o.box_convert(b, "xyxy", "cxcywh"),
        o.clip_boxes_to_image(b, (8, 8)),
        o.masks_to_boxes(torch.ones(1, 4, 5)),
    ]
    scores = numbers(torch, 2, 4)
    found["losses"] = [
        o.sigmoid_focal_loss(scores, torch.ones(2, 4).double(), reduction="mean"),
        o.giou_loss_(a, b) if hasattr(o, "giou_loss_") else o.generalized_box_iou_loss(a, b, reduction="sum"),
        o.distance_box_iou_loss(a, b),
        o.complete_box_iou_loss(a, b),
    ]
    net = filled(torch, v.models.resnet18(num_classes=4).double()).eval()
    picture = numbers(torch, 1, 3, 40, 40)
    inner = f.create_feature_extractor(net, {"layer1.1.relu_1": "a", "layer3": "b"})
    found |= {
        "nodes": f.get_graph_node_names(net)[1],
        "inner": list(inner(picture).values()),
        "inner keys": list(inner.state_dict()),
    }
    pyramid = filled(torch, o.FeaturePyramidNetwork([64, 256], 8).double())
    found["pyramid"] = list(pyramid(inner(picture)).values())
    for name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"):
        model = filled(
            torch,
            getattr(v.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=3).double(),
        ).eval()
        made = model(picture)["out"]
        made.pow(2).mean().backward()
        found[name] = [made, next(p.grad for p in model.parameters())]
    for name, shape in (("r3d_18", (1, 3, 4, 24, 24)), ("mc3_18", (1, 3, 4, 24, 24))):
        found[name] = filled(torch, getattr(v.models.video, name)(num_classes=3).double()).eval()(
            numbers(torch, *shape)
        )
    found["grid"] = v.utils.make_grid([x, x], nrow=2, normalize=True)
    found["drawn"] = v.utils.draw_bounding_boxes(u, b)
    return found
