package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"time"

	"github.com/gin-gonic/gin"

	"sagabench/store"
)

// MaxBodyBytes bounds a request's body: twice what a saga may hold, as payloads
// are JSON inside JSON, and their quotes are escaped.
const MaxBodyBytes = 2 * store.MaxBodyBytes

// Limits on what bodies cost while they are decoded.
const (
	// smallBody is the size up to which a body costs little whatever is in it: at
	// worst 1 MiB, of steps without a field. Larger ones are counted and scanned.
	smallBody = 32 << 10
	// maxDecoding bounds the bytes of all larger bodies that are in memory at once.
	// The saga that is made of one takes as much again.
	maxDecoding = 4 * MaxBodyBytes
	// decodingWait is how long a larger body waits for others to be decoded.
	decodingWait = time.Second
	// maxCommas bounds those outside of strings. A saga of store.MaxSteps steps with
	// all that a submit knows has 6,000.
	maxCommas = 16 << 10
	// maxKept is how large a buffer may have grown that is kept for others.
	maxKept = 64 << 10
)

// decode reads the body, one JSON object, into a struct. Fields that the struct
// does not have are ignored.
func (a *API) decode(c *gin.Context, into any) error {
	size := c.Request.ContentLength
	if size > MaxBodyBytes {
		return errTooLarge
	}
	buffer, ok := a.bodies.Get().(*bytes.Buffer)
	if !ok {
		buffer = new(bytes.Buffer)
	}
	defer func() {
		if buffer.Cap() <= maxKept {
			buffer.Reset()
			a.bodies.Put(buffer)
		}
	}()
	n, err := buffer.ReadFrom(io.LimitReader(c.Request.Body, smallBody+1))
	if err == nil && n > smallBody {
		if size < 0 {
			size = MaxBodyBytes // it does not say
		}
		ctx, cancel := context.WithTimeout(c.Request.Context(), decodingWait)
		defer cancel()
		if a.decoding.Acquire(ctx, size) != nil {
			return errDecoding
		}
		defer a.decoding.Release(size)
		var more int64
		more, err = buffer.ReadFrom(io.LimitReader(c.Request.Body, MaxBodyBytes+1-n))
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
	return explain("body", json.Unmarshal(buffer.Bytes(), into)) // which copies all that it takes
}

// commas counts those that stand outside of strings, up to maxCommas and a few more.
func commas(text []byte) (n int) {
	for n <= maxCommas {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			return n + bytes.Count(text, []byte{','})
		}
		n += bytes.Count(text[:quote], []byte{','})
		text = text[quote+1:]
		for { // to the end of the string
			quote = bytes.IndexByte(text, '"')
			if quote < 0 {
				return n // it is no JSON
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

// explain says in the words of the request what is wrong with the JSON of a part
// of it.
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
