package load

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
)

const bufferBytes = 64 << 10

// files are what the measured part is written to while it runs.
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

// add writes one result, which it empties: headers and body would be most of
// the file. Without them an entry takes about 100 bytes and 0.5 µs of CPU.
func (f *files) add(r *vegeta.Result) error {
	r.Headers, r.Body = nil, nil
	if err := f.encode(r); err != nil {
		return fmt.Errorf("write %s: %w", result.FileResults, err)
	}
	return nil
}

// close completes the files with the service times of the whole run.
func (f *files) close(service *hdrhistogram.Histogram, began, ended time.Time) error {
	return errors.Join(f.log.Service(service, began, ended), f.histograms.close(), f.results.close())
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
	return &output{bufio.NewWriterSize(f, bufferBytes), f}, nil
}

func (o *output) close() error {
	if err := errors.Join(o.Flush(), o.file.Close()); err != nil {
		return fmt.Errorf("complete a file of the result: %w", err)
	}
	return nil
}
