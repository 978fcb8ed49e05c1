// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/sample"
)

// A packWriter writes a pack byte by byte.
type packWriter struct {
	bytes.Buffer
	count uint32
}

func (p *packWriter) add(kind byte, base, content string) {
	p.count++
	size := len(content)
	c := kind<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.WriteByte(c | 0x80)
		c = byte(size & 0x7f)
	}
	p.WriteByte(c)
	raw, _ := hex.DecodeString(base)
	p.Write(raw)
	z := zlib.NewWriter(p)
	io.WriteString(z, content)
	z.Close()
}

// answer returns everything of git's protocol, version 2, that a fetch needs.
func (p *packWriter) answer() string {
	pack := "PACK" + string(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 2}, p.count)) + p.String()
	sum := sha1.Sum([]byte(pack))
	pack += string(sum[:])
	lines := "000dpackfile\n"
	for len(pack) > 0 {
		part := pack[:min(len(pack), 60_000)]
		lines += fmt.Sprintf("%04x\x01%s", len(part)+5, part)
		pack = pack[len(part):]
	}
	return lines + "0000"
}

func varint(n uint64) string { return string(binary.AppendUvarint(nil, n)) }

// TestDeltaBomb: a pack of twenty kilobytes asks for eight gigabytes of memory.
func TestDeltaBomb(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, 40)
	base := strings.Repeat("\x00", 1<<20)
	baseID := o.blob(base)
	raw, _ := hex.DecodeString(strings.Repeat("1", 40))
	tree := "100644 f\x00" + string(raw)
	who := "A <a@example.invalid> 1700000000 +0000\n"
	commit := "tree " + o.object("tree", tree) + "\nauthor " + who + "committer " + who + "\nbomb\n"
	const copies = 8000
	var p packWriter
	p.add(1, "", commit)
	p.add(2, "", tree)
	p.add(3, "", base)
	p.add(7, baseID, varint(1<<20)+varint(copies<<20)+strings.Repeat("\xc0\x10", copies))
	server := serve(t, o.root)
	server.answerWith(&p)
	s := open(t, Source{URL: server.url}, Limits{})
	err := s.Fetch(t.Context(), o.object("commit", commit))
	wantCode(t, err, CodeFetch)
	if err == nil || !strings.Contains(err.Error(), "ut of memory") {
		t.Errorf("got %v", err)
	}
}

// answerWith sends the pack, whatever is requested.
func (g *gitServer) answerWith(p *packWriter) {
	g.answer(func(w http.ResponseWriter, r *http.Request) bool {
		request, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(request))
		if !bytes.Contains(request, []byte("command=fetch")) {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		io.WriteString(w, p.answer())
		return true
	})
}

// TestLyingPacks: packs that are well formed, but not what was requested.
func TestLyingPacks(t *testing.T) {
	t.Parallel()
	raw, _ := hex.DecodeString(strings.Repeat("1", 40))
	tree := "100644 f\x00" + string(raw)
	for _, c := range sample.EveryNth(t, []struct {
		name string
		pack func(p *packWriter, commit string)
	}{
		{"only the commit", func(p *packWriter, commit string) { p.add(1, "", commit) }},
		{"commit and tree, no blob", func(p *packWriter, commit string) { p.add(1, "", commit); p.add(2, "", tree) }},
		{"no object", func(p *packWriter, commit string) {}},
		{"another commit", func(p *packWriter, commit string) { p.add(1, "", commit+"more\n") }},
		{"a delta without its base", func(p *packWriter, commit string) { p.add(7, strings.Repeat("2", 40), varint(1)+varint(1)+"\x01x") }},
		{"the commit as a blob", func(p *packWriter, commit string) { p.add(3, "", commit) }},
	}, 2, 10) {
		t.Run(c.name, func(t *testing.T) {
			o := newOrigin(t, 40)
			who := "A <a@example.invalid> 1700000000 +0000\n"
			content := "tree " + o.object("tree", tree) + "\nauthor " + who + "committer " + who + "\nx\n"
			head := o.object("commit", content)
			var p packWriter
			c.pack(&p, content)
			server := serve(t, o.root)
			server.answerWith(&p)
			s := open(t, Source{URL: server.url}, Limits{})
			for range 2 { // objects left in the store by the first fetch must not make the second succeed
				wantCode(t, s.Fetch(t.Context(), head), CodeFetch)
			}
			if _, err := s.Write(t.Context(), head, filepath.Join(t.TempDir(), "d")); err == nil {
				t.Error("it was written")
			}
		})
	}
}
