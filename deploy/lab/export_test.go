package lab

var (
	ServerDirs = serverDirs
	FindServer = findServer
)
