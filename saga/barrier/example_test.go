package barrier_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	"sagabench/deploy/lab"
	"sagabench/saga/barrier"
)

// A bank takes 30 from an account, once, however often it is asked.
func Example() {
	db := bankWhereAdaHas50()
	defer db.Close()

	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := barrier.FromQuery(r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		err = b.Call(r.Context(), db, barrier.MySQL, func(tx *sql.Tx) error {
			result, err := tx.Exec("UPDATE account SET balance = balance - 30 WHERE id = 'Ada' AND balance >= 30")
			if err != nil {
				return err
			}
			if rows, err := result.RowsAffected(); err != nil || rows == 0 {
				return errors.Join(err, barrier.ErrRefused)
			}
			return nil
		})
		switch {
		case err == nil:
		case errors.Is(err, barrier.ErrRefused):
			http.Error(w, err.Error(), http.StatusConflict)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	defer bank.Close()

	for _, gid := range []string{"order-1", "order-1", "order-2"} {
		response, err := http.Post(bank.URL+"?trans_type=saga&branch_id=01&op=action&gid="+gid, "", nil)
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		var balance int
		if err := db.QueryRow("SELECT balance FROM account WHERE id = 'Ada'").Scan(&balance); err != nil {
			log.Fatal(err)
		}
		fmt.Println(gid, response.Status, balance)
	}
	// Output:
	// order-1 200 OK 20
	// order-1 200 OK 20
	// order-2 409 Conflict 20
}

// A seat is reserved unless it is taken, by a script of one's own.
func ExampleBarrier_CallRedis() {
	ctx := context.Background()
	server, err := lab.Redis.Start(ctx, lab.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: server.Password()})
	defer rdb.Close()

	reserve := barrier.NewScript(`
		if redis.call('EXISTS', KEYS[1]) == 1 then
			return 'the seat is taken'
		end
		redis.call('SET', KEYS[1], ARGV[1])`)
	for _, gid := range []string{"trip-1", "trip-1", "trip-2"} {
		b := &barrier.Barrier{TransType: "saga", GID: gid, BranchID: "01", Op: "action"}
		err := b.CallRedis(ctx, rdb, 7*24*time.Hour, reserve, []string{"seat:12A"}, "Ada")
		fmt.Println(gid, err)
	}
	// Output:
	// trip-1 <nil>
	// trip-1 <nil>
	// trip-2 refused: the seat is taken
}

func bankWhereAdaHas50() *sql.DB {
	db, err := openDB(barrier.MySQL, "bank", "")
	if err != nil {
		log.Fatal(err)
	}
	for _, statement := range []string{
		"DELETE FROM dtm_barrier.barrier WHERE gid LIKE 'order-%'",
		"REPLACE INTO account VALUES ('Ada', 50)",
	} {
		if _, err := db.Exec(statement); err != nil {
			log.Fatal(err)
		}
	}
	return db
}
