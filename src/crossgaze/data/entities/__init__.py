"""Flickr30k Entities: phrases with boxes, and their place in a caption."""
