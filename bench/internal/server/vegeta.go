package server

import "fmt"

// VegetaCommand returns a shell command that sends load to the server at url for ten seconds,
// in a closed loop of inFlight requests. The query may be empty. The command takes the token
// from the environment.
func VegetaCommand(url, query string, inFlight int, withToken bool) string {
	if query != "" {
		query = "?" + query
	}
	header := ""
	if withToken {
		header = ` -header="Authorization: Bearer ${SAGABENCH_SERVER_TOKEN%% *}"` // the first, if there are several
	}
	// Workers and connections bound the requests in flight. Without -workers vegeta starts
	// with 10, without -connections it opens new ones.
	return fmt.Sprintf(`echo "GET %s/bench/saga%s" | go tool vegeta attack%s -rate=0 -max-workers=%d -workers=%[4]d -connections=%[4]d -duration=10s | go tool vegeta report`,
		url, query, header, inFlight)
}
