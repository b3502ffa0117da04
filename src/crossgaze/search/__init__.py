"""Search: a folder of photographs, a sentence, an answer; from one machine to a cluster."""
