"""Rivals, one file each; the registry finds them by listing this folder. They never import each other."""
