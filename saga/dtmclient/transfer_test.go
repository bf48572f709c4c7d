package dtmclient

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/dtm-labs/client/dtmcli"
	"github.com/go-redis/redis/v8"
	"github.com/stretchr/testify/require"

	"sagabench/deploy/lab"
	"sagabench/deploy/lab/labtest"
)

// Money is moved by participants that use dtm's own barrier; some transfers are
// refused, and some answers are lost after the money has moved.
func TestSaga_TransfersLoseNothing(t *testing.T) {
	t.Parallel()
	at := start(t)
	server := labtest.Start(t, lab.Redis, lab.Config{})
	options, err := redis.ParseURL(server.URL())
	require.NoError(t, err)
	rdb := redis.NewClient(options)
	t.Cleanup(func() { rdb.Close() })
	const refused = "mallory" // who is sent nothing
	const each, amount, transfers, expiry = 1000, 30, 60, 3600
	accounts := []string{"alice", "bob", "carol", refused}
	for _, a := range accounts {
		require.NoError(t, rdb.Set(t.Context(), a, each, 0).Err())
	}

	move := func(change func(string) int) handler {
		return func(c call) error {
			account := strings.Trim(c.body, `"`)
			if account == refused && c.barrier.Op == "action" {
				return dtmcli.ErrFailure
			}
			err := c.barrier.RedisCheckAdjustAmount(rdb, account, change(c.barrier.Op), expiry)
			if err == nil && rand.IntN(4) == 0 {
				return fmt.Errorf("moved, but the answer is lost")
			}
			return err
		}
	}
	out := move(func(op string) int { return map[string]int{"action": -amount, "compensate": amount}[op] })
	in := move(func(op string) int { return map[string]int{"action": amount, "compensate": -amount}[op] })
	for endpoint, h := range map[string]handler{"TransOut": out, "TransOutCompensate": out, "TransIn": in, "TransInCompensate": in} {
		at.participants.on(endpoint, h)
	}

	var all sync.WaitGroup
	for i := range transfers {
		all.Go(func() {
			from, to := accounts[i%3], accounts[(i+1)%3]
			if i%4 == 0 {
				to = refused
			}
			s := at.saga()
			s.WaitResult = true
			s.Add(at.busi+"/TransOut", at.busi+"/TransOutCompensate", from)
			s.Add(at.busi+"/TransIn", at.busi+"/TransInCompensate", to)
			if err := s.Submit(); (err != nil) != (to == refused) {
				t.Errorf("from %s to %s: %v", from, to, err)
			}
		})
	}
	all.Wait()
	sum := 0
	for _, a := range accounts {
		n, err := rdb.Get(t.Context(), a).Int()
		require.NoError(t, err)
		sum += n
	}
	require.Equal(t, each*len(accounts), sum)
}
