package load

import (
	"bufio"
	"bytes"
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
// (S or F), the Unix times in µs of the request and of its answer, and the gid.
type ackFile struct {
	*output
	lines int64
}

func (f *ackFile) add(outcome store.Status, sent, answered time.Time, gid string) error {
	if _, err := fmt.Fprintf(f, "%c %d %d %s\n", outcome, sent.UnixMicro(), answered.UnixMicro(), gid); err != nil {
		return fmt.Errorf("write %s: %w", result.FileAcknowledged, err)
	}
	f.lines++
	return nil
}

// Acknowledgement is the answer to a client about one saga.
type Acknowledgement struct {
	GID            string
	Outcome        store.Status
	Sent, Answered time.Time // in µs
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
	lines.Split(wholeLines)
	for n := 1; lines.Scan(); n++ {
		ack, err := parseAck(lines.Text())
		if err != nil {
			return fmt.Errorf("read %s: line %d is %q, want OUTCOME SENT ANSWERED GID", result.FileAcknowledged, n, lines.Text())
		}
		if err := do(ack); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", result.FileAcknowledged, err)
	}
	return nil
}

func parseAck(line string) (ack Acknowledgement, err error) {
	outcome, rest, _ := strings.Cut(line, " ")
	sent, rest, _ := strings.Cut(rest, " ")
	answered, gid, _ := strings.Cut(rest, " ")
	at, err := strconv.ParseInt(sent, 10, 64)
	then, err2 := strconv.ParseInt(answered, 10, 64)
	if len(outcome) != 1 || !store.Status(outcome[0]).Final() {
		return ack, fmt.Errorf("%q is no outcome", outcome)
	}
	ack = Acknowledgement{gid, store.Status(outcome[0]), time.UnixMicro(at), time.UnixMicro(then)}
	return ack, errors.Join(err, err2, store.CheckGID(gid))
}

// wholeLines leaves out a last line without its end: on a full disk, or after a crash, a part
// of a gid would be another one.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if atEOF && bytes.IndexByte(data, '\n') < 0 {
		return len(data), nil, nil
	}
	return bufio.ScanLines(data, atEOF)
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
