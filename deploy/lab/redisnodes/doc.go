// Package redisnodes starts Redis servers that work together, for tests and benchmarks: a
// Redis Cluster with [StartCluster], a master with a replica with [StartReplicated], and with
// sentinels, too, with [StartSentinel].
//
// Every node is a [lab.Server], with all that the lab guarantees. To crash one, use
// [lab.Server.Kill], to pause one, [lab.Server.Signal] with SIGSTOP and SIGCONT. After
// [lab.Server.Restart] it has its address, its settings and its files again, and finds the
// others. [Cluster.CutOff] cuts nodes off from the others, which clients of both do not
// notice. [Cluster.WaitTakeover] and [Sentinel.WaitTakeover] return when a replica has
// replaced a lost master, WaitReady when nothing is missing any more.
package redisnodes
