// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/cryptobyte"
)

// real returns the hello that Go's client sends with c.
func real(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() { tls.Client(theirs, c).Handshake(); theirs.Close() }()
	_, raw, err := Read(ours)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// An extension is a TLS extension of a hello that a test makes.
type extension struct {
	kind uint16
	data []byte
}

// made returns a hello message with the extensions.
func made(extensions ...extension) []byte {
	var b cryptobyte.Builder
	b.AddUint8(clientHello)
	b.AddUint24LengthPrefixed(func(b *cryptobyte.Builder) {
		b.AddUint16(0x0303)
		b.AddBytes(make([]byte, 32))
		b.AddUint8LengthPrefixed(func(*cryptobyte.Builder) {})
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddUint16(0x1301) })
		b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddUint8(0) })
		b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
			for _, e := range extensions {
				b.AddUint16(e.kind)
				b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes(e.data) })
			}
		})
	})
	return b.BytesOrPanic()
}

// names is a server name extension with the names, each of type 0.
func names(names ...string) extension {
	var b cryptobyte.Builder
	b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) {
		for _, n := range names {
			b.AddUint8(0)
			b.AddUint16LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(n)) })
		}
	})
	return extension{extensionServerName, b.BytesOrPanic()}
}

// records splits a message into records of at most n bytes.
func records(message []byte, n int) []byte {
	var out []byte
	for part := range slices.Chunk(message, n) {
		out = append(out, recordHandshake, 3, 1, byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
	}
	return out
}

func TestReadOfRealClients(t *testing.T) {
	raw := real(t, &tls.Config{ServerName: "Allowed.Example", NextProtos: []string{"h2", "http/1.1"}})
	rest := []byte("what follows")
	in := bytes.NewReader(append(slices.Clone(raw), rest...))
	got, taken, err := Read(in)
	if err != nil {
		t.Fatal(err)
	}
	want := Hello{ServerName: "allowed.example", ALPN: []string{"h2", "http/1.1"}, Versions: []uint16{0x0304, 0x0303}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	left, _ := io.ReadAll(in)
	if !bytes.Equal(taken, raw) || !bytes.Equal(left, rest) {
		t.Errorf("took %d bytes of %d and left %q", len(taken), len(raw), left)
	}
	old, _, err := Read(bytes.NewReader(real(t, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})))
	if err != nil || old.ServerName != "" || !slices.Equal(old.Versions, []uint16{0x0303}) {
		t.Errorf("TLS 1.2 without a name: %+v, %v", old, err)
	}
}

func TestReadOverManyRecords(t *testing.T) {
	message := made(names("allowed.example"))
	for n := 1; n < len(message); n++ {
		h, raw, err := Read(bytes.NewReader(records(message, n)))
		if err != nil || h.ServerName != "allowed.example" || !bytes.Equal(raw, records(message, n)) {
			t.Fatalf("in records of %d: %+v, %v", n, h, err)
		}
	}
}

func TestEncrypted(t *testing.T) {
	for _, kind := range []uint16{0xfe0d, 0xfe0a, 0xfe08, 0xff02, 0xff03, 0xffce, 0xfd00} {
		h, err := Parse(made(names("outer.example"), extension{kind, []byte{0, 1, 2}}))
		if err != nil || !h.Encrypted || h.ServerName != "outer.example" {
			t.Errorf("extension %#x: %+v, %v", kind, h, err)
		}
	}
	if h, err := Parse(made(names("a.example"), extension{extensionEarlyData, nil})); err != nil || h.Encrypted || !h.Early {
		t.Errorf("early data: %+v, %v", h, err)
	}
}

func TestRefused(t *testing.T) {
	good := made(names("allowed.example"))
	tests := []struct {
		name string
		raw  []byte
		want string
	}{
		{"nothing", nil, "ends after 0 bytes"},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), "record of type 71"},
		{"SSLv2", []byte{0x80, 0x2e, 1, 3, 1}, "record of type 128"},
		{"alert", []byte{21, 3, 1, 0, 2, 2, 40}, "record of type 21"},
		{"old version", []byte{22, 2, 0, 0, 1, 1}, "record of version 2.0"},
		{"no version", []byte{22, 3, 9, 0, 1, 1}, "record of version 3.9"},
		{"empty record", []byte{22, 3, 1, 0, 0}, "record of 0 bytes"},
		{"long record", []byte{22, 3, 1, 0xff, 0xff}, "record of 65535 bytes"},
		{"cut off", records(good, 1000)[:20], "ends after 20 bytes"},
		{"another message", records([]byte{2, 0, 0, 0}, 100), "message of type 2"},
		{"long message", records([]byte{1, 0xff, 0, 0}, 100), "message of 16711684 bytes"},
		{"bytes after", records(append(slices.Clone(good), 1, 0, 0, 0), 1000), "bytes after the message"},
		{"many records", bytes.Repeat([]byte{22, 3, 1, 0, 1, 1}, 1), "ends after"},
		{"empty message", records([]byte{1, 0, 0, 0}, 100), "malformed message"},
		{"short extensions", records(shortened(good), 1000), "malformed extensions"},
		{"two names", records(made(names("allowed.example", "other.example")), 1000), "more than one server name"},
		{"name twice", records(made(names("allowed.example"), names("other.example")), 1000), "extension 0 occurs twice"},
		{"no names", records(made(names()), 1000), "malformed server name"},
		{"bytes after the name", records(made(extension{0, append(names("a.example").data, 0)}), 1000), "malformed server name"},
		{"a name of type 1", records(made(extension{0, []byte{0, 4, 1, 0, 1, 'a'}}), 1000), "more than one server name"},
		{"protocols of no length", records(made(extension{extensionALPN, []byte{0, 1, 0}}), 1000), "malformed list of protocols"},
		{"odd versions", records(made(extension{extensionVersions, []byte{3, 3, 4, 3}}), 1000), "malformed list of versions"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, _, err := Read(bytes.NewReader(test.raw))
			var invalid *Error
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("read %+v, %v; want an error with %q", h, err, test.want)
			}
		})
	}
}

