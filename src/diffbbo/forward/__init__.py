"""Forward models, score given design: where they climb and leap to is proposed, too (proposers.py).

Rows come in the unit scale of `variation.scaled`: numbers from 0 to 1, letters and categories as their index.
"""
