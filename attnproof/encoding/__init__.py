"""What an encoding is, whether one is valid, and how laws of encodings are stated."""

from .base import Encoding as Encoding
