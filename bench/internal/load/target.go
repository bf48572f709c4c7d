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

// Target is where requests go: as a rule, a bench server's /bench/saga, which
// makes a saga and names it in its answer.
type Target struct {
	URL string // absolute, http or https

	// Submission is what each request posts: the JSON of a saga whose gid is
	// GIDPlaceholder, for which every request puts a gid of its own. Of the share
	// Fail, 0 to 1, Refused is posted instead. Either all targets have one or none.
	Submission, Refused []byte
	Fail                float64
}

// GIDPlaceholder stands in a submission where the gid belongs. A fresh one is as
// long.
const GIDPlaceholder = "00000000000000000000000000"

// Validate checks the target; its error names what is wrong, and holds no password.
func (t Target) Validate() error {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		var cause *url.Error
		errors.As(err, &cause)
		return fmt.Errorf("target: %w", cause.Err) // without the URL
	case u.User != nil:
		return fmt.Errorf("target %q: no place for a password, which would end up in the result", u.Redacted())
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("target %q: must be http://HOST… or https://HOST…", t.URL)
	}
	for _, body := range [][]byte{t.Submission, t.Refused} {
		if body != nil && !bytes.Contains(body, []byte(GIDPlaceholder)) {
			return fmt.Errorf("target %q: a submission without a place for the gid", t.URL)
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

// targeter hits the targets in turn.
func (c Config) targeter() vegeta.Targeter {
	header := http.Header{}
	if c.Token.IsSet() {
		header.Set("Authorization", "Bearer "+c.Token.Reveal())
	}
	withBody := header.Clone()
	withBody.Set("Content-Type", "application/json")
	var hits atomic.Uint64
	return func(t *vegeta.Target) error {
		target := &c.Targets[(hits.Add(1)-1)%uint64(len(c.Targets))]
		*t = vegeta.Target{Method: http.MethodPost, URL: target.URL, Header: header}
		if target.Submission != nil {
			t.Header, t.Body = withBody, target.Submission
			if target.Fail > 0 && rand.Float64() < target.Fail {
				t.Body = target.Refused
			}
		}
		return nil
	}
}

// gids are those of one phase, in the order of vegeta's sequence numbers: it
// hands the number on with the request and with the result, and nothing else
// that could tell which belongs to which. Where nothing is submitted they are
// empty.
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

// submitter puts the gids into submissions.
type submitter struct {
	gids gids
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s *submitter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.ContentLength <= 0 {
		return s.next.RoundTrip(req)
	}
	seq, err := strconv.ParseUint(req.Header.Get(seqHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("vegeta numbers its requests no more: %w", err)
	}
	body := make([]byte, req.ContentLength)
	if _, err := io.ReadFull(req.Body, body); err != nil {
		return nil, err
	}
	copy(body[bytes.Index(body, []byte(GIDPlaceholder)):], s.gids.of(seq))
	sent := req.WithContext(req.Context())
	// A connection may turn out to be closed before anything was written to it.
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	sent.Body, _ = sent.GetBody()
	return s.next.RoundTrip(sent)
}
