// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"golang.org/x/crypto/cryptobyte"
)

// The extensions that are inspected.
const (
	extensionServerName = 0
	extensionALPN       = 16
	extensionEarlyData  = 42
	extensionVersions   = 43
)

// encrypted are the ranges of extensions that hide a server name: ECH, its drafts,
// its list of outer extensions, and the older ESNI.
var encrypted = [][2]uint16{{0xfd00, 0xfd00}, {0xfe00, 0xfe0f}, {0xff02, 0xff04}, {0xffce, 0xffce}}

func isEncryptedExtension(kind uint16) bool {
	for _, r := range encrypted {
		if kind >= r[0] && kind <= r[1] {
			return true
		}
	}
	return false
}

// maxExtensions is more than any client sends.
const maxExtensions = 64

// Parse parses one whole ClientHello message, including its four-byte header.
func Parse(message []byte) (Hello, error) {
	var h Hello
	s := cryptobyte.String(message)
	var kind uint8
	var body cryptobyte.String
	if !s.ReadUint8(&kind) || kind != clientHello || !s.ReadUint24LengthPrefixed(&body) || !s.Empty() {
		return Hello{}, invalidHello("malformed message")
	}
	var legacy uint16
	var session, suites, compression, extensions cryptobyte.String
	if !body.ReadUint16(&legacy) || !body.Skip(32) ||
		!body.ReadUint8LengthPrefixed(&session) || len(session) > 32 ||
		!body.ReadUint16LengthPrefixed(&suites) || len(suites) < 2 || len(suites)%2 != 0 ||
		!body.ReadUint8LengthPrefixed(&compression) || len(compression) == 0 {
		return Hello{}, invalidHello("malformed message")
	}
	h.Versions = []uint16{legacy}
	if body.Empty() {
		return h, nil
	}
	if !body.ReadUint16LengthPrefixed(&extensions) || !body.Empty() {
		return Hello{}, invalidHello("malformed extensions")
	}
	if err := h.parseExtensions(extensions); err != nil {
		return Hello{}, err
	}
	return h, nil
}

func (h *Hello) parseExtensions(s cryptobyte.String) error {
	seen := map[uint16]bool{}
	for !s.Empty() {
		var kind uint16
		var data cryptobyte.String
		if !s.ReadUint16(&kind) || !s.ReadUint16LengthPrefixed(&data) {
			return invalidHello("malformed extensions")
		}
		if seen[kind] {
			return invalidHello("extension %d occurs twice", kind)
		}
		if seen[kind] = true; len(seen) > maxExtensions {
			return invalidHello("more than %d extensions", maxExtensions)
		}
		if err := h.parseExtension(kind, data); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hello) parseExtension(kind uint16, data cryptobyte.String) error {
	switch kind {
	case extensionServerName:
		return h.serverName(data)
	case extensionALPN:
		return h.parseALPN(data)
	case extensionVersions:
		return h.parseVersions(data)
	}
	h.Early = h.Early || kind == extensionEarlyData
	h.Encrypted = h.Encrypted || isEncryptedExtension(kind)
	return nil
}

func (h *Hello) serverName(data cryptobyte.String) error {
	var list, name cryptobyte.String
	var kind uint8
	if !data.ReadUint16LengthPrefixed(&list) || !data.Empty() ||
		!list.ReadUint8(&kind) || !list.ReadUint16LengthPrefixed(&name) {
		return invalidHello("malformed server name")
	}
	if kind != 0 || !list.Empty() {
		return invalidHello("more than one server name")
	}
	var err error
	h.ServerName, err = hostName(string(name))
	return err
}

func (h *Hello) parseALPN(data cryptobyte.String) error {
	var list cryptobyte.String
	if !data.ReadUint16LengthPrefixed(&list) || !data.Empty() || list.Empty() {
		return invalidHello("malformed list of protocols")
	}
	for !list.Empty() {
		var one cryptobyte.String
		if !list.ReadUint8LengthPrefixed(&one) || one.Empty() {
			return invalidHello("malformed list of protocols")
		}
		h.ALPN = append(h.ALPN, string(one))
	}
	return nil
}

func (h *Hello) parseVersions(data cryptobyte.String) error {
	var list cryptobyte.String
	if !data.ReadUint8LengthPrefixed(&list) || !data.Empty() || len(list) < 2 || len(list)%2 != 0 {
		return invalidHello("malformed list of versions")
	}
	h.Versions = nil
	for !list.Empty() {
		var one uint16
		list.ReadUint16(&one)
		h.Versions = append(h.Versions, one)
	}
	return nil
}
