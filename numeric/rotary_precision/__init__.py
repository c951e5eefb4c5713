"""Rotary position encoding in short formats: how far it may be off, and the frequencies it uses.

``bound``        how far rotated vectors, scores and angles may be off, derived
``extraction``   the frequencies that any rotary code rotates by, read off its angles
"""
