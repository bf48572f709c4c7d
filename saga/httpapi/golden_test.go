package httpapi

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/internal/testkit"
	"sagabench/store"
)

var update = flag.Bool("update", false, "write the golden files")

// conversation is requests and their answers, as a golden file has them: the same
// on every store.
type conversation struct {
	*site
	text strings.Builder
}

// eachOnItsLine breaks the lists of query and all.
var eachOnItsLine = strings.NewReplacer(`[{`, "[\n{", `},{`, "},\n{", `}],`, "}],\n")

func (v *conversation) ask(method, path, body string, header ...string) {
	v.t.Helper()
	r := v.do(method, path, body, header...)
	fmt.Fprintf(&v.text, "%s %s\n", method, path)
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(&v.text, "%s: %s\n", header[i], header[i+1])
	}
	if body != "" {
		fmt.Fprintln(&v.text, body)
	}
	fmt.Fprintf(&v.text, "=> %d %s\n\n", r.status, eachOnItsLine.Replace(r.body))
}

func (v *conversation) submit(body string) {
	v.ask(http.MethodPost, "/api/dtmsvr/submit", v.fill(body))
}

// fill puts the participants' address where a body has BRANCH.
func (v *conversation) fill(body string) string { return strings.ReplaceAll(body, "BRANCH", v.branch) }

// What differs from run to run.
var varying = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`"gid":"[0-9A-V]{9}[A-Z2-7]{13}"`), `"gid":"NEW"`},
	{regexp.MustCompile(`"owner":"\w{8}"`), `"owner":"OWNER"`},
}

func (v *conversation) compare(name string) {
	v.t.Helper()
	text := strings.ReplaceAll(v.text.String(), v.branch, "BRANCH")
	for _, r := range varying {
		text = r.pattern.ReplaceAllString(text, r.instead)
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(v.t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(v.t, err, "write it with -update")
	require.Equal(v.t, string(want), text)
}

func TestAPI_Golden(t *testing.T) {
	t.Parallel()
	for _, part := range []struct {
		name string
		talk func(*conversation)
	}{
		{"server", talkServer},
		{"succeeded", talkSucceeded},
		{"failed", talkFailed},
		{"concurrent", talkConcurrent},
		{"put-off", talkPutOff},
		{"force-stop", talkForceStop},
		{"unknown", talkUnknown},
		{"refused", talkRefused},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			testkit.OnEveryStore(t, func(t *testing.T, s store.Store) {
				v := &conversation{site: start(t, s, nil)}
				part.talk(v)
				v.compare(part.name)
			})
		})
	}
}

func talkServer(v *conversation) {
	v.ask("GET", "/api/ping", "")
	v.ask("PUT", "/api/ping", "")
	v.ask("GET", "/api/dtmsvr/version", "")
	v.ask("GET", "/api/dtmsvr/newGid", "")
	v.ask("POST", "/api/dtmsvr/prepare", `{"gid":"p","trans_type":"saga"}`)
	v.ask("POST", "/api/dtmsvr/prepare", `{"gid":"p","trans_type":"tcc"}`)
	for _, other := range []string{"msg", "tcc", "xa", "workflow", ""} {
		v.submit(`{"gid":"p","trans_type":"` + other + `"}`)
	}
	v.ask("GET", "/api/dtmsvr/all", "")
	v.ask("GET", "/api/dtmsvr/resetCronTime", "")
}

func talkSucceeded(v *conversation) {
	const body = `{"gid":"transfer-1","trans_type":"saga","wait_result":true,"concurrent":false,"protocol":"",
"steps":[{"action":"BRANCH/ok/out","compensate":"BRANCH/ok/out-back"},{"action":"BRANCH/ok/in","compensate":""}],
"payloads":["{\"amount\":30}",""],
"timeout_to_fail":35,"request_timeout":5,"retry_interval":7,"retry_limit":3,"retry_count":0,
"branch_headers":{"X-Tenant":"t1"},"custom_data":"{\"note\":\"mine\"}","req_extra":{"a":"b"},"a_field_of_tomorrow":[1]}`
	v.submit(body)
	v.submit(strings.Replace(body, `"wait_result":true`, `"wait_result":false`, 1))
	v.submit(strings.Replace(body, "30", "31", 1))
	v.ask("GET", "/api/dtmsvr/query?gid=transfer-1", "")
	v.ask("GET", "/api/dtmsvr/all?gid=transfer-1", "")
	v.ask("GET", "/api/dtmsvr/all?status=succeed&transType=saga", "")
	v.ask("GET", "/api/dtmsvr/all?status=failed", "")
	v.ask("GET", "/api/dtmsvr/all?status=prepared", "")
	v.ask("GET", "/api/dtmsvr/all?transType=tcc", "")
	v.ask("POST", "/api/dtmsvr/abort", `{"gid":"transfer-1","trans_type":"saga"}`)
	v.ask("POST", "/api/dtmsvr/forceStop", `{"gid":"transfer-1"}`, "Authorization", "Bearer "+adminToken)
	v.ask("POST", "/api/dtmsvr/resetNextCronTime", `{"gid":"transfer-1"}`)
}

