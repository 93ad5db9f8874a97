"""The conditional diffusion ensemble: tensors only, it knows nothing of spaces, tasks or databases."""
