"""What a program pays for that replaces nothing: public functions do not ask for arguments that answer for them."""

import subprocess
import sys

PROGRAM = """
import taeda as torch
from taeda_tensor_core import _overridable

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 3), torch.ones(4).long()))
for inputs, targets in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.step()
assert not _overridable._asking, "a part has loaded taeda.overrides"
import taeda.overrides
assert _overridable._asking
"""


def test_training_does_not_make_functions_ask_who_answers_for_them():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
