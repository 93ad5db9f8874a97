"""Gaussian processes for every rival that uses one: which rows they see, kernels, posterior, search for a batch.

**Large data.** An exact GP costs n^3, so all GP methods share one policy, and call themselves subset GPs: of more
than `rows` measured designs (500 on a CPU, 4,000 on a GPU, a setting) the model sees the best half and a seeded
sample of the others (`choose_rows`). Which ones is in the batch's info under "gp_rows". Hyperparameters are fitted
to a quarter of those rows first and to all of them from there: a warm start that hangs on the told rows alone, so
that replaying the tells restores every ask.

Neither torch nor BoTorch is loaded before the first fit: `model.py` and `search.py` are imported where they are used.
"""

from .method import GPMethod
from .rows import choose_rows

__all__ = ["GPMethod", "choose_rows"]
