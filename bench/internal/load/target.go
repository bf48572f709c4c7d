package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	cryptorand "crypto/rand"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// Target is where requests go: usually a bench server's /bench/saga, which creates a
// saga and returns its gid.
type Target struct {
	URL string // absolute, http or https

	// Submission is the body of each request: the JSON of a saga whose gid is
	// GIDPlaceholder, which each request replaces by another gid. A share Fail of the
	// requests, 0 to 1, posts Refused instead. All targets have a Submission, or none.
	Submission, Refused []byte
	Fail                float64
}

// GIDPlaceholder is the gid in a Submission. It is as long as a real one.
const GIDPlaceholder = "00000000000000000000000000"

// Validate checks the target. Its error contains no password.
func (t Target) Validate() error {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		var cause *url.Error
		errors.As(err, &cause)
		return fmt.Errorf("target: %w", cause.Err) // without the URL
	case u.User != nil:
		return fmt.Errorf("target %q: must not have a password, which the result would contain", u.Redacted())
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("target %q: must be http://HOST… or https://HOST…", t.URL)
	}
	for _, body := range [][]byte{t.Submission, t.Refused} {
		if body != nil && !bytes.Contains(body, []byte(GIDPlaceholder)) {
			return fmt.Errorf("target %q: the submission has no gid to replace", t.URL)
		}
	}
	return nil
}

func (c Config) validateTargets() error {
	if len(c.Targets) == 0 {
		return errors.New("no target to send to")
	}
	for _, t := range c.Targets {
		if err := t.Validate(); err != nil {
			return err
		}
		if (t.Submission == nil) != (c.Targets[0].Submission == nil) {
			return errors.New("targets: some with a submission, some without")
		}
	}
	return nil
}

// targeter returns the targets in turn.
func (c Config) targeter() vegeta.Targeter {
	header := http.Header{}
	if c.Token.IsSet() {
		header.Set("Authorization", "Bearer "+c.Token.Reveal())
	}
	if c.Targets[0].Submission != nil {
		header.Set("Content-Type", "application/json")
	}
	var hits atomic.Uint64
	return func(t *vegeta.Target) error {
		target := &c.Targets[(hits.Add(1)-1)%uint64(len(c.Targets))]
		*t = vegeta.Target{Method: http.MethodPost, URL: target.URL, Header: header, Body: target.Submission}
		if target.Fail > 0 && rand.Float64() < target.Fail {
			t.Body = target.Refused
		}
		return nil
	}
}

// gids computes the gids of an attack from vegeta's sequence numbers. Only these relate a
// result to its request. The gids are empty if there is no Submission.
type gids struct{ prefix string }

const (
	gidDigits = 10
	seqHeader = "X-Vegeta-Seq"
)

func (c Config) newGIDs() gids {
	if c.Targets[0].Submission == nil {
		return gids{}
	}
	return gids{cryptorand.Text()[:len(GIDPlaceholder)-gidDigits]} // 80 random bits
}

func (g gids) of(seq uint64) string {
	if g.prefix == "" {
		return ""
	}
	digits := strconv.FormatUint(seq, 36) // enough for any run
	return g.prefix + strings.Repeat("0", gidDigits-len(digits)) + digits
}

// RoundTrip implements http.RoundTripper. It puts the gid into a submission and counts the
// requests in flight. A request ends with its answer, not when its result is recorded: that
// delay is the load generator's fault.
func (a *attack) RoundTrip(req *http.Request) (*http.Response, error) {
	a.observer.RequestSent()
	defer a.ended.Add(1)
	if req.ContentLength <= 0 {
		return a.transport.RoundTrip(req)
	}
	seq, err := strconv.ParseUint(req.Header.Get(seqHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("vegeta's request has no sequence number: %w", err)
	}
	body := make([]byte, req.ContentLength)
	if _, err := io.ReadFull(req.Body, body); err != nil {
		return nil, err
	}
	copy(body[bytes.Index(body, []byte(GIDPlaceholder)):], a.gids.of(seq))
	sent := req.WithContext(req.Context())
	// net/http repeats the request if the connection was closed before anything was sent.
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	sent.Body, _ = sent.GetBody()
	return a.transport.RoundTrip(sent)
}
