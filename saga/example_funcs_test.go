package saga_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/store/pebblestore"
)

// A trip is booked by functions of this program: flight and hotel at once, and
// when there are both, a car. The hotel is full, so what may have been booked is
// cancelled.
func ExampleFuncs() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "saga-example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	storeConfig := pebblestore.DefaultConfig()
	storeConfig.Dir = dir
	store, err := pebblestore.Open(ctx, storeConfig)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	funcs := branch.NewFuncs(nil)
	book := funcs.Handle("book", func(_ context.Context, c saga.Call) error {
		if c.Payload == `"hotel"` {
			return fmt.Errorf("%w: no room left", branch.ErrRefused)
		}
		return nil
	})
	cancel := funcs.Handle("cancel", func(_ context.Context, c saga.Call) error {
		fmt.Println("cancel", c.Payload)
		return nil
	})

	coordinator, err := saga.New(store, funcs, saga.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	defer coordinator.Close(ctx)
	result, err := coordinator.Run(ctx, &saga.Saga{
		GID:        saga.NewGID(),
		Concurrent: true,
		Steps: []saga.Step{
			{Action: book, Compensate: cancel, Payload: `"flight"`},
			{Action: book, Compensate: cancel, Payload: `"hotel"`},
			{Action: book, Compensate: cancel, Payload: `"car"`, After: []int{0, 1}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Status, "because of", result.Reason)
	// Unordered output:
	// cancel "flight"
	// cancel "hotel"
	// failed because of step 2, action: refused: no room left
}
