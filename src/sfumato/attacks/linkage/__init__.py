"""Linkage: which records of two releases belong to one person?"""
