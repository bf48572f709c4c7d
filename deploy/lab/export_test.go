package lab

// Places and LookServer give tests outside the package what finds the servers.
var (
	Places     = places
	LookServer = lookServer
)
