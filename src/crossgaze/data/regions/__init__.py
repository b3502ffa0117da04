"""Region stores: an image's regions on disk, mapped and never loaded."""
