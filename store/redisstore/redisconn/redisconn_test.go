package redisconn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse_NamesTheOptionThatIsRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"redis://:topsecret@h?foo=topsecret":                 "option foo is unknown",
		"redis://h?addr=h:2&foo=1&dial_timeout=1s":           "option foo is unknown",
		"redis://h?db=topsecret":                             "option db cannot have this value",
		"redis://h?dial_timeout=topsecret":                   "option dial_timeout cannot have this value",
		"redis://h?master_name=m&foo=1":                      "option foo is unknown",
		"redis://h?master_name=m&addr=h:2&db=topsecret":      "option db cannot have this value",
		"redis://h/topsecret?foo=1":                          ErrURL.Error(), // not because of the option
		"http://h?foo=1":                                     ErrURL.Error(),
		"http://h?master_name=m&foo=1":                       ErrSentinelURL.Error(),
		"redis://me:1?topsecret@h":                           ErrURL.Error(), // a question mark in a password
		"redis://me:1?top=secret@h":                          ErrURL.Error(),
		"redis://h?addr=:topsecret@h:2":                      errAddress.Error(),
		"redis://h?addr=h:2&addr=me@h:3":                     errAddress.Error(),
		"redis://h?addr=h":                                   errAddress.Error(),
		"redis://h?sslrootcert=/absent.pem":                  "sslrootcert, sslcert and sslkey are for TLS: want rediss://",
		"redis://:topsecret@h?max_retries=2&pool_size=much":  "option pool_size cannot have this value",
		"redis://:topsecret@h?max_retries=2&skip_verify=yes": "option skip_verify is unknown", // without TLS
	} {
		_, err := Parse(text)
		require.EqualError(t, err, says, text)
	}
	_, err := Parse("redis://h?addr=h:2&dial_timeout=1s")
	require.NoError(t, err)
}
