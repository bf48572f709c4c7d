package load

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sagabench/bench/internal/report"
	"sagabench/store"
)

// journal is the file of the acknowledged sagas: one line each, the outcome
// that the client was told as the byte of store.Status (S or F), a space, the
// gid.
type journal struct {
	*output
	lines int64
}

func createJournal(dir string) (*journal, error) {
	o, err := createOutput(dir, report.FileAcknowledged)
	if err != nil {
		return nil, err
	}
	return &journal{output: o}, nil
}

func (j *journal) add(outcome store.Status, gid string) error {
	if _, err := fmt.Fprintf(j, "%c %s\n", outcome, gid); err != nil {
		return fmt.Errorf("write the journal of acknowledged sagas: %w", err)
	}
	j.lines++
	return nil
}

// Acknowledged reads the journal of a result directory, in the order in which
// the answers came: do gets each saga's gid and the outcome that the client was
// told. An error of do ends it.
func Acknowledged(dir string, do func(gid string, told store.Status) error) error {
	f, err := os.Open(filepath.Join(dir, report.FileAcknowledged))
	if err != nil {
		return fmt.Errorf("open the journal of acknowledged sagas: %w", err)
	}
	defer f.Close()
	return readJournal(f, do)
}

func readJournal(r io.Reader, do func(gid string, told store.Status) error) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		told, gid, _ := strings.Cut(lines.Text(), " ")
		if len(told) != 1 || !store.Status(told[0]).Final() || store.CheckGID(gid) != nil {
			return fmt.Errorf("read the journal of acknowledged sagas: line %d is %q", n, lines.Text())
		}
		if err := do(gid, store.Status(told[0])); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the journal of acknowledged sagas: %w", err)
	}
	return nil
}
