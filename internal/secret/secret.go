// Package secret holds text that must not be seen: tokens, and addresses with
// passwords in them.
//
// However a [Text] is printed, logged or encoded it reads ***: by every verb of
// fmt, by slog, as JSON, alone or inside something else, exported or not. Only
// [Text.Reveal] gives the text itself, so looking for its callers finds every
// place that can give a secret away.
package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
)

const mask = "***"

// Text is a secret. Its zero value is not set, and prints as nothing. It must not
// be compared with ==.
type Text struct {
	// A pointer, for fmt prints the fields of what it cannot call a method of.
	text *string
}

var (
	_ fmt.Formatter          = Text{}
	_ fmt.Stringer           = Text{}
	_ slog.LogValuer         = Text{}
	_ encoding.TextMarshaler = Text{}
)

// New makes a secret of text; of none, one that is not set.
func New(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{&text}
}

// IsSet reports whether there is a secret.
func (t Text) IsSet() bool { return t.text != nil }

// Reveal is the secret itself.
func (t Text) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// Matches reports whether given is the secret, in a time that tells nothing of
// it. Nothing matches a secret that is not set.
func (t Text) Matches(given string) bool {
	_, ok := Tokens{t}.Find(given)
	return ok
}

// Fingerprint names a secret in a log: the first 8 hexadecimal digits of its
// SHA-256. A secret that is not set has none.
func (t Text) Fingerprint() string {
	if t.text == nil {
		return ""
	}
	digest := sha256.Sum256([]byte(*t.text))
	return hex.EncodeToString(digest[:4])
}

// Sign gives what only those who have the secret can make of a message: 43
// characters that need no escaping in a URL or a cookie.
func (t Text) Sign(message string) string {
	mac := hmac.New(sha256.New, []byte(t.Reveal()))
	mac.Write([]byte(message))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// String gives *** for a secret.
func (t Text) String() string {
	if t.text == nil {
		return ""
	}
	return mask
}

// Format implements fmt.Formatter, for all verbs alike.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue implements slog.LogValuer.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText implements encoding.TextMarshaler, which encoding/json uses too.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
