package saga

import (
	"errors"
	"net/url"
	"strings"

	"sagabench/store"
)

// RedactURL returns a branch's URL as logs, reasons and pages may show it: host,
// path and the names of the query's parameters. User, password and the values of
// the query are ***, for any of them may be a key.
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

// withoutURL returns what a *url.Error wraps: its text repeats the whole URL.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// RedactError returns what an answer may say of an error that is not the client's:
// the store's own words hold its address, and are for the log.
func RedactError(err error) string {
	what := "the store does not answer as it should"
	for _, known := range []error{ErrUnknown, store.ErrClosed} {
		if errors.Is(err, known) {
			what = known.Error()
			break
		}
	}
	return what + "; the server's log has the details"
}
