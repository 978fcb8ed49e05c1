// SPDX-License-Identifier: Apache-2.0

// Package hello reads the first message of a TLS client, without answering it.
//
// Read reads the records that hold one ClientHello from a connection, and not a byte
// more, so that the same bytes can be forwarded. It accepts less than the standard: a
// length that is off by one, a repeated extension, a server name that is not a plain
// host name, or bytes after the message are errors, each with its reason. A message
// that two parsers could read differently is never accepted.
//
// Read returns the name that the client claims to look for. It does not protect against
// a server that serves another name under that claim; without a key this cannot be
// seen.
package hello

import (
	"errors"
	"fmt"
	"io"
)

// MaxBytes is the maximum size of a hello's records, including headers.
const MaxBytes = 16 << 10

// A Hello is the content of a ClientHello.
type Hello struct {
	// ServerName is in lower case and without a final dot; "" if none was sent.
	ServerName string
	ALPN       []string
	// Versions are the offered versions, in the client's order: TLS 1.3 is 0x0304.
	Versions []uint16
	// Encrypted reports an encrypted hello or server name (ECH, ESNI, or something that
	// looks like it): ServerName may then not be the real name.
	Encrypted bool
	// Early reports that data may follow before the server has answered.
	Early bool
}

// An Error is the reason why bytes are not an acceptable hello.
type Error struct{ Reason string }

func (e *Error) Error() string { return "invalid TLS hello: " + e.Reason }

func invalidHello(format string, args ...any) error {
	return &Error{Reason: fmt.Sprintf(format, args...)}
}

const (
	recordHeader    = 5
	maxRecord       = 1 << 14
	recordHandshake = 22
	messageHeader   = 4
	clientHello     = 1
)

// Read reads one ClientHello from r and returns it with the bytes it was read from. An
// error of r other than the end of its input is returned unchanged; every other error
// is an *Error.
func Read(r io.Reader) (Hello, []byte, error) {
	var raw, message []byte
	for {
		fragment, err := readRecord(r, &raw)
		if err != nil {
			return Hello{}, raw, err
		}
		message = append(message, fragment...)
		done, err := isCompleteHello(message)
		if err != nil {
			return Hello{}, raw, err
		}
		if done {
			h, err := Parse(message)
			return h, raw, err
		}
	}
}

// readRecord reads one handshake record from r, appends it to raw and returns its
// content.
func readRecord(r io.Reader, raw *[]byte) ([]byte, error) {
	at := len(*raw)
	if err := readExactly(r, raw, recordHeader); err != nil {
		return nil, err
	}
	head := (*raw)[at:]
	length := int(head[3])<<8 | int(head[4])
	switch {
	case head[0] != recordHandshake:
		return nil, invalidHello("record of type %d", head[0])
	case head[1] != 3 || head[2] > 4:
		return nil, invalidHello("record of version %d.%d", head[1], head[2])
	case length == 0 || length > maxRecord:
		return nil, invalidHello("record of %d bytes", length)
	case at+recordHeader+length > MaxBytes:
		return nil, invalidHello("more than %d bytes", MaxBytes)
	}
	if err := readExactly(r, raw, length); err != nil {
		return nil, err
	}
	return (*raw)[at+recordHeader:], nil
}

// readExactly reads exactly n more bytes into raw.
func readExactly(r io.Reader, raw *[]byte, n int) error {
	at := len(*raw)
	*raw = append(*raw, make([]byte, n)...)
	got, err := io.ReadFull(r, (*raw)[at:])
	*raw = (*raw)[:at+got]
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return invalidHello("it ends after %d bytes", len(*raw))
	}
	return err
}

// isCompleteHello reports whether message is exactly one whole ClientHello.
func isCompleteHello(message []byte) (bool, error) {
	if message[0] != clientHello {
		return false, invalidHello("message of type %d", message[0])
	}
	if len(message) < messageHeader {
		return false, nil
	}
	want := messageHeader + (int(message[1])<<16 | int(message[2])<<8 | int(message[3]))
	switch {
	case want > MaxBytes:
		return false, invalidHello("message of %d bytes", want)
	case len(message) > want:
		return false, invalidHello("bytes after the message")
	}
	return len(message) == want, nil
}
