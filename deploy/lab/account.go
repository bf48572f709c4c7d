package lab

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strings"
)

// The accounts that servers run as when root starts them: those that the servers'
// own packages make. Not nobody, which others may run as.
const (
	redisAccount    = "redis"
	mysqlAccount    = "mysql"
	postgresAccount = "postgres"
)

// unprivileged returns account if we are root, and otherwise "", which is our own.
func unprivileged(account string) (string, error) {
	if os.Geteuid() != 0 {
		return "", nil
	}
	if _, err := user.Lookup(account); err != nil {
		return "", fmt.Errorf("no server is run as root, and there is no account %s: "+
			"install the server's package, or make one (useradd --system %[1]s)", account)
	}
	return account, nil
}

// newPassword makes a password of a server. Its characters need no escaping in a
// URL, in SQL or in a configuration file.
func newPassword() string { return rand.Text() }

// secretFile is where the password of a server in dir is kept: beside dir, for
// inside of it the server's account decides what a name leads to.
func secretFile(dir string) string { return dir + ".secret" }

// writeSecret writes the secret file of a server in dir, which only account may
// read; "" is our own.
func writeSecret(dir, account, content string) error {
	path := secretFile(dir)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if account != "" {
		err = giveTo(account, path)
	}
	if err == nil {
		_, err = file.WriteString(content)
	}
	return errors.Join(err, file.Close())
}

// passedOn are the variables that a process under another account inherits. The
// others may hold secrets, and that account can read them in /proc.
var passedOn = []string{"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}

// environment returns the environment of a process that runs as account; with "" it
// is the whole of ours.
func environment(account string) []string {
	if account == "" {
		return os.Environ()
	}
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(passedOn, name)
	})
}
