package config

import (
	"fmt"
	"os"
	"strings"

	"sagabench/internal/secret"
)

// minTokenBytes keeps out what can be guessed.
const minTokenBytes = 16

// completeToken reads the token from its file, if there is one, and checks what
// it has come to. One that is empty counts as none, unless a file was to hold it.
func completeToken(key, file string, token *secret.Text) error {
	if file != "" {
		if token.IsSet() {
			return fmt.Errorf("%s and %s_file are both set: keep one", key, key)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s_file: %w", key, err)
		}
		*token = secret.New(strings.TrimSpace(string(text)))
	}
	if file == "" && !token.IsSet() {
		return nil
	}
	text := token.Reveal()
	if len(text) < minTokenBytes {
		return fmt.Errorf("%s: %d characters, must be at least %d; openssl rand -hex 32 makes a good one", key, len(text), minTokenBytes)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s: holds other characters than visible ASCII, and has to fit into a header", key)
	}
	return nil
}
