"""Speed, side by side with what a user would do instead: `python -m benchmarks run`, then `draw`.

`samplers.py` and `network.py` run by themselves: what the choices of docs/decisions.md bring in quality.
"""

# Before torch, as in every use of diffbbo: it keeps torch's threads from waiting in a busy loop (docs/decisions.md).
import diffbbo.diffusion  # noqa: F401
