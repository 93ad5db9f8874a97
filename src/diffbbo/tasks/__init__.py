"""Problems, one file each; the registry finds them by listing this folder."""
