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
//	body     what the protocol makes of the kind
//
// Messages are untrusted input. Open allocates nothing and checks the header only: the
// body is the protocol's.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HeaderSize is how many bytes stand before the body.
const HeaderSize = 10

// ErrMalformed is the cause of errors about a message that keeps to no format.
var ErrMalformed = errors.New("malformed message")

// A Format is one protocol's, with kinds of type K.
type Format[K ~uint8] struct {
	Version byte
	Kinds   K   // is one more than the last kind; the first is 1
	Max     int // bytes of a message
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

// Open splits a message into header and body. It refuses one of another size, version
// or kind than f's.
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
