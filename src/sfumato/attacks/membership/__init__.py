"""Membership inference: was this record among the owner's?"""
