package barrier_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/saga/barrier"
)

func TestFromQuery_ReadsACallOfTheCoordinator(t *testing.T) {
	t.Parallel()
	query, err := url.ParseQuery("amount=30&gid=a-B_1&trans_type=saga&branch_id=02&op=compensate")
	require.NoError(t, err)
	b, err := barrier.FromQuery(query)
	require.NoError(t, err)
	require.Equal(t, &barrier.Barrier{TransType: "saga", GID: "a-B_1", BranchID: "02", Op: "compensate"}, b)
}

func TestFromQuery_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(url.Values){
		"gid is given 0 times":                    func(q url.Values) { q.Del("gid") },
		"trans_type is given 0 times":             func(q url.Values) { q.Del("trans_type") },
		"branch_id is given 2 times":              func(q url.Values) { q.Add("branch_id", "02") },
		"gid is empty":                            func(q url.Values) { q.Set("gid", "") },
		"gid has 129 bytes, at most 128":          func(q url.Values) { q.Set("gid", strings.Repeat("g", 129)) },
		"branch_id has 129 bytes, at most 128":    func(q url.Values) { q.Set("branch_id", strings.Repeat("1", 129)) },
		"trans_type has 46 bytes, at most 45":     func(q url.Values) { q.Set("trans_type", strings.Repeat("s", 46)) },
		`gid "a "`:                                func(q url.Values) { q.Set("gid", "a ") },
		`gid "ä"`:                                 func(q url.Values) { q.Set("gid", "ä") },
		`gid "\xff"`:                              func(q url.Values) { q.Set("gid", "\xff") },
		`gid "a\x00"`:                             func(q url.Values) { q.Set("gid", "a\x00") },
		`branch_id "1;2"`:                         func(q url.Values) { q.Set("branch_id", "1;2") },
		`op "Action" is unknown`:                  func(q url.Values) { q.Set("op", "Action") },
		`op "msg" is unknown`:                     func(q url.Values) { q.Set("op", "msg") },
		"op is given 0 times, must be once":       func(q url.Values) { q.Del("op") },
		"op has 46 bytes, at most 45 are allowed": func(q url.Values) { q.Set("op", strings.Repeat("o", 46)) },
	} {
		query := url.Values{"gid": {"g"}, "trans_type": {"saga"}, "branch_id": {"01"}, "op": {"action"}}
		change(query)
		b, err := barrier.FromQuery(query)
		require.ErrorContains(t, err, want)
		require.Nil(t, b)
	}
}
