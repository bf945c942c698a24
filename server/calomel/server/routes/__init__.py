"""One file per family of routes; each makes a router and says of every route who may call it."""
