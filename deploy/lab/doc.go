// Package lab starts and stops real servers for tests and benchmarks (Redis, MariaDB or
// MySQL, PostgreSQL): installed binaries, free ports of the loopback interface,
// temporary directories.
//
// What it guarantees:
//
//   - A server that [Kind.Start] returned answers at Addr, and is the one that was
//     started.
//   - A server that did not start leaves nothing behind. The error holds the end of its
//     log.
//   - Unless its settings say otherwise, a server requires a random password, which is
//     in no argument, environment or log. Root runs it as the account of its package,
//     without capabilities. Only that account can read its files.
//   - A server of a container image is in a container that is removed when it ends. It has
//     the network, the process ids and the directory of an installed one.
//   - No server outlives the process that started it, even if that one is killed with
//     SIGKILL. Its temporary directory may: the next lab on the host removes it.
//
// Package redisnodes starts a Redis Cluster of such servers, or a Redis with a replica and
// sentinels. Package sqlnodes starts a MariaDB or PostgreSQL with a replica.
//
// Package galera starts a MariaDB Galera cluster of such servers.
//
// [Kind] describes one kind of server. To add one, write its Kind and its engine in a
// file of its own (postgres.go is an example) and list it in [Kinds]. [Server] is the
// same for all kinds. [StartProcess] runs any program under the same rules.
//
// To test crashes and slow disks, [Server.Kill] ends a server like a crash of its process,
// [Server.LosePower] like a crash of its machine, [Server.Destroy] like the loss of its
// machine, and [Server.SlowSync] delays its syncs. CutOff of a redisnodes.Cluster cuts nodes
// off from the others.
//
// Installing the binaries is left to the user (make deps); [ErrNotInstalled] says how.
package lab
