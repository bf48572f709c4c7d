package saga

import (
	"errors"

	"sagabench/store"
)

var (
	// ErrBusy: the limit of submitted sagas under way is reached. Nothing was written.
	// Submit the saga again later, or to another coordinator.
	ErrBusy = errors.New("too many sagas under way")

	// ErrUnknown: the store did not answer, so the saga may or may not have been accepted.
	// Submitting the same saga again resolves it.
	ErrUnknown = errors.New("the store did not confirm the saga")

	// ErrEndUnknown: the store has the saga no longer, and it is not known how it ended.
	// It was lost, or it ended and is not kept. The effects of its branches remain.
	ErrEndUnknown = errors.New("it is not known how the saga ended")

	// ErrNotEnded: waiting for the end of the saga has stopped. The saga goes on.
	ErrNotEnded = errors.New("the saga goes on")

	// ErrEnded: the saga has ended in another way than the control command asks for.
	ErrEnded = errors.New("the saga has ended")
)

// RedactError returns what an answer may say about an error that the client did not cause.
// The text of a store's error holds its address, and is for the log.
func RedactError(err error) string {
	text := "the store does not answer as it should"
	switch {
	case errors.Is(err, ErrUnknown):
		text = ErrUnknown.Error()
	case errors.Is(err, store.ErrClosed):
		text = store.ErrClosed.Error()
	}
	return text + "; the server's log has the details"
}
