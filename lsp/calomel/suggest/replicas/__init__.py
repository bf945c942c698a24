"""An engine in several processes: replicas of one model, each with its weights and its prefix cache.

Ray Serve starts the replicas, watches over them and says which of them a request goes to; here is what it does not
know. A request's life: `ReplicatedEngine` checks it, writes it as plain data, and sends it in its session's name; a
`Replica` reads it and has its own engine answer; what comes back settles the handle. When a replica is lost, what can
be asked again is asked again elsewhere, and nothing is answered twice.
"""
