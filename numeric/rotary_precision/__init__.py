"""Rotary position encoding in short formats: its errors, their bounds, and the frequencies it uses.

``formats``      which number is kept in which dtype
``bound``        how far rotated vectors, scores and angles may be off, derived
``scores``       how far scores are off: against float64, and against the same offset at 0
``limits``       where that breaks, where positions collide, how frequencies drift
``extraction``   the frequencies that any rotary code turns by, read off its turning
``comparison``   those against the declared ones
"""
