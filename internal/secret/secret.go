// Package secret holds confidential text: tokens, and URLs with passwords.
//
// A [Text] prints as *** with every verb of fmt, in slog and in JSON, also as a field of
// another value. Only [Text.Reveal] returns the text, so its callers are the only places
// that can leak a secret.
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

// Text is a secret. Its zero value is not set, and prints as an empty string. Do not compare
// it with ==.
type Text struct {
	// A pointer, since fmt prints unexported fields without calling their methods.
	text *string
}

var (
	_ fmt.Formatter          = Text{}
	_ fmt.Stringer           = Text{}
	_ slog.LogValuer         = Text{}
	_ encoding.TextMarshaler = Text{}
)

// New returns text as a secret. Empty text is a secret that is not set.
func New(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{&text}
}

// IsSet reports whether there is a secret.
func (t Text) IsSet() bool { return t.text != nil }

// Reveal returns the secret's text.
func (t Text) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// Matches reports whether given is the secret, in constant time. Nothing matches a secret
// that is not set.
func (t Text) Matches(given string) bool {
	_, ok := Tokens{t}.Find(given)
	return ok
}

// Fingerprint identifies a secret in a log: the first 8 hexadecimal digits of its SHA-256.
// Empty if the secret is not set.
func (t Text) Fingerprint() string {
	if t.text == nil {
		return ""
	}
	digest := sha256.Sum256([]byte(*t.text))
	return hex.EncodeToString(digest[:4])
}

// Sign returns the HMAC-SHA256 of a message, keyed with the secret: 43 characters that need
// no escaping in a URL or a cookie.
func (t Text) Sign(message string) string {
	mac := hmac.New(sha256.New, []byte(t.Reveal()))
	mac.Write([]byte(message))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// String returns ***, or an empty string if the secret is not set.
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
