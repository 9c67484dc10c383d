"""The parts of ``phase``: the cut network, keys, decoys, the device and the cloud, the training game."""
