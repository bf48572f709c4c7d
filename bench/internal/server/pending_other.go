//go:build !unix

package server

// pending reports whether something has arrived that the server has not read yet.
func (*boundedConn) pending() bool { return false }
