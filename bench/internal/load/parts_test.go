package load

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/store"
)

func TestClassify_BelievesOnlyABodyWithAResultAndAGid(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"dtm_result":"SUCCESS","gid":"a-1"}`:                             "a-1",
		"{ \"gid\" :\n \"aZ0_-\", \"b\":2, \"dtm_result\":\"SUCCESS\"}":    "aZ0_-",
		`{"dtm_result":"SUCCESS","gid":17}`:                                "",
		`{"dtm_result":"SUCCESS","gid":"a-1`:                               "",
		`{"dtm_result":"SUCCESS","gid"`:                                    "",
		`{"dtm_result":"SUCCESS","gid":""}`:                                "",
		`{"dtm_result":"SUCCESS","gid":"a b"}`:                             "",
		`{"dtm_result":"SUCCESS","gid":"a\nS b"}`:                          "",
		`{"dtm_result":"SUCCESS","gid":"{a}"}`:                             "",
		`{"dtm_result":"SUCCESS","gid":"` + strings.Repeat("a", 65) + `"}`: "",
		`{"dtm_result":"FAILURE","gid":"a-1"}`:                             "",
		`{"gid":"a-1"}`:                                                    "",
		``:                                                                 "",
	} {
		outcome, gid, kind := classify(&vegeta.Result{Code: 200, Body: []byte(body)}, "")
		require.Equal(t, want, gid, body)
		if want == "" {
			require.Equal(t, kindNoResult, kind, body)
		} else {
			require.Empty(t, kind, body)
			require.Equal(t, store.StatusSucceeded, outcome, body)
		}
	}
}

func TestKindOf_KnowsWhatOtherTestsCannotProvoke(t *testing.T) {
	t.Parallel()
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for want, err := range map[string]error{
		kindNoHost:      &net.DNSError{Err: "no such host", Name: "x.invalid", IsNotFound: true},
		kindUnreachable: dial(syscall.EHOSTUNREACH),
		kindFiles:       dial(syscall.EMFILE),
		kindNoPort:      dial(syscall.EADDRNOTAVAIL),
		kindTimeout:     dial(syscall.ETIMEDOUT),
		// Of a connection that was closed just as it was taken.
		kindClosed: errors.New("http: server closed idle connection"),
		kindOther:  errors.New("anything else"),
	} {
		require.Equal(t, want, kindOf(fmt.Errorf("send: %w", err)))
	}
}

func TestReadAckFile_RefusesATornLine(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x 1 2 b\n", "S\n", "S 1\n", "S 1 2\n", "S b\n", "S 1 b\n", "S 1 2 b c\n", "S one 2 b\n", "S 1 two b\n"} {
		err := readAckFile(strings.NewReader("S 1 2 a\n"+text), func(Acknowledgement) error { return nil })
		require.ErrorContains(t, err, "line 2", text)
	}
}

// A full disk cut it off: a part of a gid is not a saga that was lost.
func TestReadAckFile_LeavesOutALineWithoutItsEnd(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{"", "S", "S 1 2", "S 1 2 b"} {
		var gids []string
		err := readAckFile(strings.NewReader("S 1 2 a\n"+rest), func(a Acknowledgement) error { gids = append(gids, a.GID); return nil })
		require.NoError(t, err, rest)
		require.Equal(t, []string{"a"}, gids, rest)
	}
}
