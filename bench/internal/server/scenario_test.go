package server

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sagabench/store"
)

func TestScenario_With_TakesWhatTheQuerySays(t *testing.T) {
	t.Parallel()
	base := Scenario{Steps: 3, Branches: BranchesHTTP, Payload: 7, Fail: 0.25}
	for query, want := range map[string]Scenario{
		"":                   base,
		"steps=1":            {Steps: 1, Branches: BranchesHTTP, Payload: 7, Fail: 0.25},
		"steps=1000":         {Steps: 1000, Branches: BranchesHTTP, Payload: 7, Fail: 0.25},
		"branches=empty":     {Steps: 3, Branches: BranchesEmpty, Payload: 7, Fail: 0.25},
		"branches=h%74tp":    base,
		"payload=0":          {Steps: 3, Branches: BranchesHTTP, Payload: 0, Fail: 0.25},
		"payload=1048576":    {Steps: 3, Branches: BranchesHTTP, Payload: 1 << 20, Fail: 0.25},
		"fail=0":             {Steps: 3, Branches: BranchesHTTP, Payload: 7, Fail: 0},
		"fail=1":             {Steps: 3, Branches: BranchesHTTP, Payload: 7, Fail: 1},
		"fail=1e-3":          {Steps: 3, Branches: BranchesHTTP, Payload: 7, Fail: 0.001},
		"steps=2&steps=4":    {Steps: 4, Branches: BranchesHTTP, Payload: 7, Fail: 0.25},
		"fail=.5&steps=%319": {Steps: 19, Branches: BranchesHTTP, Payload: 7, Fail: 0.5},
	} {
		got, err := base.with(query)
		require.NoError(t, err, query)
		require.Equal(t, want, got, query)
	}
}

func TestScenario_With_NamesTheParameterAndItsLimit(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"steps=0":                    "steps: 0, must be 1 to 1000",
		"steps=1001":                 "steps: 1001, must be 1 to 1000",
		"steps=-1":                   "steps: -1, must be 1 to 1000",
		"steps=":                     `steps: "" is not a number, or too large`,
		"steps":                      `steps: "" is not a number, or too large`,
		"steps=two":                  `steps: "two" is not a number, or too large`,
		"steps=99999999999999999999": `steps: "99999999999999999999" is not a number, or too large`,
		"steps=%zz":                  `steps: "%zz" is not a number, or too large`,
		"branches=":                  `branches: "", must be empty or http`,
		"branches=HTTP":              `branches: "HTTP", must be empty or http`,
		"payload=-1":                 "payload: -1 bytes, must be 0 to 1048576",
		"payload=1048577":            "payload: 1048577 bytes, must be 0 to 1048576",
		"payload=1KiB":               `payload: "1KiB" is not a number, or too large`,
		"payload=1048576&steps=5":    "payload: 1048576 bytes in each of 5 steps, at most 4194304 together",
		"fail=-0.1":                  "fail: -0.1, must be 0 to 1",
		"fail=1.01":                  "fail: 1.01, must be 0 to 1",
		"fail=NaN":                   "fail: NaN, must be 0 to 1",
		"fail=Inf":                   "fail: +Inf, must be 0 to 1",
		"fail=1e999":                 `fail: "1e999" is not a number, or too large`,
		"fail=often":                 `fail: "often" is not a number, or too large`,
		"step=2":                     `"step" is no parameter; known are steps, branches, payload and fail`,
		"steps=2&":                   `"" is no parameter`,
		"st%65p=2":                   `"step" is no parameter`,
	} {
		_, err := DefaultScenario().with(query)
		require.ErrorIs(t, err, store.ErrInvalid, query)
		require.ErrorContains(t, err, want, query)
	}
}

func TestScenario_Query_ReadsBackAsItself(t *testing.T) {
	t.Parallel()
	for _, want := range []Scenario{
		DefaultScenario(),
		{Steps: 1000, Branches: BranchesHTTP, Payload: 4096, Fail: 0.0001},
	} {
		got, err := Scenario{}.with(want.Query())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestPayload_IsJSONOfThatLength(t *testing.T) {
	t.Parallel()
	require.Empty(t, payload(0))
	for _, n := range []int{1, 2, 3, 100, 1 << 20} {
		text := payload(n)
		require.Len(t, text, n)
		require.True(t, json.Valid([]byte(text)), fmt.Sprint(n))
	}
}
