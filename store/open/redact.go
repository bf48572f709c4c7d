package open

import (
	"net/url"
	"regexp"
	"strings"
)

// passwordOption is how a URL for PostgreSQL may give a password as well.
var passwordOption = regexp.MustCompile(`([?&](?:ssl)?password=)[^&#]*`)

// Redact is a name or URL with its passwords left out, for messages and results.
func Redact(name string) string {
	if !strings.Contains(name, "://") {
		return name
	}
	u, err := url.Parse(name)
	if err != nil || unescaped(u) {
		scheme, _, _ := strings.Cut(name, "://")
		return scheme + "://***"
	}
	text := u.String()
	if _, set := u.User.Password(); set {
		text = strings.Replace(u.Redacted(), ":xxxxx@", ":***@", 1)
	}
	return passwordOption.ReplaceAllString(text, "${1}***")
}

// unescaped reports whether an @ stands behind the host. Then something special in
// the password, such as a slash, was not written as %XX, and what looks like the
// host is a part of the password.
func unescaped(u *url.URL) bool {
	option, _, _ := strings.Cut(u.RawQuery, "=") // a value may hold one
	return strings.Contains(u.Path+option+u.Fragment, "@")
}
