"""Programs over libraries that look for inputs which mislead a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, numbers


def _classifier(torch: Any) -> tuple[Any, Any, Any]:
    """A network of small pictures, pictures between 0 and 1, their classes."""
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 4)
    )
    filled(torch, net).eval()
    x = numbers(torch, 4, 3, 8, 8, dtype=torch.float32).sigmoid()
    return net, x, net(x).argmax(1)


def torchattacks(torch: Any, folder: Path) -> Found:
    """Its attacks that draw no numbers, with their results; others are run."""
    import torchattacks as a

    net, x, y = _classifier(torch)
    found: Found = {}
    for attack in (
        a.FGSM(net, eps=0.03),
        a.BIM(net, steps=3),
        a.PGD(net, steps=3, random_start=False),
        a.MIFGSM(net, steps=3),
        a.NIFGSM(net, steps=3),
        a.SINIFGSM(net, steps=2),
        a.CW(net, steps=5),
        a.DeepFool(net, steps=3),
        a.PGDL2(net, steps=3, random_start=False),
        a.UPGD(net, steps=2, random_start=False),
        a.DIFGSM(net, steps=2, diversity_prob=0.0),
        a.EADL1(net, max_iterations=10, binary_search_steps=2),
        a.VANILA(net),
    ):
        found[type(attack).__name__] = attack(x, y)
        found[f"{type(attack).__name__} text"] = str(attack)
    for attack in (
        a.FFGSM(net),
        a.TIFGSM(net, steps=2),
        a.RFGSM(net, steps=2),
        a.EOTPGD(net, steps=2),
        a.TPGD(net, steps=2),
        a.VMIFGSM(net, steps=2, N=2),
        a.APGD(net, steps=3),
        a.APGDT(net, steps=3, n_classes=4),
        a.FAB(net, steps=3, n_classes=4),
        a.Square(net, n_queries=10),
        a.OnePixel(net, steps=2, popsize=4),
        a.Pixle(net, max_iterations=3),
        a.SparseFool(net, steps=2),
        a.JSMA(net, gamma=0.1),
        a.Jitter(net, steps=2),
        a.PIFGSM(net, num_iter_set=2),
        a.GN(net),
        a.SPSA(net, nb_iter=1, nb_sample=4),
        a.PGDRS(net, steps=2),
        a.AutoAttack(net, n_classes=4),
    ):
        misled = attack(x, y)
        found[type(attack).__name__] = [
            list(misled.shape),
            bool(misled.isfinite().all()),
            bool((misled >= 0).all()),
        ]
    targeted = a.PGD(net, steps=3, random_start=False)
    targeted.set_mode_targeted_by_label()
    found["targeted"] = targeted(x, (y + 1) % 4)
    return found


def foolbox(torch: Any, folder: Path) -> Found:
    """Its attacks over eagerpy, at several sizes."""
    import foolbox as fb

    net, x, y = _classifier(torch)
    model = fb.PyTorchModel(net, bounds=(0, 1), device="cpu")
    found: Found = {"right": float(fb.accuracy(model, x, y))}
    for attack in (
        fb.attacks.FGSM(),
        fb.attacks.FGM(),
        fb.attacks.L2BasicIterativeAttack(steps=3, random_start=False),
        fb.attacks.LinfPGD(steps=3, random_start=False),
        fb.attacks.LinfDeepFoolAttack(steps=3),
        fb.attacks.L2DeepFoolAttack(steps=3),
        fb.attacks.L2CarliniWagnerAttack(binary_search_steps=1, steps=4),
        fb.attacks.DDNAttack(steps=4),
        fb.attacks.EADAttack(binary_search_steps=1, steps=4),
        fb.attacks.NewtonFoolAttack(steps=3),
        fb.attacks.L2ContrastReductionAttack(),
        fb.attacks.L2FMNAttack(steps=3),
    ):
        raw, clipped, success = attack(model, x, fb.criteria.Misclassification(y), epsilons=[0.02, 0.5])
        found[type(attack).__name__] = [*raw, *clipped, success]
    for attack in (fb.attacks.L2AdditiveGaussianNoiseAttack(), fb.attacks.SaltAndPepperNoiseAttack(steps=10)):
        _, clipped, _ = attack(model, x, y, epsilons=[0.5])
        found[type(attack).__name__] = [list(clipped[0].shape)]
    return found
