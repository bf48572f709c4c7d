package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"

	"github.com/gin-gonic/gin"

	"sagabench/store"
)

// MaxBodyBytes bounds a request's body: twice what a saga may hold, as payloads
// are JSON inside JSON, and their quotes are escaped.
const MaxBodyBytes = 2 * store.MaxBodyBytes

// maxKeptBytes is how large a buffer may have grown that is kept for others.
const maxKeptBytes = 64 << 10

// decode reads the body, one JSON object, into a struct. Fields that the struct
// does not have are ignored.
func (a *API) decode(c *gin.Context, into any) error {
	if c.Request.ContentLength > MaxBodyBytes {
		return errTooLarge
	}
	buffer, ok := a.bodies.Get().(*bytes.Buffer)
	if !ok {
		buffer = new(bytes.Buffer)
	}
	defer func() {
		if buffer.Cap() <= maxKeptBytes {
			buffer.Reset()
			a.bodies.Put(buffer)
		}
	}()
	n, err := buffer.ReadFrom(io.LimitReader(c.Request.Body, MaxBodyBytes+1))
	switch {
	case err != nil:
		return invalid("body: %w", err)
	case n > MaxBodyBytes:
		return errTooLarge
	}
	return explain("body", json.Unmarshal(buffer.Bytes(), into)) // which copies all that it takes
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
		return invalid("%s: a JSON %s, must be an object", part, badType.Value)
	default:
		return invalid("%s: %s: a JSON %s, must be %s", part, badType.Field, badType.Value, kindName(badType.Type))
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
