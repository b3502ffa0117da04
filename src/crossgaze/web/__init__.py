"""The service: an index behind HTTP, and the page that people use."""
