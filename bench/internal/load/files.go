package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
	"sagabench/store"
)

// files are written during the measured part.
type files struct {
	results    *output
	encode     vegeta.Encoder
	histograms *output
	log        *result.HistogramLog
}

func createFiles(dir string, began time.Time) (*files, error) {
	results, err := createOutput(dir, result.FileResults)
	if err != nil {
		return nil, err
	}
	histograms, err := createOutput(dir, result.FileHistogramLog)
	if err != nil {
		return nil, errors.Join(err, results.close())
	}
	log, err := result.NewHistogramLog(histograms, began)
	if err != nil {
		return nil, errors.Join(err, results.close(), histograms.close())
	}
	return &files{results, vegeta.NewEncoder(results), histograms, log}, nil
}

// add writes one result without headers and body, which would be most of the file. An
// entry takes about 100 bytes and 0.5 µs of CPU.
func (f *files) add(r *vegeta.Result) error {
	r.Headers, r.Body = nil, nil
	if err := f.encode(r); err != nil {
		return fmt.Errorf("write %s: %w", result.FileResults, err)
	}
	return nil
}

// close completes the files with the service times of the measured part.
func (f *files) close(service *hdrhistogram.Histogram, began, ended time.Time) error {
	return errors.Join(f.log.Service(service, began, ended), f.histograms.close(), f.results.close())
}

// ackFile lists the acknowledged sagas. A line has the outcome as the byte of store.Status
// (S or F), the Unix time in seconds of the request, and the gid.
type ackFile struct {
	*output
	lines int64
}

func (f *ackFile) add(outcome store.Status, sent time.Time, gid string) error {
	if _, err := fmt.Fprintf(f, "%c %d %s\n", outcome, sent.Unix(), gid); err != nil {
		return fmt.Errorf("write %s: %w", result.FileAcknowledged, err)
	}
	f.lines++
	return nil
}

// Acknowledgement is the answer to a client about one saga.
type Acknowledgement struct {
	GID     string
	Outcome store.Status
	Sent    time.Time // rounded down to the second
}

// Acknowledged calls do with each acknowledged saga of a result directory, in the order
// of the answers. It ends with the first error of do.
func Acknowledged(dir string, do func(Acknowledgement) error) error {
	f, err := os.Open(filepath.Join(dir, result.FileAcknowledged))
	if err != nil {
		return fmt.Errorf("read the acknowledged sagas: %w", err)
	}
	defer f.Close()
	return readAckFile(f, do)
}

func readAckFile(r io.Reader, do func(Acknowledgement) error) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		outcome, rest, _ := strings.Cut(lines.Text(), " ")
		second, gid, _ := strings.Cut(rest, " ")
		sent, err := strconv.ParseInt(second, 10, 64)
		if len(outcome) != 1 || !store.Status(outcome[0]).Final() || err != nil || store.CheckGID(gid) != nil {
			return fmt.Errorf("read %s: line %d is %q, want OUTCOME SECOND GID", result.FileAcknowledged, n, lines.Text())
		}
		if err := do(Acknowledgement{gid, store.Status(outcome[0]), time.Unix(sent, 0)}); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", result.FileAcknowledged, err)
	}
	return nil
}

// output is a buffered file.
type output struct {
	*bufio.Writer
	file *os.File
}

func createOutput(dir, name string) (*output, error) {
	f, err := result.Create(dir, name)
	if err != nil {
		return nil, fmt.Errorf("create a file of the result: %w", err)
	}
	return &output{bufio.NewWriterSize(f, 64<<10), f}, nil
}

func (o *output) close() error {
	if err := errors.Join(o.Flush(), o.file.Close()); err != nil {
		return fmt.Errorf("complete a file of the result: %w", err)
	}
	return nil
}
