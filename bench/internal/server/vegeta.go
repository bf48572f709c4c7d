package server

import "fmt"

// A VegetaCommand sends load for ten seconds with vegeta, from a shell. It takes the token
// from the environment.
type VegetaCommand struct {
	URL       string // of the server
	Query     string // of /bench/saga; may be empty
	WithToken bool
}

// Closed returns the command of a closed loop of inFlight requests.
func (c VegetaCommand) Closed(inFlight int) string {
	// Workers and connections bound the requests in flight. Without -workers vegeta starts
	// with 10, without -connections it opens new ones.
	return c.attack(fmt.Sprintf("-rate=0 -max-workers=%d -workers=%[1]d -connections=%[1]d", inFlight), c.URL) + " | go tool vegeta report"
}

// Open returns the commands of an open loop. They save the server's metrics from before and
// after it, which bench report reads beside vegeta's results.
func (c VegetaCommand) Open() []string {
	metrics := "curl -s" + c.header("-H ") + " " + c.URL + "/metrics"
	return []string{metrics + " >app.before.prom", c.attack(openRate, c.URL) + " >app.bin", metrics + " >app.after.prom"}
}

// ManyHosts returns the command that each load host runs, for two app hosts.
func (c VegetaCommand) ManyHosts() string {
	return c.attack(openRate, "http://APP1:PORT", "http://APP2:PORT") + ` >"$HOSTNAME.bin"`
}

// openRate is for each load host. The cap bounds what a server that stalls makes vegeta start.
const openRate = "-rate=500/s -max-workers=1000"

// attack sends to the servers in turn.
func (c VegetaCommand) attack(flags string, urls ...string) string {
	query := ""
	if c.Query != "" {
		query = "?" + c.Query
	}
	command := `printf 'GET %s\n'`
	for _, url := range urls {
		command += fmt.Sprintf(` "%s/bench/saga%s"`, url, query)
	}
	return fmt.Sprintf(`%s | go tool vegeta attack%s %s -duration=10s`, command, c.header("-header="), flags)
}

// header returns the flag with the token; the first, if there are several.
func (c VegetaCommand) header(flag string) string {
	if !c.WithToken {
		return ""
	}
	return " " + flag + `"Authorization: Bearer ${SAGABENCH_SERVER_TOKEN%% *}"`
}
