"""``filter``: a generative filter on the latent of a fixed autoencoder."""
