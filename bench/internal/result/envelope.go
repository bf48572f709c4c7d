package result

// Schema is the version of the keys of summary.json. In version 1 validity had no because
// and notes, and a search had no rate that was held.
const Schema = 2

// Kind names the command that wrote a result.
type Kind string

// The kinds of results.
const (
	KindRun      Kind = "run" // of bench run, load and report --merge
	KindCapacity Kind = "capacity"
	KindCompare  Kind = "compare"
	KindPlan     Kind = "plan"
	KindLua      Kind = "lua"
	KindCheck    Kind = "check"
	KindMatrix   Kind = "matrix"
)

// Envelope is the part that results of all kinds share.
type Envelope struct {
	Schema      int         `json:"schema"`
	Kind        Kind        `json:"kind"`
	Run         Run         `json:"run"`
	Check       Check       `json:"check"`
	Validity    Validity    `json:"validity"`
	Environment Environment `json:"environment"`
}
