"""Evaluate statements in finite fields: exact numbers, including exponentials and angles."""
