"""Rotary encoding in short formats: its errors, where it breaks, and what two checks say of it."""