func talkFailed(v *conversation) {
	const body = `{"gid":"transfer-2","trans_type":"saga","wait_result":true,
"steps":[{"action":"BRANCH/ok/out","compensate":"BRANCH/ok/out-back","data":"{\"amount\":30}"},
{"action":"BRANCH/refuse/in","compensate":"BRANCH/ok/in-back","data":"{\"amount\":30}"},
{"action":"BRANCH/ok/log","compensate":"BRANCH/ok/log-back","data":""}]}`
	v.submit(body)
	v.submit(body)
	v.submit(strings.Replace(body, `"wait_result":true`, `"wait_result":false`, 1))
	v.ask("GET", "/api/dtmsvr/query?gid=transfer-2", "")
	v.ask("POST", "/api/dtmsvr/abort", `{"gid":"transfer-2"}`)
	v.ask("POST", "/api/dtmsvr/forceStop", `{"gid":"transfer-2"}`, "Authorization", "Bearer "+adminToken)
	require.Equal(v.t, []string{
		"01 action /ok/out", "02 action /refuse/in", "02 compensate /ok/in-back", "01 compensate /ok/out-back",
	}, v.branches.names())
}

func talkConcurrent(v *conversation) {
	v.submit(`{"gid":"fan-1","trans_type":"saga","wait_result":true,"concurrent":true,
"custom_data":"{\"orders\":{\"2\":[0,1]},\"concurrent\":true}",
"steps":[{"action":"BRANCH/ok/a"},{"action":"BRANCH/ok/b"},{"action":"BRANCH/ok/c"}],"payloads":["1","2","3"]}`)
	v.ask("GET", "/api/dtmsvr/query?gid=fan-1", "")
	require.Equal(v.t, "03 action /ok/c", v.branches.names()[2])
}

func talkPutOff(v *conversation) {
	const gid = "stuck-1"
	v.submit(`{"gid":"stuck-1","trans_type":"saga","retry_interval":3600,
"steps":[{"action":"BRANCH/ongoing/out","compensate":"BRANCH/ok/out-back"}],"payloads":["null"]}`)
	v.until(gid, putOff)
	v.ask("GET", "/api/dtmsvr/query?gid="+gid, "")
	v.ask("GET", "/api/dtmsvr/all?status=submitted&limit=5", "")
	v.ask("GET", "/api/dtmsvr/resetCronTime?timeout=7200", "")
	calls := len(v.branches.all())
	v.ask("GET", "/api/dtmsvr/resetCronTime?timeout=3000&limit=1", "")
	v.untilCalled(calls)
	v.until(gid, putOff)
	v.ask("POST", "/api/dtmsvr/resetNextCronTime", `{"gid":"stuck-1","trans_type":"saga"}`)
	v.untilCalled(calls + 1)
	v.until(gid, putOff)
	v.ask("POST", "/api/dtmsvr/abort", `{"gid":"stuck-1","trans_type":"saga","rollback_reason":"the customer left"}`)
	v.until(gid, status("failed"))
	v.ask("GET", "/api/dtmsvr/query?gid="+gid, "")
	v.ask("POST", "/api/dtmsvr/resetNextCronTime", `{"gid":"stuck-1","trans_type":"saga"}`)
	names := v.branches.names()
	require.Equal(v.t, "01 compensate /ok/out-back", names[len(names)-1])
}

func talkForceStop(v *conversation) {
	const gid = "stuck-2"
	v.submit(`{"gid":"stuck-2","trans_type":"saga","retry_interval":3600,
"steps":[{"action":"BRANCH/broken","compensate":"BRANCH/ok/back"}],"payloads":["{}"]}`)
	v.until(gid, putOff)
	v.ask("POST", "/api/dtmsvr/forceStop", `{"gid":"stuck-2"}`)
	v.ask("POST", "/api/dtmsvr/forceStop", `{"gid":"stuck-2"}`, "Authorization", "Bearer another")
	v.ask("POST", "/api/dtmsvr/forceStop", `{"gid":"stuck-2","trans_type":"saga"}`, "Authorization", "Bearer "+adminToken)
	v.ask("GET", "/api/dtmsvr/query?gid="+gid, "")
	require.Equal(v.t, []string{"01 action /broken"}, v.branches.names())
	require.Contains(v.t, v.log.String(), "a saga is stopped by force")
}

