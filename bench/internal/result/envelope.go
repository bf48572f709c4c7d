package result

// Schema is the version of the keys of summary.json.
const Schema = 1

// Kind is which command a result is of.
type Kind string

// The kinds of results.
const (
	KindRun      Kind = "run" // of bench run, load and report --merge
	KindCapacity Kind = "capacity"
	KindCompare  Kind = "compare"
	KindPlan     Kind = "plan"
	KindLua      Kind = "lua"
	KindCheck    Kind = "check"
)

// Envelope is what the results of all kinds have in common.
type Envelope struct {
	Schema      int         `json:"schema"`
	Kind        Kind        `json:"kind"`
	Run         Run         `json:"run"`
	Check       Check       `json:"check"`
	Validity    Validity    `json:"validity"`
	Environment Environment `json:"environment"`
}
