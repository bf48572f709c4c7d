// Package netlab makes hosts with a network between them on one Linux machine, so that
// programs run as on several machines: each host has an address and a name, its own
// loopback and process ids, and, if there are enough, cores of its own.
//
// What it guarantees:
//
//   - Hosts reach each other and nothing else: not this machine, its other networks or
//     another lab. This machine reaches no host. Only [Host.Start] and nsenter lead into
//     one. The files are those of this machine.
//   - The network configuration of this machine is not touched. No device of the lab is
//     ever in its network namespace, and /run/netns stays as it is.
//   - When the process that called [Start] ends, by SIGKILL too, nothing is left: no
//     process, namespace, device or file.
//
// The last two follow from how it is made. Namespaces have no names: what keeps those of a
// host is its first process alone, which ends when a pipe from us is closed. The kernel
// then kills all others of that process id namespace. The network device of a host is a
// TAP device, which ends with the file descriptor that we have. Between the devices is a
// switch in this process: see [Link].
//
// It requires root, a kernel of version 5.8 or later with TUN, and ip of iproute2.
package netlab
