"""Regions that are objects: bottom-up attention on a frozen backbone, with weights that ship."""
