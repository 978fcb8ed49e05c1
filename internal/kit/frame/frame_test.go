// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"testing"
)

type kind uint8

var format = Format[kind]{Version: 3, Kinds: 5, Max: 64}

func TestFrame(t *testing.T) {
	message := append(format.Append(nil, 4, 0x0102030405060708), "body"...)
	if want := []byte("\x03\x04\x08\x07\x06\x05\x04\x03\x02\x01body"); !bytes.Equal(message, want) {
		t.Fatalf("got %x, want %x", message, want)
	}
	h, body, err := format.Open(message)
	if err != nil || h != (Header[kind]{4, 0x0102030405060708}) || string(body) != "body" {
		t.Errorf("got %+v %q, %v", h, body, err)
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "short": message[:HeaderSize-1], "long": make([]byte, 65), "version": malformed(2, 1), "no kind": malformed(3, 0), "unknown kind": malformed(3, 5),
	} {
		if _, _, err := format.Open(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func malformed(version byte, k kind) []byte { return Format[kind]{Version: version}.Append(nil, k, 1) }

// FuzzOpen: what opens is appended to the same bytes.
func FuzzOpen(f *testing.F) {
	f.Add(format.Append(nil, 1, 7))
	f.Fuzz(func(t *testing.T, message []byte) {
		if h, body, err := format.Open(message); err == nil && !bytes.Equal(append(format.Append(nil, h.Kind, h.Seq), body...), message) {
			t.Errorf("%x: %+v %x", message, h, body)
		}
	})
}
