package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
)

// Tokens are secrets any of which will do: several while one is replaced by
// another.
type Tokens []Text

// NewTokens makes tokens of text that holds them with white space between.
func NewTokens(text string) Tokens {
	var all Tokens
	for token := range strings.FieldsSeq(text) {
		all = append(all, New(token))
	}
	return all
}

// AreSet reports whether there is one.
func (t Tokens) AreSet() bool { return len(t) > 0 }

// First is the one to show to others; not set if there is none.
func (t Tokens) First() Text {
	if len(t) == 0 {
		return Text{}
	}
	return t[0]
}

// Find returns the token that was given, in a time that tells nothing of the others.
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

// Matches reports whether given is one of them.
func (t Tokens) Matches(given string) bool {
	_, ok := t.Find(given)
	return ok
}
