"""Asynchronous training without locks: processes update one network in shared memory, each at its own pace.

python examples/hogwild/main.py --num-processes 2 --epochs 12

After "Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent" (Recht et al., 2011), in the shape
of PyTorch's example mnist_hogwild; the digits are scikit-learn's.
"""

import argparse
import sys

from train import Net, load_digits_sets, test, train

import taeda as torch
import taeda.multiprocessing as mp

REQUIRED_ACCURACY = 0.95


def main() -> int:
    """Train by several processes; the exit status tells whether the network reads digits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--test-batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--num-processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start-method", default="spawn", choices=["spawn", "fork", "forkserver"])
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    context = mp.get_context(args.start_method)
    train_set, test_set = load_digits_sets()
    model = Net()
    model.share_memory()  # gradients are each process's own, parameters are everybody's

    processes = []
    for rank in range(args.num_processes):
        process = context.Process(target=train, args=(rank, args, model, train_set))
        process.start()
        processes.append(process)
    for process in processes:
        process.join()

    accuracy = test(args, model, test_set)
    print(f"{args.num_processes} processes, {args.epochs} epochs each: test accuracy {accuracy:.2%}")
    failed = [process.exitcode for process in processes if process.exitcode]
    return 0 if accuracy >= REQUIRED_ACCURACY and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
