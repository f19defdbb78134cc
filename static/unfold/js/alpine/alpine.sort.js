// In place of Alpine’s sorting: no list of ours is put in order by hand.
