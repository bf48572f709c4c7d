package tlsfiles_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
	"sagabench/internal/tlsfiles"
)

func TestFiles_SayWhatIsWrong(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	cert, key := a.Issue("mine")
	_, otherKey := a.Issue("other")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for says, f := range map[string]tlsfiles.Files{
		"a certificate needs its key":  {Cert: cert},
		"and a key its certificate":    {Key: key},
		"no such file":                 {CA: a.CA + "x", Cert: cert, Key: key},
		"no such file or directory":    {Cert: cert + "x", Key: key},
		"private key does not match":   {Cert: cert, Key: otherKey},
		"holds no certificate in PEM":  {CA: empty, Cert: cert, Key: key},
		"no certificate in PEM":        {CA: key, Cert: cert, Key: key},
		"failed to find any PEM data ": {Cert: empty, Key: key},
	} {
		_, err := f.Client()
		require.ErrorContains(t, err, says)
		_, err = f.Server()
		require.ErrorContains(t, err, says)
	}
	_, err := tlsfiles.Files{CA: a.CA}.Server()
	require.ErrorContains(t, err, "a certificate needs its key", "a server has one")

	client, err := tlsfiles.Files{CA: a.CA, Cert: cert, Key: key}.Client()
	require.NoError(t, err)
	require.NotNil(t, client.RootCAs)
	require.Len(t, client.Certificates, 1)
	require.False(t, client.InsecureSkipVerify)
	plain, err := tlsfiles.Files{}.Client()
	require.NoError(t, err)
	require.Nil(t, plain.RootCAs, "whom the machine trusts")
}

func TestCutURL_TakesOffTheFilesOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		rest  string
		files tlsfiles.Files
	}{
		"redis://h": {"redis://h", tlsfiles.Files{}},
		"rediss://u:p%2Fw@h:1/2?sslrootcert=/a%20b":  {"rediss://u:p%2Fw@h:1/2", tlsfiles.Files{CA: "/a b"}},
		"mysql://u@h/?sslcert=/c&tls=true&sslkey=/k": {"mysql://u@h/?tls=true", tlsfiles.Files{Cert: "/c", Key: "/k"}},
		"mysql://u:%@h?sslcert=/c":                   {"mysql://u:%@h?sslcert=/c", tlsfiles.Files{}},
	} {
		rest, files := tlsfiles.CutURL(text)
		require.Equal(t, want.rest, rest)
		require.Equal(t, want.files, files)
	}
}

// Files without TLS are a mistake that must not end in plain text.
func TestFiles_WithoutTLS_AreRefused(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	cert, key := a.Issue("mine")
	require.ErrorContains(t, tlsfiles.Files{CA: a.CA}.SetRedis(nil), "want rediss://")
	require.NoError(t, tlsfiles.Files{}.SetRedis(nil))
	for mode, f := range map[string]tlsfiles.Files{"": {CA: a.CA}, "false": {Cert: cert, Key: key}, "preferred": {CA: a.CA}, "skip-verify": {CA: a.CA}} {
		_, err := f.MySQL(mode)
		require.ErrorContains(t, err, "must be true", mode)
	}
	cfg, err := tlsfiles.Files{}.MySQL("preferred")
	require.NoError(t, err)
	require.Nil(t, cfg)
	cfg, err = tlsfiles.Files{Cert: cert, Key: key}.MySQL("skip-verify")
	require.NoError(t, err)
	require.Equal(t, [2]bool{true, true}, [2]bool{cfg.InsecureSkipVerify, len(cfg.Certificates) == 1})
	var redis tls.Config
	require.NoError(t, tlsfiles.Files{CA: a.CA, Cert: cert, Key: key}.SetRedis(&redis))
	require.NotNil(t, redis.RootCAs)
}
