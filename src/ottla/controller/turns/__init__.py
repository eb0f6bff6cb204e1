"""The controller's turns: they have something decided, write it into the tree, and leave it to be announced."""
