"""The parts of ``ars``: what is published, what a party does to its records, the hardening, the training stages."""
