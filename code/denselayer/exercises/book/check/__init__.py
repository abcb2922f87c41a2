"""The exercises of this chapter: what is right, and which mistakes have a name."""
