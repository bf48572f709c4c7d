package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sagabench/internal/race"
	"sagabench/internal/testkit"
	"sagabench/saga"
	"sagabench/store/memstore"
)

// fullOf is a body of the largest size that holds an element over and over.
func fullOf(before, element, after string) string {
	return before + strings.Repeat(element+",", (MaxBodyBytes-len(before)-len(element)-len(after))/(len(element)+1)) + element + after
}

// Not parallel: it looks at what the process allocates.
func TestSubmit_ABodyOfManySmallThings_CostsLittleMoreThanItsSize(t *testing.T) {
	race.Skip(t)
	at := start(t, testkit.OpenPebble(t), nil)
	headers := new(strings.Builder)
	for i := 0; headers.Len() < MaxBodyBytes-100; i++ {
		fmt.Fprintf(headers, `"h%x":"",`, i)
	}
	orders := new(strings.Builder)
	for i := 0; orders.Len() < MaxBodyBytes-200; i++ {
		fmt.Fprintf(orders, `\"%d\":[],`, i)
	}
	for name, tt := range map[string]struct{ body, says string }{
		"steps":     {fullOf(`{"gid":"g","trans_type":"saga","steps":[`, `{}`, `]}`), "body: more than"},
		"payloads":  {fullOf(`{"gid":"g","trans_type":"saga","payloads":[`, `""`, `]}`), "body: more than"},
		"numbers":   {fullOf(`{"gid":"g","trans_type":"saga","payloads":[`, `1`, `]}`), "body: more than"},
		"ignored":   {fullOf(`{"gid":"g","trans_type":"saga","ignored":[`, `[]`, `]}`), "body: more than"},
		"headers":   {`{"gid":"g","trans_type":"saga","branch_headers":{` + headers.String() + `"h":""}}`, "body: more than"},
		"an order":  {`{"gid":"g","trans_type":"saga","steps":[{}],"payloads":[""],"custom_data":"{\"orders\":{` + orders.String() + `\"0\":[]}}"}`, "custom_data: "},
		"one value": {`{"gid":"g","trans_type":"saga","steps":[{}],"payloads":["` + strings.Repeat("1,", MaxBodyBytes/2-100) + `"]}`, "payload: "},
	} {
		require.LessOrEqual(t, len(tt.body), MaxBodyBytes)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := at.post("/api/dtmsvr/submit", tt.body)
		runtime.ReadMemStats(&after)
		require.Equal(t, http.StatusBadRequest, r.status, name+": "+r.body)
		require.Contains(t, r.body, tt.says, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*MaxBodyBytes), name)
	}
	require.Contains(t, at.post("/api/dtmsvr/abort", fullOf(`{"gid":"g","ignored":[`, `0`, `]}`)).body, "body: more than")
}

// What stands in strings does not count: payloads are JSON inside JSON.
func TestSubmit_TakesTheLargestSaga(t *testing.T) {
	t.Parallel()
	at := start(t, memstore.New(time.Hour), nil) // whose thousand writes wait for no disk
	body := at.sagaOf("large", m{"wait_result": true})
	var steps []map[string]string
	var payloads []string
	for range 1000 {
		steps = append(steps, map[string]string{"action": "", "compensate": "", "data": "x"})
		payloads = append(payloads, `{"a":"`+strings.Repeat(`,\"`, 500)+`\\"}`)
	}
	body["steps"], body["payloads"] = steps, payloads
	require.Equal(t, response{http.StatusOK, `{"dtm_result":"SUCCESS"}`}, at.submit(body))
}

// Slow senders of large bodies keep each other waiting, and nobody else.
func TestSubmit_BoundsTheBodiesInMemory(t *testing.T) {
	t.Parallel()
	at := start(t, testkit.OpenPebble(t), nil)
	const most = maxDecoding / MaxBodyBytes
	slow := make([]*io.PipeWriter, most)
	answered := make(chan int, most)
	for i := range slow {
		var body *io.PipeReader
		body, slow[i] = io.Pipe()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.url+"/api/dtmsvr/submit", body)
		require.NoError(t, err)
		request.ContentLength = MaxBodyBytes
		go func() {
			r, err := at.client.Do(request)
			if err != nil {
				answered <- 0
				return
			}
			r.Body.Close()
			answered <- r.StatusCode
		}()
		_, err = slow[i].Write(make([]byte, 2*smallBody))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		r := at.do(http.MethodPost, "/api/dtmsvr/submit", strings.Repeat(" ", 2*smallBody))
		return r.status == http.StatusServiceUnavailable && strings.Contains(r.body, "large bodies")
	}, patience, 5*time.Millisecond)
	small := `{"gid":"small","trans_type":"saga","steps":[{}],"payloads":[""]}`
	require.Equal(t, http.StatusOK, at.post("/api/dtmsvr/submit", small).status)
	for _, s := range slow {
		require.NoError(t, s.CloseWithError(io.ErrUnexpectedEOF))
	}
	for range slow {
		<-answered
	}
	large := `{"gid":"large","trans_type":"saga","steps":[{}],"payloads":["` + strings.Repeat("x", saga.MaxPayloadBytes) + `"]}`
	require.Equal(t, http.StatusOK, at.post("/api/dtmsvr/submit", large).status)
}

// What is wrong with a body is told without repeating megabytes of it.
func TestSubmit_DoesNotRepeatLongValues(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	at := start(t, testkit.OpenPebble(t), nil)
	long := strings.Repeat("\x7f", MaxBodyBytes-200) // %q makes four characters of each
	for name, body := range map[string]string{
		"a number":        `{"retry_limit":` + strings.Repeat("1", MaxBodyBytes-200) + `}`,
		"type":            `{"trans_type":"` + long + `"}`,
		"protocol":        `{"trans_type":"saga","protocol":"` + long + `"}`,
		"a header's name": `{"gid":"g","trans_type":"saga","steps":[{}],"payloads":[""],"branch_headers":{"` + long + `":""}}`,
		"a header":        `{"gid":"g","trans_type":"saga","steps":[{}],"payloads":[""],"branch_headers":{"` + strings.Repeat("x", MaxBodyBytes-200) + `":"\n"}}`,
	} {
		for _, path := range []string{"submit", "abort"} {
			r := at.post("/api/dtmsvr/"+path, body)
			require.Less(t, len(r.body), 1000, name)
			if path == "submit" {
				require.Equal(t, http.StatusBadRequest, r.status, name+": "+r.body)
			}
		}
	}
}
