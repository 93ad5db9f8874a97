"""The conditional diffusion ensemble: tensors only, it knows nothing of spaces, tasks or databases."""

import os

# Threads that wait for each other in a busy loop starve whoever shares the cores (docs/decisions.md has the figures).
# torch's OpenMP reads this when torch is first imported; a user's own setting wins.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
