package machine_test

import (
	"fmt"

	"sagabench/saga"
	"sagabench/store"
)

// label names a branch: a0 is the first action, c0 its compensation.
func label(b store.Branch) string {
	if b.IsCompensation() {
		return fmt.Sprint("c", b.Step())
	}
	return fmt.Sprint("a", b.Step())
}

// newSaga makes a saga of so many steps.
func newSaga(steps int) *saga.Saga {
	s := &saga.Saga{GID: saga.NewGID()}
	for i := range steps {
		s.Steps = append(s.Steps, saga.Step{
			Action: fmt.Sprintf("http://branch/%d/do", i), Compensate: fmt.Sprintf("http://branch/%d/undo", i), Payload: fmt.Sprint(i),
		})
	}
	return s
}
