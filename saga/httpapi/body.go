package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"time"

	"sagabench/store"
)

// MaxBodyBytes bounds a request's body. It is twice the size of a saga: payloads are JSON
// inside JSON, so their quotes are escaped.
const MaxBodyBytes = 2 * store.MaxBodyBytes

// Limits on the cost of decoding bodies.
const (
	// smallBody is the size up to which a body of any content takes at most 1 MiB to
	// decode. The worst are steps without a field.
	smallBody = 32 << 10
	// maxDecoding bounds the larger bodies in memory, in bytes. The saga made of one
	// takes as much again.
	maxDecoding = 4 * MaxBodyBytes
	// decodingWait is how long a larger body waits for maxDecoding.
	decodingWait = time.Second
	// maxCommas bounds the commas outside of strings. A saga of store.MaxSteps steps
	// with every field has 6,000.
	maxCommas = 16 << 10
	// maxPooled is the largest buffer that is used again.
	maxPooled = 64 << 10
)

// decode reads the body, one JSON object, into a struct. It ignores unknown fields.
// Returns errTooLarge, errDecoding, or store.ErrInvalid.
func (a *API) decode(r *http.Request, into any) error {
	size := r.ContentLength
	if size > MaxBodyBytes {
		return errTooLarge
	}
	buffer, ok := a.bodies.Get().(*bytes.Buffer)
	if !ok {
		buffer = new(bytes.Buffer)
	}
	defer func() {
		if buffer.Cap() <= maxPooled {
			buffer.Reset()
			a.bodies.Put(buffer)
		}
	}()
	n, err := buffer.ReadFrom(io.LimitReader(r.Body, smallBody+1))
	if err == nil && n > smallBody {
		if size < 0 {
			size = MaxBodyBytes // no Content-Length
		}
		ctx, cancel := context.WithTimeout(r.Context(), decodingWait)
		defer cancel()
		if a.decoding.Acquire(ctx, size) != nil {
			return errDecoding
		}
		defer a.decoding.Release(size)
		var more int64
		more, err = buffer.ReadFrom(io.LimitReader(r.Body, MaxBodyBytes+1-n))
		n += more
	}
	switch {
	case err != nil:
		return invalid("body: %w", err)
	case n > MaxBodyBytes:
		return errTooLarge
	case n > smallBody && commas(buffer.Bytes()) > maxCommas:
		return invalid("body: more than %d values; a saga has at most %d steps", maxCommas, store.MaxSteps)
	}
	return explain("body", json.Unmarshal(buffer.Bytes(), into)) // copies, so the buffer is free again
}

// commas counts the commas outside of strings. It may stop beyond maxCommas.
func commas(text []byte) (n int) {
	for n <= maxCommas {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			return n + bytes.Count(text, []byte{','})
		}
		n += bytes.Count(text[:quote], []byte{','})
		text = text[quote+1:]
		for { // until the end of the string
			quote = bytes.IndexByte(text, '"')
			if quote < 0 {
				return n // not JSON
			}
			escapes := 0
			for escapes < quote && text[quote-1-escapes] == '\\' {
				escapes++
			}
			text = text[quote+1:]
			if escapes%2 == 0 {
				break
			}
		}
	}
	return n
}

// explain turns an error of decoding part of a request into one that names the field
// and the JSON type it wants.
func explain(part string, err error) error {
	var badType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &badType):
		return invalid("%s: no valid JSON: %w", part, err)
	case badType.Field == "":
		return invalid("%s: a JSON %.50s, must be an object", part, badType.Value)
	default:
		return invalid("%s: %s: a JSON %.50s, must be %s", part, badType.Field, badType.Value, kindName(badType.Type))
	}
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Int, reflect.Int64:
		return "an integer"
	default:
		return "an object"
	}
}
