// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// schema names the format.
const schema = "fumehood.audit/v1"

// maxEntry is the maximum size in bytes of an entry's canonical JSON.
const maxEntry = 8 << 20

// maxLine leaves room for the rest of an entry's line, or for any checkpoint.
const maxLine = maxEntry + 1024

const timeLayout = "2006-01-02T15:04:05.000Z"

var (
	names = pattern.New(`^[A-Za-z0-9._~:/@%-]{1,200}$`)
	kinds = pattern.New(`^[a-z][a-z0-9.-]{0,63}$`)
)

func validName(name string) bool { return names.MatchString(name) }

// A header is the first line of a log.
type header struct {
	Key    string `json:"key"`
	Origin string `json:"origin"`
	Schema string `json:"schema"`
}

// formatLine needs no escaping: validName and the key's alphabet exclude quotes.
func (h header) formatLine() []byte {
	return fmt.Appendf(nil, `{"key":"%s","origin":"%s","schema":"%s"}`, h.Key, h.Origin, h.Schema)
}

// parseHeader reads exactly what line writes.
func parseHeader(line []byte) (header, note.Verifier, error) {
	var h header
	if err := json.Unmarshal(line, &h); err != nil || !bytes.Equal(h.formatLine(), line) {
		return h, nil, fmt.Errorf("first line is not a log's header")
	}
	if h.Schema != schema {
		return h, nil, fmt.Errorf("unsupported schema %q, want %q", h.Schema, schema)
	}
	v, err := parseKey(h.Key)
	if err != nil || !validName(h.Origin) {
		return h, nil, fmt.Errorf("header's key or origin is malformed")
	}
	return h, v, nil
}

// parseKey reads a verifier key and accepts only its canonical spelling.
func parseKey(key string) (note.Verifier, error) {
	v, err := note.NewVerifier(key)
	if err != nil || !validName(v.Name()) {
		return nil, fmt.Errorf("invalid verifier key %q", key)
	}
	raw, err := base64.StdEncoding.DecodeString(key[len(v.Name())+len("+01234567+"):])
	if err != nil || len(raw) != 1+ed25519.PublicKeySize {
		return nil, fmt.Errorf("invalid verifier key %q", key)
	}
	if again, err := note.NewEd25519VerifierKey(v.Name(), raw[1:]); err != nil || again != key {
		return nil, fmt.Errorf("invalid verifier key %q", key)
	}
	return v, nil
}

// An Entry is one entry of a log. This package treats its Body as untrusted bytes.
type Entry struct {
	N    int64     // its number
	Kind string    // the writer's name for the type of Body
	Time time.Time // set by the writer, not verified
	Body []byte    // canonical JSON
	Leaf []byte    // canonical JSON of the whole entry: the tree's leaf is its hash
	// Unsigned reports that no checkpoint covers the entry: its write was torn and
	// never acknowledged. It proves nothing.
	Unsigned bool
}

func leafOf(kind string, at time.Time, body []byte) []byte {
	leaf := make([]byte, 0, len(body)+len(kind)+64)
	leaf = append(leaf, `{"body":`...)
	leaf = append(leaf, body...)
	return fmt.Appendf(leaf, `,"kind":"%s","time":"%s"}`, kind, at.UTC().Format(timeLayout))
}

// parseLeaf parses canonical JSON that leafOf might have written. Neither kind nor
// time can contain a quote, so the last ,"kind":" is the entry's own.
func parseLeaf(leaf []byte) (Entry, error) {
	bad := fmt.Errorf("entry is not {body, kind, time}")
	i := bytes.LastIndex(leaf, []byte(`,"kind":"`))
	if i < 0 || !bytes.HasPrefix(leaf, []byte(`{"body":`)) || i < len(`{"body":`) {
		return Entry{}, bad
	}
	kind, rest, ok := bytes.Cut(leaf[i+len(`,"kind":"`):], []byte(`","time":"`))
	at, end, ok2 := bytes.Cut(rest, []byte(`"`))
	if !ok || !ok2 || string(end) != "}" || !kinds.Match(kind) {
		return Entry{}, bad
	}
	t, err := time.Parse(timeLayout, string(at))
	if err != nil || t.Format(timeLayout) != string(at) {
		return Entry{}, fmt.Errorf("entry's time is malformed")
	}
	return Entry{Kind: string(kind), Time: t, Body: leaf[len(`{"body":`):i], Leaf: leaf}, nil
}

