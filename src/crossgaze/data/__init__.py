"""Files in, batches out: captions, vocabularies, region stores, entities and question sets."""
