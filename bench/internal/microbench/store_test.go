package microbench

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/bench/internal/microbench/wire"
	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
	"sagabench/lua"
	"sagabench/store"
	"sagabench/store/redisstore"
)

// What is priced is what the store does: the same changes, made through it, are
// the same calls, word for word, but for gids, keys, and a lease that here ends at
// once.
func TestOperations_AreTheStoresCalls(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := redisstore.DefaultConfig()
	cfg.URL = server.URL()
	s, err := redisstore.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	calls := monitor(t, server)

	shape := Shape{Steps: 5, Payload: 3}
	const many = 3
	gids := func(i int) string { return gid(i) }
	apply := func(change func(gid string) store.Change, want error) {
		var changes []store.Change
		for i := range many {
			changes = append(changes, change(gids(i)))
		}
		for _, err := range s.Apply(t.Context(), changes) {
			require.ErrorIs(t, err, want)
		}
	}
	marks := func(branches ...int) (marks []store.SetMark) {
		for _, b := range branches {
			marks = append(marks, store.SetMark{Branch: store.Branch(b), Mark: store.MarkSucceeded})
		}
		return marks
	}
	transition := func(t store.Transition) func(string) store.Change {
		return func(gid string) store.Change {
			one := t
			one.GID, one.Epoch, one.Owner, one.From = gid, 1, owner, store.StatusSubmitted
			return &one
		}
	}
	apply(func(gid string) store.Change {
		return &store.Create{GID: gid, Body: []byte(body(shape)), Steps: shape.Steps, Owner: owner, Due: lease}
	}, nil)
	apply(transition(store.Transition{To: store.StatusSubmitted, Marks: marks(updatedBranch(shape))}), nil)
	apply(transition(store.Transition{To: store.StatusSubmitted, Due: lease, Release: true, Note: note}), nil)
	apply(transition(store.Transition{To: store.StatusSucceeded, Marks: marks(lastBranch(shape))}), store.ErrConflict) // nobody owns it now
	for i := range many {
		require.NoError(t, s.Apply(t.Context(), []store.Change{&store.Create{GID: gids(many + i), Body: []byte("b"), Steps: 1, Owner: owner}})[0])
	}
	claimed, err := s.ClaimDue(t.Context(), owner, time.Minute, many)
	require.NoError(t, err)
	require.Len(t, claimed, many)

	index := cfg.Prefix + ":{0}"
	keys := callKeys{index: index}
	for i := range many {
		keys.sagas = append(keys.sagas, index+":"+gids(i))
	}
	bySHA1 := map[string]operation{}
	for _, script := range lua.All() {
		bySHA1[script.SHA1] = operationOf(script)
	}
	seen := map[string]bool{}
	for len(seen) < len(bySHA1) {
		got := <-calls
		o := bySHA1[got[1]]
		if seen[o.script.Name] {
			continue // the sagas to be claimed were saved, too
		}
		seen[o.script.Name] = true
		if o.script.Name == lua.Claim.Name {
			for i := range keys.sagas {
				keys.sagas[i] = index + ":" + gids(many+i)
			}
			got[len(got)-1] = "0"
		}
		require.Equal(t, o.args([]string{got[0], o.script.SHA1}, keys, shape), got, o.script.Name)
	}
}

// monitor gives the script calls that the server runs from now on.
func monitor(t *testing.T, server *lab.Server) <-chan []string {
	conn, err := net.Dial("tcp", server.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "AUTH %s\r\nMONITOR\r\n", server.Password())
	require.NoError(t, err)
	lines := bufio.NewScanner(conn)
	for range 2 {
		require.True(t, lines.Scan())
		require.Equal(t, "+OK", lines.Text())
	}
	calls := make(chan []string, 100)
	go func() {
		quoted := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
		for lines.Scan() {
			var words []string
			for _, word := range quoted.FindAllString(lines.Text(), -1) {
				plain, err := strconv.Unquote(word)
				if err != nil {
					plain = err.Error()
				}
				words = append(words, plain)
			}
			if len(words) > 1 && strings.EqualFold(words[0], "EVALSHA") {
				calls <- words
			}
		}
	}()
	return calls
}

// The store can read the sagas that the calls find, and the calls do what they are named
// after.
func TestOperations_DoWhatTheyAreNamedAfter(t *testing.T) {
	t.Parallel()
	server := labtest.Start(t, lab.Redis, lab.Config{})
	cfg := redisstore.DefaultConfig()
	cfg.URL = server.URL()
	s, err := redisstore.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	b := openBench(t, Config{Window: time.Millisecond, Progress: silent}, server.URL())

	index := cfg.Prefix + ":{0}"
	shape := Shape{Steps: 5, Sagas: 1, Pipeline: 1}
	for i, script := range lua.All() {
		o := operationOf(script)
		t.Run(script.Name, func(t *testing.T) {
			calls := []callKeys{{index: index, sagas: []string{index + ":" + gid(i)}}}
			c := newCase(o, whole, shape)
			require.NoError(t, b.pipeline(t.Context(), c.prepare, calls))
			var before store.Record
			if o.exists {
				before, err = s.Get(t.Context(), gid(i))
				require.NoError(t, err)
				require.Equal(t, store.StatusSubmitted, before.Status)
				require.EqualValues(t, 1, before.Epoch)
				require.Equal(t, owner, before.Owner)
				require.Equal(t, shape.Steps, before.Marks.Steps())
				require.JSONEq(t, `{"steps":[{},{},{},{},{}]}`, string(before.Body))
			}
			require.NoError(t, b.loadScript(t.Context(), script))
			_, err = wire.Send(b.conns, c.load(calls))
			require.NoError(t, err)
			after, err := s.Get(t.Context(), gid(i))
			require.NoError(t, err)
			switch o.script.Name {
			case "save":
				require.Equal(t, store.NewMarks(shape.Steps), after.Marks)
			case "update":
				require.Equal(t, before.Marks.With(2, store.MarkSucceeded), after.Marks)
			case "complete":
				require.Equal(t, store.StatusSucceeded, after.Status)
				require.Equal(t, store.Marks("y-y-y-y-y-"), after.Marks)
			case "reschedule":
				require.Empty(t, after.Owner)
				require.Equal(t, note, after.Note)
			case "claim":
				require.EqualValues(t, 2, after.Epoch)
			}
			require.Equal(t, o.after != notDue, !after.Due.IsZero())
			require.NoError(t, b.pipeline(t.Context(), c.clear, calls))
			_, err = s.Get(t.Context(), gid(i))
			require.ErrorIs(t, err, store.ErrNotFound)
		})
	}
	findings, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings)
}
