package branch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/saga/branch"
)

func TestRedactURL_LeavesOutWhatMayBeAKey(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                 "",
		"http://h/a":                       "http://h/a",
		"http://h:8080/a?":                 "http://h:8080/a?",
		"http://h/a?key=topsecret&id=7":    "http://h/a?key=***&id=***",
		"http://h/a?topsecret":             "http://h/a?***",
		"http://h/a?key=top=secret&&b=#c":  "http://h/a?key=***&&b=***",
		"https://topsecret@h/a":            "https://***@h/a",
		"https://me:topsecret@h/a?key=***": "https://***@h/a?key=***",
		"http://h/%zz?key=topsecret":       "***",
	} {
		require.Equal(t, want, branch.RedactURL(url), url)
	}
}
