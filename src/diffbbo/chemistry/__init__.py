"""Molecules: 32 latent numbers -> SMILES (`decoder`), and SMILES -> docking energy (`docking`)."""
