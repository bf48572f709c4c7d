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

// serverAccount returns account if we are root, and otherwise "", our own. Servers do
// not run as nobody: other programs do.
func serverAccount(account string) (string, error) {
	if os.Geteuid() != 0 {
		return "", nil
	}
	if _, err := user.Lookup(account); err != nil {
		return "", fmt.Errorf("the lab does not run servers as root, and there is no account %s: "+
			"install the server's package, or make one (useradd --system %[1]s)", account)
	}
	return account, nil
}

// newPassword draws a password without characters that URLs, SQL or configuration files
// escape.
func newPassword() string { return rand.Text() }

// secretFile returns the file of the password of a server in dir. It is beside dir: in
// dir, the server's account could plant a link.
func secretFile(dir string) string { return dir + ".secret" }

// writeSecret writes a file, such as the secret file, which only the server's account may
// read.
func writeSecret(s *Server, path, content string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if s.account != "" {
		err = changeOwner(s.account, path)
	}
	if err == nil {
		_, err = file.WriteString(content)
	}
	return errors.Join(err, file.Close())
}

// inherited are the variables that a process of another account inherits. Others may
// hold secrets, which that account can read in /proc.
var inherited = []string{"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}

// environment returns the environment of a process of the account; for "", all of ours.
func environment(account string) []string {
	if account == "" {
		return os.Environ()
	}
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(inherited, name)
	})
}
