package saga_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"sagabench/saga"
	"sagabench/saga/branch"
	"sagabench/store/pebblestore"
)

// A transfer between two banks. The second refuses it, so the first gets its
// money back.
func Example() {
	ctx := context.Background()
	banks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path, r.URL.Query().Get("op"))
		if r.URL.Path == "/second/deposit" {
			http.Error(w, "the account was closed", http.StatusConflict)
		}
	}))
	defer banks.Close()

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

	caller, err := branch.NewHTTP(branch.HTTPConfig{}) // which calls this machine and no other
	if err != nil {
		log.Fatal(err)
	}
	defer caller.Close()
	coordinator, err := saga.New(store, caller, saga.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	defer coordinator.Close(ctx)

	result, err := coordinator.Run(ctx, &saga.Saga{
		GID: saga.NewGID(),
		Steps: []saga.Step{
			{Action: banks.URL + "/first/withdraw", Compensate: banks.URL + "/first/refund", Payload: `{"amount":30}`},
			{Action: banks.URL + "/second/deposit", Compensate: banks.URL + "/second/reverse", Payload: `{"amount":30}`},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Status)
	fmt.Print(result.Reason)
	// Output:
	// POST /first/withdraw action
	// POST /second/deposit action
	// POST /second/reverse compensate
	// POST /first/refund compensate
	// failed
	// step 2, action: 409 Conflict: the account was closed
}
