"""Records of each kind as float32 in [0, 1], and back."""