func talkUnknown(v *conversation) {
	v.ask("GET", "/api/dtmsvr/query", "")
	v.ask("GET", "/api/dtmsvr/query?gid=nobody", "")
	v.ask("GET", "/api/dtmsvr/query?gid=no%20gid", "")
	v.ask("GET", "/api/dtmsvr/all?gid=nobody", "")
	for _, what := range []string{"abort", "resetNextCronTime", "forceStop"} {
		v.ask("POST", "/api/dtmsvr/"+what, `{"gid":"nobody"}`, "Authorization", "Bearer "+adminToken)
		v.ask("POST", "/api/dtmsvr/"+what, `{"trans_type":"saga"}`, "Authorization", "Bearer "+adminToken)
		v.ask("POST", "/api/dtmsvr/"+what, `{"gid":"nobody","trans_type":"xa"}`, "Authorization", "Bearer "+adminToken)
	}
}

// talkRefused is what is wrong with requests, and what is said of it.
func talkRefused(v *conversation) {
	for _, body := range []string{
		``, `[]`, `null`, `"saga"`, `{"gid":`, `{"gid":"g"} {}`,
		`{"gid":7,"trans_type":"saga"}`,
		`{"gid":"g","trans_type":"saga","steps":{}}`,
		`{"gid":"g","trans_type":"saga","steps":["BRANCH/ok"]}`,
		`{"gid":"g","trans_type":"saga","steps":[{"action":1}]}`,
		`{"gid":"g","trans_type":"saga","payloads":[{}]}`,
		`{"gid":"g","trans_type":"saga","timeout_to_fail":"35"}`,
		`{"gid":"g","trans_type":"saga","timeout_to_fail":1.5}`,
		`{"gid":"g","trans_type":"saga","wait_result":"yes"}`,
		`{"gid":"g","trans_type":"saga","branch_headers":["a"]}`,
		`{"gid":"g","trans_type":"saga","branch_headers":{"a":1}}`,
	} {
		v.submit(body)
	}
	// One thing is wrong with each.
	for _, fields := range []string{
		`"gid":""`, `"gid":"a b"`, `"gid":"` + strings.Repeat("g", store.MaxGIDBytes+1) + `"`,
		`"protocol":"grpc"`,
		`"steps":[]`,
		`"payloads":[]`, `"payloads":["1"]`,
		`"steps":[{"action":"ftp://127.0.0.1/"},{}]`,
		`"steps":[{"action":"http://10.0.0.1/"},{}]`,
		`"timeout_to_fail":-1`, `"timeout_to_fail":9223372036854775807`,
		`"request_timeout":601`, `"retry_interval":86401`, `"retry_limit":-1`,
		`"branch_headers":{"Host":"x"}`, `"branch_headers":{"a b":"x"}`, `"branch_headers":{"A":"\n"}`,
		`"branch_headers":{"connection":"close"}`, `"branch_headers":{"Content-Length":"1"}`, `"branch_headers":{"Transfer-Encoding":"chunked"}`,
		`"custom_data":"{\"note\":\"\u0000\"}"`,
		`"custom_data":"no JSON"`, `"custom_data":"[]"`,
		`"custom_data":"{\"concurrent\":\"yes\"}"`,
		`"custom_data":"{\"concurrent\":true,\"orders\":{\"one\":[0]}}"`,
		`"custom_data":"{\"concurrent\":true,\"orders\":{\"1\":[\"0\"]}}"`,
		`"custom_data":"{\"concurrent\":true,\"orders\":{\"1\":[2]}}"`,
		`"custom_data":"{\"concurrent\":true,\"orders\":{\"2\":[0]}}"`,
		`"custom_data":"{\"concurrent\":true,\"orders\":{\"0\":[1],\"1\":[0]}}"`,
		`"custom_data":"{\"orders\":{\"0\":[1]}}"`,
	} {
		// The later of two fields of one name counts.
		v.submit(`{"gid":"g","trans_type":"saga","steps":[{"action":"BRANCH/ok"},{"action":"BRANCH/ok"}],"payloads":["1","2"],` + fields + `}`)
	}
	for _, query := range []string{
		"status=done", "limit=0", "limit=1001", "limit=ten", "createTimeStart=yesterday", "createTimeEnd=-1",
	} {
		v.ask("GET", "/api/dtmsvr/all?"+query, "")
	}
	v.ask("GET", "/api/dtmsvr/resetCronTime?timeout=soon", "")
	v.ask("GET", "/api/dtmsvr/resetCronTime?limit=0", "")
	v.ask("POST", "/api/dtmsvr/abort", `{"gid":["g"]}`)
	require.Empty(v.t, v.branches.all())
}
