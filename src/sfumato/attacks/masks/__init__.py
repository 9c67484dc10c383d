"""Attacks on representations that parties share under secret masks (``ars``)."""
