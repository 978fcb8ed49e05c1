// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bytes"
	"io"
	"net"
)

// The TLS records and messages that are distinguished.
const (
	recordChange    = 20
	recordHandshake = 22
	recordData      = 23
	serverHello     = 2

	recordHeader = 5
	maxRecord    = 1<<14 + 256
	randomAt     = recordHeader + 4 + 2
	randomEnd    = randomAt + 32
)

// helloRetry is the random of a ServerHello that asks for a second hello (RFC 8446,
// 4.1.3).
var helloRetry = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// firstAnswer forwards the server's first record. A server may ask for a second hello,
// and serve the name in that one. So nothing from the client is forwarded before the
// record is known, and a second hello is checked like the first.
func (s *session) firstAnswer(up net.Conn) bool {
	record, err := readRecord(up)
	if len(record) > recordHeader && record[0] == recordHandshake && len(record) < randomEnd {
		s.recordEndReason("protocol", "the server's first message comes in pieces")
		s.sendAlert(alertHandshake)
		return false
	}
	if _, werr := s.client.Write(record); werr != nil {
		return false
	}
	if err != nil {
		return false
	}
	retry := len(record) >= randomEnd && record[recordHeader] == serverHello &&
		bytes.Equal(record[randomAt:randomEnd], helloRetry)
	return !retry || s.secondHello(up)
}

// maxBetween bounds the records of early data between the first hello and the second.
const maxBetween = 64

// secondHello forwards the client's second hello, and what may come before it.
func (s *session) secondHello(up net.Conn) bool {
	for range maxBetween {
		kind, err := s.firstByte()
		if err != nil {
			break
		}
		var record []byte
		switch kind {
		case recordHandshake:
			_, raw, ok := s.readHello()
			if !ok {
				return false
			}
			_, err := up.Write(raw)
			return err == nil
		case recordChange, recordData:
			record, err = readRecord(s.client)
		default: // most likely an alert
			return true
		}
		if _, werr := up.Write(record); werr != nil || err != nil {
			return false
		}
	}
	s.recordEndReason("hello", "the client did not send its second TLS hello")
	return false
}

// readRecord reads one record of any type from r. With an error it returns what it had
// read.
func readRecord(r io.Reader) ([]byte, error) {
	head := make([]byte, recordHeader)
	if n, err := io.ReadFull(r, head); err != nil {
		return head[:n], err
	}
	length := int(head[3])<<8 | int(head[4])
	if length > maxRecord {
		return head, nil // not TLS: its reader will report that
	}
	record := append(head, make([]byte, length)...)
	n, err := io.ReadFull(r, record[recordHeader:])
	return record[:recordHeader+n], err
}
