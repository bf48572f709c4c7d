package branch

import (
	"errors"
	"net/url"
	"strings"
)

// RedactURL returns a branch's URL for logs, reasons and pages: host, path and the names of
// the query's parameters. User, password and the values of the query become ***, since any
// of them may be a key.
func RedactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "***"
	}
	if u.User != nil {
		u.User = url.User("***")
	}
	parameters := strings.Split(u.RawQuery, "&")
	for i, p := range parameters {
		if name, _, ok := strings.Cut(p, "="); ok {
			parameters[i] = name + "=***"
		} else if p != "" {
			parameters[i] = "***"
		}
	}
	u.RawQuery, u.Fragment = strings.Join(parameters, "&"), ""
	return strings.Replace(u.String(), "%2A%2A%2A@", "***@", 1)
}

// withoutURL returns the cause of a *url.Error, whose text contains the whole URL.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
