"""Forward models, score given design: the judges of what the inverse model and variation propose.

Rows come in the unit scale of `variation.scaled`: numbers from 0 to 1, letters and categories as their index.
"""
