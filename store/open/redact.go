package open

import (
	"net/url"
	"regexp"
	"strings"
)

// passwordOption matches the options of a URL that hold a password, as PostgreSQL's password and
// sslpassword, and as Redis' sentinel_password.
var passwordOption = regexp.MustCompile(`(?i)([?&][a-z_]*password=)[^&#]*`)

// Redact returns a name or URL without its passwords, for messages and results.
func Redact(name string) string {
	if !strings.Contains(name, "://") {
		return name
	}
	u, err := url.Parse(name)
	query := ""
	if err == nil {
		query, err = url.QueryUnescape(u.RawQuery)
	}
	// What an @ follows may be a password, or an address with one.
	if err != nil || strings.Contains(u.Path+query+u.Fragment, "@") {
		scheme, _, _ := strings.Cut(name, "://")
		return scheme + "://***"
	}
	text := u.String()
	if _, set := u.User.Password(); set {
		text = strings.Replace(u.Redacted(), ":xxxxx@", ":***@", 1)
	}
	return passwordOption.ReplaceAllString(text, "${1}***")
}

// unescaped reports whether an @ follows the host. Then the password holds a special
// character, such as a slash, that is not written as %XX, and the apparent host is
// a part of the password.
func unescaped(u *url.URL) bool {
	option, _, _ := strings.Cut(u.RawQuery, "=") // a value may hold one
	return strings.Contains(u.Path+option+u.Fragment, "@")
}

var secretSetting = regexp.MustCompile(`(?i)pass|auth|secret|^user$`)

// SecretSetting reports whether the setting of a server with this name may hold a password.
func SecretSetting(name string) bool { return secretSetting.MatchString(name) }
