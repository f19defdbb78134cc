// Replaces Alpine’s sort plugin: none of our lists is sorted by hand.
