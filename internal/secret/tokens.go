package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
)

// Tokens are secrets of equal rights. There are several while one replaces another.
type Tokens []Text

// NewTokens splits text at white space into tokens.
func NewTokens(text string) Tokens {
	var all Tokens
	for token := range strings.FieldsSeq(text) {
		all = append(all, New(token))
	}
	return all
}

// AreSet reports whether there is any token.
func (t Tokens) AreSet() bool { return len(t) > 0 }

// First returns the token to show to servers. It is not set if there is none.
func (t Tokens) First() Text {
	if len(t) == 0 {
		return Text{}
	}
	return t[0]
}

// Find returns the token that equals given, in a time independent of the tokens' text.
func (t Tokens) Find(given string) (found Text, ok bool) {
	got := sha256.Sum256([]byte(given))
	for _, token := range t {
		want := sha256.Sum256([]byte(token.Reveal()))
		if token.IsSet() && subtle.ConstantTimeCompare(want[:], got[:]) == 1 {
			found, ok = token, true
		}
	}
	return found, ok
}

// Matches reports whether given is one of the tokens.
func (t Tokens) Matches(given string) bool {
	_, ok := t.Find(given)
	return ok
}
