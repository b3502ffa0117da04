"""The papers' models, one file each, behind one interface: `crossgaze.models.matcher`."""