func entryLine(n int64, leaf []byte) []byte {
	line := make([]byte, 0, len(leaf)+64)
	line = append(line, `{"entry":`...)
	line = append(line, leaf...)
	return fmt.Appendf(line, `,"n":%d}`, n)
}

// parseEntryLine returns the leaf's text, not yet known to be canonical, and n.
func parseEntryLine(line []byte) (leaf []byte, n int64, err error) {
	i := bytes.LastIndex(line, []byte(`,"n":`))
	rest, ok := bytes.CutPrefix(line, []byte(`{"entry":`))
	if i < 0 || !ok || i < len(`{"entry":`) || line[len(line)-1] != '}' {
		return nil, 0, fmt.Errorf("line is not an entry")
	}
	digits := string(line[i+len(`,"n":`) : len(line)-1])
	n, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return nil, 0, fmt.Errorf("entry's number is malformed")
	}
	leaf = rest[:i-len(`{"entry":`)]
	if len(leaf) > maxEntry {
		return nil, 0, fmt.Errorf("entry is larger than %d bytes", maxEntry)
	}
	return leaf, n, nil
}

// A checkpoint is the content of the note in a checkpoint line.
type checkpoint struct {
	origin string
	size   int64
	root   tlog.Hash
	bytes  int64
	digest tlog.Hash
	sealed bool
}

// signedText returns the signed text.
func (c checkpoint) signedText() string {
	text := fmt.Sprintf("%s\n%d\n%s\nbytes %d %s\n", c.origin, c.size, c.root, c.bytes, c.digest)
	if c.sealed {
		text += "sealed\n"
	}
	return text
}

// parseCheckpoint reads exactly what text writes.
func parseCheckpoint(text string) (c checkpoint, err error) {
	lines := strings.Split(text, "\n")
	bad := fmt.Errorf("checkpoint is malformed")
	if len(lines) < 5 {
		return c, bad
	}
	var size, count int64
	var root, digest tlog.Hash
	var e [4]error
	size, e[0] = strconv.ParseInt(lines[1], 10, 64)
	root, e[1] = tlog.ParseHash(lines[2])
	number, hash, _ := strings.Cut(strings.TrimPrefix(lines[3], "bytes "), " ")
	count, e[2] = strconv.ParseInt(number, 10, 64)
	digest, e[3] = tlog.ParseHash(hash)
	c = checkpoint{lines[0], size, root, count, digest, lines[4] == "sealed"}
	if e != [4]error{} || size < 0 || count < 0 || !validName(c.origin) || c.signedText() != text {
		return checkpoint{}, bad
	}
	return c, nil
}

// checkpointLine formats a note as a line. Only its newlines need escaping.
func checkpointLine(signed string) []byte {
	return []byte(`{"checkpoint":"` + strings.ReplaceAll(signed, "\n", `\n`) + `"}`)
}

// cutCheckpointLine returns the note in a line that checkpointLine wrote.
func cutCheckpointLine(line []byte) (signed string, ok bool) {
	inner, ok1 := strings.CutPrefix(string(line), `{"checkpoint":"`)
	inner, ok2 := strings.CutSuffix(inner, `"}`)
	signed = strings.ReplaceAll(inner, `\n`, "\n")
	return signed, ok1 && ok2 && !strings.ContainsAny(signed, "\"\\") && !strings.Contains(inner, "\n")
}

// signaturePrefix returns the text in a line between a checkpoint's text and the
// base64 of its signature.
func signaturePrefix(name string) string { return "\n— " + name + " " }
