package config

import "regexp"

// service matches the variables that Kubernetes sets for a Service named sagabench
// or sagabench-something, with the values that it gives them. A misspelt setting has
// another value or another suffix.
//
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
var service = regexp.MustCompile(`^SAGABENCH(_[A-Z0-9_]+)?_(` +
	`SERVICE_HOST=[0-9a-f.:]+|SERVICE_PORT(_[A-Z0-9_]+)?=\d+|` +
	`PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://.*|` +
	`PORT_\d+_(TCP|UDP|SCTP)_(PROTO=(tcp|udp|sctp)|PORT=\d+|ADDR=[0-9a-f.:]+))$`)

// IsServiceVariable reports whether an entry NAME=VALUE of the environment was set by
// Kubernetes for a Service, and is no setting of ours.
func IsServiceVariable(entry string) bool { return service.MatchString(entry) }