// shortened declares the extensions one byte shorter than they are.
func shortened(message []byte) []byte {
	m := slices.Clone(message)
	at := 4 + 2 + 32 + 1 + 2 + 2 + 1 + 1 + 1
	m[at]--
	return m
}

func TestServerNames(t *testing.T) {
	tests := map[string]string{ // sent name to parsed name; "" means refused
		"allowed.example":                 "allowed.example",
		"ALLOWED.example":                 "allowed.example",
		"xn--bcher-kva.example":           "xn--bcher-kva.example",
		"_a._tcp.example":                 "_a._tcp.example",
		"localhost":                       "localhost",
		"":                                "",
		"allowed.example.":                "allowed.example",
		"allowed.example..":               "",
		".":                               "",
		".allowed.example":                "",
		"a..example":                      "",
		"-a.example":                      "",
		"a-.example":                      "",
		"allowed.example\x00.x.com":       "",
		"allowed.example\n":               "",
		"allowed.example/x":               "",
		"allowed.example:443":             "",
		"b\u00fccher.example":             "",
		"\u212aelvin.example":             "", // its lower case in Unicode is k
		"*.example":                       "",
		"192.0.2.1":                       "",
		"::1":                             "",
		"[::1]":                           "",
		strings.Repeat("a", 64) + ".x":    "",
		strings.Repeat("a.", 127) + "aaa": "",
	}
	for sent, want := range tests {
		h, err := Parse(made(names(sent)))
		if h.ServerName != want || (want == "") != (err != nil) {
			t.Errorf("%q was read as %q, %v; want %q", sent, h.ServerName, err, want)
		}
	}
}

// An error of the connection is not an error of the client.
func TestReadReturnsTimeouts(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	ours.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, _, err := Read(ours)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestReadIsBounded(t *testing.T) {
	endless := io.MultiReader(bytes.NewReader(records([]byte{1, 0, 0x3f, 0xf0, 0}, 5)),
		bytes.NewReader(records(make([]byte, 1<<20), 1)))
	_, raw, err := Read(endless)
	if err == nil || len(raw) > MaxBytes+recordHeader {
		t.Errorf("took %d bytes, %v", len(raw), err)
	}
}
