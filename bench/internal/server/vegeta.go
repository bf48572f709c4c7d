package server

import "fmt"

// VegetaCommand is the shell line that drives the server at url, in a closed
// loop of so many requests in flight, for ten seconds. The query may be empty. A
// token is not in it, but taken from the environment.
func VegetaCommand(url, query string, inFlight int, withToken bool) string {
	if query != "" {
		query = "?" + query
	}
	header := ""
	if withToken {
		header = ` -header="Authorization: Bearer ${SAGABENCH_SERVER_TOKEN%% *}"` // the first, where there are several
	}
	// Workers and connections are what bounds the requests in flight: without
	// -workers it starts with 10, without -connections it dials anew.
	return fmt.Sprintf(`echo "GET %s/bench/saga%s" | go tool vegeta attack%s -rate=0 -max-workers=%d -workers=%[4]d -connections=%[4]d -duration=10s | go tool vegeta report`,
		url, query, header, inFlight)
}
