// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
)

// The maximum sizes of requests in bytes.
const (
	maxAPI    = 256 << 10
	maxCall   = 1 << 20                      // a Connect message
	maxCode   = 6*document.MaxCode + 128<<10 // every byte of the code escaped, and its variables
	maxUpload = 1<<30 + 1<<20                // files of 1 GiB, and their form
)

// How long a client may take to send a body, or to read a message.
const (
	bodyTime  = 5 * time.Minute
	writeTime = 2 * time.Minute
)

// readBody reads the whole body of at most max bytes.
func readBody(w http.ResponseWriter, r *http.Request, max int64) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, refuseRequest(unimplemented, "the content encoding %q is not supported", e)
	}
	timed := http.NewResponseController(w)
	_ = timed.SetReadDeadline(time.Now().Add(bodyTime))
	defer func() { _ = timed.SetReadDeadline(time.Time{}) }()
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	return data, bodyError(err)
}

func bodyError(err error) error {
	var long *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &long):
		return refuseRequest(resourceExhausted, "the request has more than %d bytes", long.Limit)
	}
	return refuseRequest(canceled, "cannot read the request: %v", err)
}

// decodeStrictly reads one JSON document strictly. No data is an empty document.
func decodeStrictly[T any](data []byte) (out T, err error) {
	if len(data) == 0 {
		return out, nil
	}
	if err := strictjson.Decode(data, &out); err != nil {
		return out, refuseRequest(invalidArgument, "invalid request: %v", err)
	}
	return out, nil
}

// checkContentType checks the media type of a request.
func checkContentType(r *http.Request, want string) error {
	if got, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); got != want {
		return refuseRequest(invalidArgument, "the content type is %q, not %s", got, want)
	}
	return nil
}

// serveUnary serves a Connect call with one answer.
func serveUnary[In any](s *Server, f func(ctx context.Context, b *sandbox, in In) (any, error)) http.HandlerFunc {
	return s.serveInSandbox(envdPort, failConnect, func(w http.ResponseWriter, r *http.Request, b *sandbox) error {
		if err := checkContentType(r, "application/json"); err != nil {
			return err
		}
		data, err := readBody(w, r, maxCall)
		if err != nil {
			return err
		}
		in, err := decodeStrictly[In](data)
		if err != nil {
			return err
		}
		out, err := f(r.Context(), b, in)
		if err == nil {
			sendAnswer(w, http.StatusOK, out)
		}
		return err
	})
}

// A stream sends the messages of one Connect call.
type stream struct {
	w     http.ResponseWriter
	r     *http.Request
	began bool // something was sent
}

const (
	frameHead = 5 // flags and length
	flagEnd   = 2
)

// sendMessage sends a message. An error means that the client has gone.
func (s *stream) sendMessage(message any) error { return s.sendFrame(0, message) }

func (s *stream) sendFrame(flags byte, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	s.began = true
	head := binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(data)))
	return writeWithDeadline(s.w, append(head, data...))
}

// writeWithDeadline sends data within writeTime. The connection's next answer has its own time.
func writeWithDeadline(w http.ResponseWriter, data []byte) error {
	timed := http.NewResponseController(w)
	_ = timed.SetWriteDeadline(time.Now().Add(writeTime))
	defer func() { _ = timed.SetWriteDeadline(time.Time{}) }()
	_, err := w.Write(data)
	return errors.Join(err, timed.Flush())
}

// sendEnd sends the last message, which says how the call ended.
func (s *stream) sendEnd(err error) {
	last := map[string]any{}
	if err != nil {
		r := refusalOf(err)
		last["error"] = map[string]any{"code": r.code, "message": r.message}
	}
	_ = s.sendFrame(flagEnd, last)
}

// parseTimeout returns the duration of the header Connect-Timeout-Ms; 0 if there is none.
func (s *stream) parseTimeout() (time.Duration, error) {
	value := s.r.Header.Get("Connect-Timeout-Ms")
	if value == "" {
		return 0, nil
	}
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil || ms <= 0 || len(value) > 10 {
		return 0, refuseRequest(invalidArgument, "invalid header Connect-Timeout-Ms: %q", value)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// serveStreaming serves a Connect call with a stream of answers. Its errors are the stream's last
// message: the SDK does not read them elsewhere.
func serveStreaming[In any](
	s *Server, f func(ctx context.Context, b *sandbox, in In, out *stream) error,
) http.HandlerFunc {
	fail := func(w http.ResponseWriter, err error) {
		w.Header().Set("Content-Type", "application/connect+json")
		(&stream{w: w}).sendEnd(err)
	}
	return s.serveInSandbox(envdPort, fail, func(w http.ResponseWriter, r *http.Request, b *sandbox) error {
		if err := checkContentType(r, "application/connect+json"); err != nil {
			return err
		}
		data, err := readBody(w, r, maxCall+frameHead)
		if err != nil {
			return err
		}
		message, err := parseFrame(data)
		if err != nil {
			return err
		}
		in, err := decodeStrictly[In](message)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/connect+json")
		out := &stream{w: w, r: r}
		err = f(r.Context(), b, in, out)
		if out.began {
			b.cutOff()
		}
		out.sendEnd(err)
		return nil
	})
}

// cutOff ends the connection of a stream whose sandbox has ended. The SDK then
// asks for the sandbox's health, and reports that it has ended.
func (b *sandbox) cutOff() {
	if b.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// parseFrame returns the message of a request that has exactly one.
func parseFrame(data []byte) ([]byte, error) {
	switch {
	case len(data) < frameHead:
		return nil, refuseRequest(invalidArgument, "the request has %d bytes, which is not a Connect message",
			len(data))
	case data[0] != 0:
		return nil, refuseRequest(invalidArgument, "unsupported flags %#x of a Connect message", data[0])
	case uint64(binary.BigEndian.Uint32(data[1:])) != uint64(len(data)-frameHead):
		return nil, refuseRequest(invalidArgument, "the Connect message has %d bytes, its head says %d",
			len(data)-frameHead, binary.BigEndian.Uint32(data[1:]))
	}
	return data[frameHead:], nil
}
