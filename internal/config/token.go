package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"sagabench/internal/secret"
)

// minTokenBytes keeps out what can be guessed.
const minTokenBytes = 16

// completeTokens reads the tokens from their file, if there is one, and checks them.
// Empty text counts as none, unless a file was to hold one.
func completeTokens(key, file string, tokens *secret.Text) error {
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
			return fmt.Errorf("%s: holds other characters than visible ASCII, and has to fit into a header", key)
		}
	}
	return nil
}

// Tokens are those that clients may show.
func (o Options) Tokens() secret.Tokens { return secret.NewTokens(o.Server.Token.Reveal()) }

// AdminTokens are those that open what only the admin may do.
func (o Options) AdminTokens() secret.Tokens { return secret.NewTokens(o.Server.AdminToken.Reveal()) }

// checkTokensDiffer refuses one token for both, which would make every client an admin.
func (o Options) checkTokensDiffer() error {
	admins := o.AdminTokens()
	for _, token := range o.Tokens() {
		if _, same := admins.Find(token.Reveal()); same {
			return errors.New("server.admin_token: is a server.token too, and every client would be an admin: make another, as by openssl rand -hex 32")
		}
	}
	return nil
}
