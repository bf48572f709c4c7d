package load

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sagabench/bench/internal/result"
	"sagabench/store"
)

// journal is the file of the acknowledged sagas. A line is the outcome that the
// client was told, as the byte of store.Status (S or F), the second in which the
// saga was sent, as a Unix time, and the gid.
type journal struct {
	*output
	lines int64
}

func createJournal(dir string) (*journal, error) {
	o, err := createOutput(dir, result.FileAcknowledged)
	if err != nil {
		return nil, err
	}
	return &journal{output: o}, nil
}

func (j *journal) add(outcome store.Status, sent time.Time, gid string) error {
	if _, err := fmt.Fprintf(j, "%c %d %s\n", outcome, sent.Unix(), gid); err != nil {
		return fmt.Errorf("write the journal of acknowledged sagas: %w", err)
	}
	j.lines++
	return nil
}

// Acknowledgement is what a client was told of one saga.
type Acknowledgement struct {
	GID     string
	Outcome store.Status
	Sent    time.Time // when its request was sent, to the second below
}

// Acknowledged reads the journal of a result directory and calls do with each
// acknowledgement, in the order of the answers. An error of do ends it.
func Acknowledged(dir string, do func(Acknowledgement) error) error {
	f, err := os.Open(filepath.Join(dir, result.FileAcknowledged))
	if err != nil {
		return fmt.Errorf("open the journal of acknowledged sagas: %w", err)
	}
	defer f.Close()
	return readJournal(f, do)
}

func readJournal(r io.Reader, do func(Acknowledgement) error) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		told, rest, _ := strings.Cut(lines.Text(), " ")
		second, gid, _ := strings.Cut(rest, " ")
		sent, err := strconv.ParseInt(second, 10, 64)
		if len(told) != 1 || !store.Status(told[0]).Final() || err != nil || store.CheckGID(gid) != nil {
			return fmt.Errorf("read the journal of acknowledged sagas: line %d is %q", n, lines.Text())
		}
		if err := do(Acknowledgement{gid, store.Status(told[0]), time.Unix(sent, 0)}); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the journal of acknowledged sagas: %w", err)
	}
	return nil
}
