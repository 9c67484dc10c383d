"""The inside of ``filter``: its two shapes, the budget they keep, and the game that trains them."""
