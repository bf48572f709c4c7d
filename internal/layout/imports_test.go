// Package layout holds the tests of the project's shape: who may import whom.
package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "sagabench/"

// rules say which packages of ours a package may import; test files are free.
// A path that ends in / means all below it.
var rules = []struct {
	of     string
	may    []string
	reason string
}{
	{"store", nil, "the contract knows no engine"},
	{"store/memstore", []string{"store"}, "a backend knows the contract"},
	{"store/storetest", []string{"store", "store/memstore", "internal/race"}, "the suite knows only the contract and a model of it"},
	{"store/disktest", []string{"store"}, "the suite knows only the contract"},
	{"store/groupcommit", []string{"store"}, "batching knows no engine"},
	{"store/redisstore", []string{"store", "lua", "store/redisstore/redisconn"}, "a backend knows the contract"},
	{"store/redisstore/redisconn", []string{"internal/tlsfiles"}, "connections know nothing of sagas"},
	{"store/pebblestore", []string{"store", "internal/filesystem"}, "a backend knows the contract"},
	{"store/sqlstore", []string{"store", "store/sqlstore/durability", "store/sqlstore/sqlconn", "internal/outage"}, "a backend knows the contract"},
	{"store/sqlstore/durability", []string{"store"}, "a function of settings: it asks no server"},
	{"store/sqlstore/sqlconn", []string{"internal/tlsfiles"}, "connections know nothing of sagas"},
	{"store/open", []string{"store", "store/", "internal/secret"}, "the one package that knows all backends"},
	{"lua", nil, "scripts are text"},
	{"saga", []string{"saga/machine", "store", "store/groupcommit", "internal/outage"}, "the coordinator works over any store, and knows no HTTP"},
	{"saga/machine", []string{"store"}, "what a saga does next is a pure function"},
	{"saga/branch", []string{"saga", "saga/machine", "store"}, "it calls participants, and knows no engine"},
	{"saga/inspect", []string{"saga", "store"}, "it reads sagas for the API and the page, and knows no engine"},
	{"saga/webui", []string{"saga", "saga/branch", "saga/machine", "saga/inspect", "store", "internal/format", "internal/peer", "internal/secret"}, "the page knows the coordinator, and no engine"},
	{"saga/httpapi", []string{"saga", "saga/machine", "saga/inspect", "store"}, "the wire format knows the coordinator, and no engine"},
	{"saga/metrics", []string{"saga", "saga/machine", "store"}, "it reads counters, so that the coordinator does not know Prometheus"},
	{"saga/barrier", nil, "participants link it, and they run no coordinator"},
	{"deploy/lab", []string{"internal/filesystem"}, "it starts servers and knows nothing of what they are for"},
	{"deploy/lab/redisnodes", []string{"deploy/lab"}, "it starts servers that work together, and knows nothing of what they are for"},
	{"deploy/lab/galera", []string{"deploy/lab"}, "it starts servers that work together, and knows nothing of what they are for"},
	{"deploy/lab/sqlnodes", []string{"deploy/lab"}, "it starts servers that work together, and knows nothing of what they are for"},
	{"deploy/lab/labtest", []string{"deploy/lab", "deploy/lab/galera", "deploy/lab/redisnodes", "deploy/lab/sqlnodes"}, "it starts servers for tests"},
	{"deploy/netlab", nil, "it makes hosts and knows nothing of what runs on them"},
	{"internal/filesystem", nil, "it asks the kernel"},
	{"internal/document", []string{"internal/format"}, "it lays out what others found"},
	{"internal/format", nil, "numbers are numbers"},
	{"internal/fill", []string{"saga", "store"}, "it fills any store, and knows no engine"},
	{"internal/secret", nil, "a secret is text"},
	{"internal/race", nil, "it knows how tests are built"},
	{"internal/outage", nil, "it logs what others do"},
	{"internal/peer", nil, "it knows addresses"},
	{"internal/tlsfiles", nil, "files are files, whoever speaks TLS"},
	{"internal/config", []string{"internal/secret"}, "it sets settings, and knows none"},
	{"internal/testkit", []string{"store", "store/pebblestore", "store/redisstore", "deploy/lab", "deploy/lab/labtest"}, "it is for tests, and knows what several need"},
	{"bench/internal/cli", []string{"bench/comparisons", "lua", "store/open", "store", "saga", "deploy/lab", "internal/config", "internal/document", "internal/format", "internal/secret", "internal/tlsfiles", "bench/internal/"}, ""},
	{"bench/internal/stats", nil, "arithmetic knows no result"},
	{"bench/internal/usl", []string{"bench/internal/stats"}, "arithmetic knows no result"},
	{"bench/internal/microbench/wire", nil, "bytes of the protocol, whatever the calls are"},
	{"bench/internal/microbench", []string{"lua", "store/redisstore/redisconn", "deploy/lab", "deploy/lab/redisnodes", "internal/document", "internal/format", "internal/tlsfiles", "bench/internal/microbench/wire", "bench/internal/environment", "bench/internal/result", "bench/internal/stats"}, "it measures scripts, and runs no sagas"},
	{"bench/internal/redisops", []string{"store", "store/open", "store/redisstore", "internal/format", "bench/internal/backend", "bench/internal/result", "bench/internal/sample"}, "it measures single operations, and runs no sagas"},
	{"bench/internal/simserver", nil, "it is nothing but a law of latency"},
	{"bench/internal/result", []string{"bench/internal/usl", "internal/format"}, "types and files; others measure, judge and render"},
	{"bench/internal/result/resulttest", []string{"bench/internal/result"}, "results that tests share"},
	{"bench/internal/limit", []string{"bench/internal/result", "internal/format"}, "one rule for what limits a rate"},
	{"bench/internal/validity", []string{"bench/internal/limit", "bench/internal/result", "bench/internal/stats", "internal/format", "store"}, "it judges what others measured"},
	{"bench/internal/merge", []string{"bench/internal/result", "internal/format"}, "it combines what others measured"},
	{"bench/internal/picture", []string{"bench/internal/result", "internal/document", "internal/format"}, "it draws what others found"},
	{"bench/internal/report", []string{"bench/internal/compare", "bench/internal/matrix", "bench/internal/picture", "bench/internal/plan", "bench/internal/result", "bench/internal/usl", "internal/document", "internal/format", "store"}, "it renders what others measured"},
	{"bench/internal/capacity", []string{"bench/internal/limit", "bench/internal/load", "bench/internal/plan", "bench/internal/result", "bench/internal/stats", "bench/internal/usl", "bench/internal/validity", "internal/format"}, "it decides what to measure next; others send the load"},
	{"bench/internal/compare", []string{"bench/internal/result", "bench/internal/stats", "internal/format"}, "a function of results; others make the runs and render"},
	{"bench/internal/plan", []string{"bench/internal/result", "bench/internal/stats", "internal/format", "store"}, "a function of results: it measures and renders nothing"},
	{"bench/comparisons", nil, "variant files are text"},
	{"bench/internal/matrix", []string{"bench/internal/backend", "bench/internal/compare", "bench/internal/load", "bench/internal/plan", "bench/internal/redisops", "bench/internal/result", "bench/internal/stats", "internal/format", "store", "store/open"}, "it decides what to run and what that shows; others make the runs and render"},
	{"bench/internal/process", nil, "it knows this process, and not what it does"},
	{"bench/internal/progress", []string{"internal/format", "bench/internal/load", "bench/internal/result", "bench/internal/session"}, "it shows what others do"},
	{"bench/internal/environment", []string{"internal/filesystem", "bench/internal/cgroup", "bench/internal/result", "bench/internal/stats"}, "it describes a machine"},
	{"bench/internal/cgroup", nil, "it asks the kernel"},
	{"bench/internal/sample", []string{"bench/internal/cgroup", "bench/internal/result", "bench/internal/validity", "internal/secret"}, "it measures, and knows neither load nor stores"},
	{"bench/internal/backend", []string{"lua", "deploy/lab", "deploy/lab/redisnodes", "deploy/lab/sqlnodes", "store", "store/open", "store/redisstore/redisconn", "internal/format", "internal/tlsfiles", "bench/internal/result", "bench/internal/sample"}, "the one package of the bench that knows all stores"},
	{"bench/internal/audit", []string{"saga", "store", "bench/internal/load", "bench/internal/result"}, "it compares, and measures nothing"},
	{"bench/internal/loss", []string{"deploy/lab", "store", "store/open", "store/pebblestore", "internal/filesystem", "internal/format", "internal/secret", "bench/internal/audit", "bench/internal/backend", "bench/internal/environment", "bench/internal/load", "bench/internal/result", "bench/internal/server", "bench/internal/session"}, "it crashes stores, and knows how each keeps its files"},
	{"bench/internal/session", []string{"saga", "store", "store/open", "deploy/lab", "internal/fill", "internal/filesystem", "internal/format", "internal/secret", "bench/internal/audit", "bench/internal/backend", "bench/internal/environment", "bench/internal/load", "bench/internal/result", "bench/internal/sample", "bench/internal/server", "bench/internal/validity"}, "it measures, and does not know what for"},
	{"bench/internal/", []string{"store", "store/open", "saga", "saga/branch", "saga/httpapi", "saga/metrics", "saga/webui", "lua", "deploy/lab", "internal/document", "internal/format", "internal/filesystem", "internal/outage", "internal/fill", "internal/peer", "internal/secret", "internal/tlsfiles", "bench/internal/", "store/groupcommit"}, "only the command line reads the configuration"},
	{"bench", []string{"bench/internal/cli"}, "main hands its arguments on"},
}

