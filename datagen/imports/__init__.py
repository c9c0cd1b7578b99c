"""The data sets of others, read as episodes. `datagen.export` is the way back."""
