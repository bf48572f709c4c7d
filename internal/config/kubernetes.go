package config

import "regexp"

// service matches the variables that Kubernetes makes of a Service named sagabench
// or sagabench-something, with the values that it gives them. A name that is
// misspelt has another value or another end.
//
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
var service = regexp.MustCompile(`^SAGABENCH(_[A-Z0-9_]+)?_(` +
	`SERVICE_HOST=[0-9a-f.:]+|SERVICE_PORT(_[A-Z0-9_]+)?=\d+|` +
	`PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://.*|` +
	`PORT_\d+_(TCP|UDP|SCTP)_(PROTO=(tcp|udp|sctp)|PORT=\d+|ADDR=[0-9a-f.:]+))$`)

// ofService reports whether an entry of the environment, NAME=VALUE, is about a
// Service of Kubernetes and no setting of ours.
func ofService(entry string) bool { return service.MatchString(entry) }