// standardOnly import nothing beyond the standard library and, by the rules
// above, us.
var standardOnly = []string{"store", "saga", "saga/branch", "saga/machine", "internal/outage", "store/groupcommit", "lua", "internal/peer", "internal/secret", "internal/tlsfiles"}

// importers are the only packages that may import a package.
var importers = []struct {
	of     string
	only   []string
	reason string
}{
	{module + "bench/internal/report", []string{"bench/internal/cli"}, "results are rendered last"},
	{module + "bench/internal/server", []string{"bench/internal/cli", "bench/internal/session", "bench/internal/loss"}, "what measures a server talks to it over HTTP"},
	{"github.com/spf13/cobra", []string{"bench/internal/cli"}, "only the command line reads flags"},
	{"github.com/spf13/pflag", []string{"bench/internal/cli"}, "only the command line reads flags"},
}

func TestImports_AreOfTheOnlyImporters(t *testing.T) {
	packages := list(t)
	for _, r := range importers {
		found := false
		for _, p := range packages {
			if slices.Contains(p.Imports, r.of) {
				found = true
				require.Contains(t, r.only, strings.TrimPrefix(p.ImportPath, module), "it imports %s: %s", r.of, r.reason)
			}
		}
		require.True(t, found, "nothing imports %s: remove its rule", r.of)
	}
}

