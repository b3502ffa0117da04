"""crossgaze: match images and sentences by looking closely at words and regions.

Importing the package costs next to nothing: what needs torch or NumPy is imported when it is first
used.
"""

__version__ = "0.1.0"
