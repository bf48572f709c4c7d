// Package hosts has only tests: the bench program on the hosts of a lab, as on several
// machines. They require Linux and root.
//
// make hosts is one of these tests with a longer load. make lab keeps a lab up instead, so
// that you can run commands on its hosts. See docs/hosts.md.
package hosts