// maxLines bounds the lines of a package outside its tests: one that is longer holds two
// ideas.
const maxLines = 2400

func TestPackages_AreNotTooLong(t *testing.T) {
	for _, p := range list(t) {
		lines := 0
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			require.NoError(t, err)
			lines += bytes.Count(text, []byte("\n"))
		}
		require.LessOrEqual(t, lines, maxLines, p.ImportPath)
	}
}

type goPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
}

func TestImports_FollowTheRules(t *testing.T) {
	for _, p := range list(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		rule := -1
		for i, r := range rules {
			if matches(r.of, path) {
				rule = i
				break
			}
		}
		if rule < 0 {
			require.Empty(t, p.Imports, "%s has no rule: add one", path)
			continue
		}
		for _, imported := range p.Imports {
			ours, isOurs := strings.CutPrefix(imported, module)
			switch {
			case isOurs:
				require.True(t, anyMatches(rules[rule].may, ours), "%s imports %s: %s", path, ours, rules[rule].reason)
			case anyMatches(standardOnly, path):
				require.NotContains(t, strings.Split(imported, "/")[0], ".", "%s imports %s: it needs only the standard library", path, imported)
			}
		}
	}
}

func matches(pattern, path string) bool {
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(path, pattern)
	}
	return path == pattern
}

func anyMatches(patterns []string, path string) bool {
	for _, p := range patterns {
		if matches(p, path) {
			return true
		}
	}
	return false
}

func list(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-pgo=off", "-json=ImportPath,Dir,GoFiles,Imports", module+"...").Output()
	require.NoError(t, err)
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		packages = append(packages, p)
	}
	require.Greater(t, len(packages), len(rules)-2, "go list found too few packages")
	return packages
}
