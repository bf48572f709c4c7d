package server

import "fmt"

// VegetaCommand is the shell line that drives the server at url, in a closed
// loop of so many requests in flight, for ten seconds. The query may be empty.
func VegetaCommand(url, query string, inFlight int) string {
	if query != "" {
		query = "?" + query
	}
	// Workers and connections are what bounds the requests in flight: without
	// -workers it starts with 10, without -connections it dials anew.
	return fmt.Sprintf(`echo "GET %s/bench/saga%s" | go tool vegeta attack -rate=0 -max-workers=%d -workers=%[3]d -connections=%[3]d -duration=10s | go tool vegeta report`,
		url, query, inFlight)
}
