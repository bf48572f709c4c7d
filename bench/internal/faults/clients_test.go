package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clients submit sagas to the hosts in turn, each until one acknowledges it, and read
// their status.
type clients struct {
	t            *testing.T
	round        string // begins every gid
	seed         uint64
	participants string
	http         http.Client

	mu           sync.Mutex
	hosts        []*host // that requests go to
	acknowledged []string
	submits      map[string]period   // from the first request to the acknowledgement
	failures     []period            // requests to submit that failed
	seen         map[string]string   // the last status that a read showed
	backwards    map[string][]string // by saga: reads that showed an earlier status than one before
}

// period is a span of time.
type period struct{ from, to time.Time }

func (p period) overlaps(other period) bool {
	return !p.to.Before(other.from) && !other.to.Before(p.from)
}

const api = "/api/dtmsvr"

// submitting submits sagas until ctx ends and the last saga is acknowledged.
func (c *clients) submitting(ctx context.Context, client int) {
	for n := 0; ctx.Err() == nil; n++ {
		p := planOf(c.seed, fmt.Sprintf("%s-%d-%d", c.round, client, n))
		body, first := p.submission(c.participants), time.Now()
		for try := 0; ; try++ {
			began := time.Now()
			status, answer, err := c.do(http.MethodPost, c.host(client+n+try), "/submit", body)
			if err == nil && status == http.StatusOK && bytes.Contains(answer, []byte("SUCCESS")) {
				c.submitted(p.gid, period{first, time.Now()})
				break
			}
			c.failed(period{began, time.Now()})
			if err == nil && status < 500 {
				c.t.Errorf("submit %s: %d %s", p.gid, status, answer)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
	}
}

func (c *clients) submitted(gid string, during period) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acknowledged = append(c.acknowledged, gid)
	c.submits[gid] = during
}

func (c *clients) failed(during period) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, during)
}

func (c *clients) accepts() bool { return len(c.known()) > 0 }

// use sends requests to these hosts from now on.
func (c *clients) use(hosts ...*host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts = hosts
}

// host returns host n of those in use, modulo their number.
func (c *clients) host(n int) *host {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hosts[n%len(c.hosts)]
}

// reading reads acknowledged sagas from any host until ctx ends.
func (c *clients) reading(ctx context.Context) {
	for ctx.Err() == nil {
		if gids := c.known(); len(gids) > 0 {
			recent := gids[max(0, len(gids)-50):]
			c.read(c.host(rand.Int()), recent[rand.IntN(len(recent))])
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (c *clients) known() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acknowledged[:len(c.acknowledged):len(c.acknowledged)]
}

var order = map[string]int{"submitted": 1, "aborting": 2, "failed": 3, "succeed": 3}

// read returns the status of a saga from a host, or "" if it does not answer.
func (c *clients) read(from *host, gid string) (status string) {
	c.mu.Lock()
	before := c.seen[gid] // what was shown before this read began
	c.mu.Unlock()
	code, answer, err := c.do(http.MethodGet, from, "/query?gid="+gid, nil)
	if err != nil || code != http.StatusOK {
		return ""
	}
	var found struct {
		Transaction *struct {
			Status string `json:"status"`
		} `json:"transaction"`
	}
	require.NoError(c.t, json.Unmarshal(answer, &found), string(answer))
	status = "missing"
	if found.Transaction != nil {
		status = found.Transaction.Status
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if order[status] < order[before] || order[status] == 3 && order[before] == 3 && status != before || status == "missing" {
		c.backwards[gid] = append(c.backwards[gid], fmt.Sprintf("%q, and then %q", before, status))
	}
	if order[status] > order[c.seen[gid]] {
		c.seen[gid] = status
	}
	return status
}

func (c *clients) do(method string, to *host, path string, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, to.url+api+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
