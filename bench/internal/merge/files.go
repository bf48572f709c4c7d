package merge

import (
	"errors"
	"fmt"
	"io"
	"os"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"sagabench/bench/internal/result"
)

// Files writes the merged raw files of several hosts into a directory: requests, latencies
// and acknowledged sagas. results.bin is encoded again, because it cannot be appended. It
// returns an error that wraps ErrMerge for files of vegeta attack, which have only requests.
func Files(into string, dirs ...string) error {
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return fmt.Errorf("write a merged result: %w: %s is a file of vegeta attack: without --out the result is shown", ErrMerge, dir)
		}
	}
	if err := os.MkdirAll(into, 0o700); err != nil {
		return fmt.Errorf("make the result directory: %w", err)
	}
	if err := result.WriteFile(into, result.FileResults, func(w io.Writer) error { return mergeResults(w, dirs) }); err != nil {
		return err
	}
	for _, name := range []string{result.FileHistogramLog, result.FileAcknowledged} {
		if err := result.WriteFile(into, name, func(w io.Writer) error { return appendAll(w, name, dirs) }); err != nil {
			return err
		}
	}
	return nil
}

func appendAll(w io.Writer, name string, dirs []string) error {
	for _, dir := range dirs {
		f, err := result.OpenFile(dir, name)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func mergeResults(w io.Writer, dirs []string) error {
	encode := vegeta.NewEncoder(w)
	for _, dir := range dirs {
		f, err := result.OpenFile(dir, result.FileResults)
		if err != nil {
			return err
		}
		err = copyResults(encode, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return nil
}

func copyResults(encode vegeta.Encoder, r io.Reader) error {
	for decode := vegeta.NewDecoder(r); ; {
		var one vegeta.Result
		if err := decode(&one); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := encode(&one); err != nil {
			return err
		}
	}
}
