package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"sagabench/internal/secret"
)

// minTokenBytes keeps out tokens that can be guessed.
const minTokenBytes = 16

// readTokens reads tokens from their file, if there is one, and checks them. Empty text
// counts as none, but a file must hold one.
func readTokens(key, file string, tokens *secret.Text) error {
	if file != "" {
		if tokens.IsSet() {
			return fmt.Errorf("%s and %s_file are both set: keep one", key, key)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s_file: %w", key, err)
		}
		*tokens = secret.New(string(text))
		if !secret.NewTokens(tokens.Reveal()).AreSet() {
			return fmt.Errorf("%s_file: %s holds no token", key, file)
		}
	}
	for _, token := range secret.NewTokens(tokens.Reveal()) {
		text := token.Reveal()
		if len(text) < minTokenBytes {
			return fmt.Errorf("%s: a token of %d characters, must be at least %d; openssl rand -hex 32 makes a good one", key, len(text), minTokenBytes)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%s: a token holds characters other than visible ASCII, which a header cannot carry", key)
		}
	}
	return nil
}

// CheckTokensDiffer returns an error if a token of users is one of the admin's, which
// would make every client an admin.
func CheckTokensDiffer(users, admins secret.Tokens) error {
	for _, token := range users {
		if admins.Matches(token.Reveal()) {
			return errors.New("server.admin_token: is a server.token too, and every client would be an admin: make another, as by openssl rand -hex 32")
		}
	}
	return nil
}
