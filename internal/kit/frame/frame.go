// SPDX-License-Identifier: Apache-2.0

// Package frame is the framing that the protocols of package monitor/wire and
// egress/wire share.
//
// # Format
//
// One message is one record of a SOCK_SEQPACKET socket:
//
//	version  1 byte
//	kind     1 byte
//	seq      8 bytes  little-endian
//	body     as the protocol defines it for the kind
//
// Messages are untrusted input. Open checks the header only; the
// protocol decodes the body.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HeaderSize is the size of a header in bytes.
const HeaderSize = 10

// ErrMalformed is wrapped by errors about messages whose bytes do not keep to the format.
var ErrMalformed = errors.New("malformed message")

// A Format is the framing of one protocol, whose kinds are of type K.
type Format[K ~uint8] struct {
	Version byte
	Kinds   K   // one more than the last kind; the first is 1
	Max     int // size of a message in bytes, with its header
}

// A Header is what every message begins with.
type Header[K ~uint8] struct {
	Kind K
	Seq  uint64
}

// Append appends a header to b.
func (f Format[K]) Append(b []byte, kind K, seq uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, f.Version, byte(kind)), seq)
}

// Open splits a message into header and body. It returns an error if the size,
// the version or the kind is not one of f.
func (f Format[K]) Open(message []byte) (Header[K], []byte, error) {
	if len(message) < HeaderSize || len(message) > f.Max {
		return Header[K]{}, nil, fmt.Errorf("%w of %d bytes", ErrMalformed, len(message))
	}
	if message[0] != f.Version {
		return Header[K]{}, nil, fmt.Errorf("message of version %d, not %d", message[0], f.Version)
	}
	h := Header[K]{K(message[1]), binary.LittleEndian.Uint64(message[2:])}
	if h.Kind == 0 || h.Kind >= f.Kinds {
		return Header[K]{}, nil, fmt.Errorf("message of kind %d", h.Kind)
	}
	return h, message[HeaderSize:], nil
}
