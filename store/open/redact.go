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
	if err != nil {
		scheme, _, _ := strings.Cut(name, "://")
		return scheme + "://***"
	}
	text := u.String()
	if _, set := u.User.Password(); set {
		text = strings.Replace(u.Redacted(), ":xxxxx@", ":***@", 1)
	}
	return passwordOption.ReplaceAllString(text, "${1}***")
}
