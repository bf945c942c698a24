"""One file per family of routes; each makes a router and declares for every route who may call it."""
