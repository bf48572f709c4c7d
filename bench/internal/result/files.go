package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
)

// The files of a result directory. The first three are written during the run, the others
// from them.
const (
	FileResults      = "results.bin"      // every request of the measured part, as vegeta encodes it
	FileHistogramLog = "latency.hlog"     // latencies of each second
	FileAcknowledged = "acknowledged.log" // the sagas that were acknowledged, warm-up included
	FileSummary      = "summary.json"
	FilePercentiles  = "latency.hgrm" // percentiles of the latency in milliseconds
	FilePage         = "report.html"
	FileMarkdown     = "report.md" // the same as text
)

// Create makes a file of a result. Only the user who runs the program can read it: it names
// hosts, and contains the logs of servers.
func Create(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// OpenFile opens a file of a result. Results come from other hosts, too: what is no file, as a link to
// a device, could be read for ever.
func OpenFile(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	return os.Open(path)
}

// maxSummaryBytes limits summary.json, which is read whole. A search of hours has a few MiB.
const maxSummaryBytes = 256 << 20

// readFile reads summary.json.
func readFile(dir string) ([]byte, error) {
	f, err := OpenFile(dir, FileSummary)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxSummaryBytes {
		return nil, fmt.Errorf("%s has %d bytes, must be at most %d", f.Name(), info.Size(), maxSummaryBytes)
	}
	return io.ReadAll(f)
}

// MakeDir makes the directory of a result. It returns an error if it is not empty.
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the result directory: %w", err)
	}
	return CheckDir(dir)
}

// ClaimDir makes the directory of a result that takes a while. It returns an error if the
// directory is not empty, or another run has claimed it. The claim is the file that becomes
// summary.json.
func ClaimDir(dir string) error {
	if err := MakeDir(dir); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, FileSummary+unfinished), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return CheckDir(dir)
	} else if err != nil {
		return fmt.Errorf("the result directory: %w", err)
	}
	return f.Close()
}

// NewDir makes the directory of a result whose name nobody chose. If there is one of that name,
// it adds a number: results that begin in the same second do not share a directory.
func NewDir(name string) (dir string, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", fmt.Errorf("the result directory: %w", err)
	}
	dir = name
	for n := 2; ; n++ {
		if err = os.Mkdir(dir, 0o700); err == nil {
			return dir, nil
		} else if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("the result directory: %w", err)
		}
		dir = fmt.Sprintf("%s-%d", name, n)
	}
}

// CheckDir returns an error if the directory is not empty, so that no other result is
// overwritten. The directory may be absent.
func CheckDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the result directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: choose another directory for the result", dir)
	}
	return nil
}

// Write writes summary.json into the directory, and latency.hgrm if latency.hlog exists. It
// returns the contents of latency.hlog, empty without that file.
func Write(dir string, s Summary) (Recording, error) {
	rec, err := ReadRecording(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return rec, err
	}
	if rec.Latency != nil {
		err := WriteFile(dir, FilePercentiles, func(w io.Writer) error {
			_, err := rec.Latency.PercentilesPrint(w, 5, 1000)
			return err
		})
		if err != nil {
			return rec, err
		}
	}
	return rec, WriteSummary(dir, s)
}

// WriteSummary writes a result of any kind as summary.json into the directory, which it
// makes if it is absent.
func WriteSummary(dir string, result any) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the result directory: %w", err)
	}
	return WriteFile(dir, FileSummary, func(w io.Writer) error { return Encode(w, result) })
}

// Read returns the summary and the histograms of a run's result directory. A
// directory without latency.hlog gives an empty Recording.
func Read(dir string) (Summary, Recording, error) {
	r, err := ReadResult(dir)
	if err != nil {
		return Summary{}, Recording{}, err
	}
	if r.Run == nil {
		return Summary{}, Recording{}, fmt.Errorf("%s: not the result of one run", dir)
	}
	return *r.Run, r.Recording, nil
}

// Encode writes a result as JSON. Lists and maps without entries are empty, not null.
func Encode(w io.Writer, result any) error {
	whole := reflect.New(reflect.TypeOf(result)).Elem()
	whole.Set(reflect.ValueOf(result))
	fillEmpty(whole)
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(whole.Interface()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// fillEmpty replaces the nil lists and maps of a result by empty ones.
func fillEmpty(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillEmpty(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fillEmpty(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fillEmpty(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	}
}

// ReadRecording reads latency.hlog of a result directory.
func ReadRecording(dir string) (Recording, error) {
	f, err := OpenFile(dir, FileHistogramLog)
	if err != nil {
		return Recording{}, fmt.Errorf("open the histogram log: %w", err)
	}
	defer f.Close()
	return ReadHistogramLog(f)
}

// unfinished ends the name of a file that is being written.
const unfinished = ".new"

// WriteFile writes a file of a result completely or not at all.
func WriteFile(dir, name string, write func(io.Writer) error) (err error) {
	f, err := Create(dir, name+unfinished)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}
