// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/vectors anew")

const vectorDir = "../../testdata/vectors"

// A vector is one row of vectors.json; its README describes the fields.
type vector struct {
	File       string `json:"file"`
	About      string `json:"about"`
	Key        string `json:"key"`
	Checkpoint string `json:"checkpoint,omitempty"`
	Verdict    string `json:"verdict"`
	Line       int64  `json:"line,omitempty"`
	Entry      *int64 `json:"entry,omitempty"`
	Entries    int64  `json:"entries"`
	Unsigned   int64  `json:"unsigned_entries,omitempty"`
	TornBytes  int64  `json:"torn_bytes,omitempty"`

	data []byte
}

// rows splits a log into its lines, keeping newlines.
func rows(data []byte) [][]byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	return lines[:len(lines)-1]
}

// signs returns a function that appends lines of l to out, which has all of them.
func signs(t testing.TB, l *Log, out *[]byte) func(lines []byte, after tree, sealed bool) {
	return func(lines []byte, after tree, sealed bool) {
		t.Helper()
		all, _, err := l.signLines(lines, after, sealed)
		if err != nil {
			t.Fatal(err)
		}
		*out = append(*out, all...)
		l.tree, l.size = after, int64(len(*out))
	}
}

// memoryLog creates a log of bodies in memory, signed with the key of keyName.
func memoryLog(t testing.TB, keyName, origin string, bodies []any, seal bool) []byte {
	t.Helper()
	l, err := newLog("unused", Options{Origin: origin, Signer: testSigner(t, keyName), Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	put := signs(t, l, &out)
	put(l.headerLine(), tree{}, false)
	for _, b := range bodies {
		line, after, err := l.nextEntry("decision", b)
		if err != nil {
			t.Fatal(err)
		}
		put(line, after, false)
	}
	if seal {
		put(nil, l.tree, true)
	}
	return out
}

func vectorBodies() []any {
	return []any{
		body{ID: "unit", Run: "go test ./...", N: 1},
		body{ID: "lint", Run: "printf '\"a\\b\"\\n\t\u2028' # \u00e9\U0001f600", N: -2},
		map[string]any{"id": "repro", "\u20ac": nil, "\r": true, "1": 1e-7, "\ufb33": 0.5, "\U0001f600": []any{}, "\u00f6": 1e21},
		body{ID: "deny", Run: "x\",\"n\":7}\n{\"checkpoint\":\"forged\"}", N: 9007199254740991},
	}
}

// noteOf returns the note in a checkpoint line.
func noteOf(t testing.TB, line []byte) string {
	signed, ok := cutCheckpointLine(bytes.TrimSuffix(line, []byte("\n")))
	if !ok {
		t.Fatalf("not a checkpoint: %s", line)
	}
	return signed
}

func swap(lines [][]byte, i, j, n int) [][]byte {
	out := append([][]byte(nil), lines...)
	for k := range n {
		out[i+k], out[j+k] = out[j+k], out[i+k]
	}
	return out
}

func vectors(t testing.TB) []vector {
	const keyName = "vectors.example/key"
	const origin = "vectors.example/log"
	key := testSigner(t, keyName).Key()
	sealed := memoryLog(t, keyName, origin, vectorBodies(), true)
	// Lines: 1 header, 2 checkpoint, then entry n on 3+2n with its checkpoint on 4+2n; 11 the seal.
	ls := rows(sealed)
	cat := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	all := func(lines [][]byte) []byte { return bytes.Join(lines, nil) }
	with := func(n int, line []byte) []byte { return cat(all(ls[:n-1]), line, all(ls[n:])) }
	replace := func(old, new string) []byte { return bytes.Replace(sealed, []byte(old), []byte(new), 1) }
	other := rows(memoryLog(t, keyName, origin, []any{body{ID: "unit", Run: "rm -rf /"}, 2, 3, 4}, true))
	forged := memoryLog(t, "vectors.example/thief", origin, vectorBodies(), true)
	unsealed := all(ls[:10])
	long := rows(memoryLog(t, keyName, origin, make([]any, 100), true))
	cutSig := func(line []byte) []byte { // another, well-formed signature
		at := len(line) - len("xx==\\n\"}\n") - 40
		out := bytes.Clone(line)
		if out[at]++; out[at] == '{' || out[at] == '[' || out[at] == ':' || out[at] == ',' || out[at] == '0' {
			out[at] = 'A'
		}
		return out
	}
	entry := func(n int64) *int64 { return &n }
	ok := func(file, about, verdict string, entries int64, data []byte) vector {
		return vector{File: file, About: about, Key: key, Verdict: verdict, Entries: entries, data: data}
	}
	torn := func(file, about string, entries, unsigned int64, tornBytes int, data []byte) vector {
		v := ok(file, about, "torn", entries, data)
		v.Unsigned, v.TornBytes = unsigned, int64(tornBytes)
		return v
	}
	bad := func(file, about, code string, line, n int64, data []byte) vector {
		v := vector{File: file, About: about, Key: key, Verdict: code, Line: line, data: data}
		if n >= 0 {
			v.Entry = entry(n)
		}
		return v
	}
	known := func(v vector, checkpoint string) vector {
		v.Checkpoint = checkpoint
		return v
	}
	const thief = "vectors.example/thief"
	return []vector{
		ok("sealed.log", "four entries and a seal", "sealed", 4, sealed),
		known(ok("sealed-known.log", "the same, and it holds a known earlier checkpoint", "sealed", 4, sealed), noteOf(t, ls[5])),
		ok("sealed-empty.log", "no entries and a seal", "sealed", 0, memoryLog(t, keyName, origin, nil, true)),
		ok("sealed-100.log", "a hundred entries and a seal", "sealed", 100, all(long)),
		ok("unsealed.log", "ends after a checkpoint", "unsealed", 4, unsealed),
		ok("unsealed-empty.log", "header and first checkpoint only", "unsealed", 0, all(ls[:2])),
		torn("torn-empty.log", "no bytes at all", 0, 0, 0, nil),
		torn("torn-header.log", "cut inside the header", 0, 0, 30, ls[0][:30]),
		torn("torn-before-checkpoint.log", "a header and no checkpoint", 0, 0, len(ls[0]), ls[0]),
		torn("torn-entry.log", "cut inside entry 2", 2, 0, 20, cat(all(ls[:6]), ls[6][:20])),
		torn("torn-entry-unsigned.log", "entry 2 is whole, its checkpoint is missing", 2, 1, len(ls[6]), all(ls[:7])),
		torn("torn-checkpoint.log", "cut inside the checkpoint of entry 2", 2, 1, len(ls[6])+50, cat(all(ls[:7]), ls[7][:50])),
		torn("torn-seal.log", "only the seal's newline is missing", 4, 0, len(ls[10])-1, sealed[:len(sealed)-1]),

		bad("key.log", "signed throughout by another key, given in the header", codeKey, 1, -1, forged),
		bad("header-origin.log", "origin in the header changed", codeHeader, 1, -1, replace(`"origin":"vectors`, `"origin":"victors`)),
		bad("header-space.log", "white space in the header", codeHeader, 1, -1, replace(`","origin"`, `", "origin"`)),
		bad("header-schema.log", "another schema", codeHeader, 1, -1, replace("audit/v1", "audit/v2")),
		bad("header-repeated.log", "the header stands there twice", codeCheckpoint, 2, -1, cat(ls[0], sealed)),
		bad("blank-line.log", "an empty line", codeEntry, 5, 1, cat(all(ls[:4]), []byte("\n"), all(ls[4:]))),
		bad("carriage-return.log", "a line ends in CR LF", codeEntry, 5, 1, with(5, bytes.Replace(ls[4], []byte("\n"), []byte("\r\n"), 1))),
		bad("entry-edited.log", "one letter of entry 0 changed", codeChanged, 3, 0, replace("go test", "go tesT")),
		bad("entry-time.log", "the time of entry 1 changed", codeChanged, 5, 1, replace("05.002Z", "05.003Z")),
		bad("entry-time-malformed.log", "the time of entry 1 is no time", codeEntry, 5, 1, replace("01-02T03:04:05.002Z", "02-30T03:04:05.002Z")),
		bad("entry-kind.log", "the kind of entry 0 is no kind", codeEntry, 3, 0, replace(`"kind":"decision"`, `"kind":"Decision"`)),
		bad("entry-number-edited.log", "the number of entry 1 changed", codeNumber, 5, 1, replace(`,"n":1}`+"\n", `,"n":2}`+"\n")),
		bad("entry-number-zero.log", "the number of entry 1 has a leading zero", codeEntry, 5, 1, replace(`,"n":1}`+"\n", `,"n":01}`+"\n")),
		bad("entry-space.log", "white space in entry 0", codeEntry, 3, 0, replace(`"id":"unit"`, `"id": "unit"`)),
		bad("entry-order.log", "members of entry 0 out of order", codeEntry, 3, 0, replace(`"id":"unit","n":1`, `"n":1,"id":"unit"`)),
		bad("entry-escape.log", "a letter of entry 0 needlessly escaped", codeEntry, 3, 0, replace("unit", `\u0075nit`)),
		bad("entry-number-form.log", "1 written as 1.0 in entry 0", codeEntry, 3, 0, replace(`"n":1,"run"`, `"n":1.0,"run"`)),
		bad("entry-utf8.log", "a byte in entry 0 that is not UTF-8", codeEntry, 3, 0, replace("unit", "un\xfft")),
		bad("entry-repeated-name.log", "a name repeated in entry 0", codeEntry, 3, 0, replace(`"id":"unit"`, `"id":"unit","id":"x"`)),
		bad("entry-removed.log", "entry 1 and its checkpoint removed", codeNumber, 5, 1, cat(all(ls[:4]), all(ls[6:]))),
		bad("entry-repeated.log", "entry 1 and its checkpoint repeated", codeNumber, 7, 2, cat(all(ls[:6]), all(ls[4:]))),
		bad("entries-swapped.log", "entries 1 and 2 swapped with their checkpoints", codeNumber, 5, 1, all(swap(ls, 4, 6, 2))),
		bad("entry-from-elsewhere.log", "entry 0 and its checkpoint taken from another log of the same key", codeChanged, 5, 1, cat(ls[0], ls[1], other[2], other[3], all(ls[4:]))),
		bad("entry-inserted.log", "an entry without checkpoint before entry 1", codeMissing, 6, 1, cat(all(ls[:4]), other[4], all(ls[4:]))),
		bad("checkpoint-removed.log", "the checkpoint of entry 1 removed", codeMissing, 6, 1, cat(all(ls[:5]), all(ls[6:]))),
		bad("checkpoint-repeated.log", "the checkpoint of entry 1 repeated", codeCheckpoint, 7, -1, cat(all(ls[:6]), all(ls[5:]))),
		bad("checkpoint-edited.log", "the size in the checkpoint of entry 1 changed", codeSignature, 6, 1, with(6, bytes.Replace(ls[5], []byte(`\n2\n`), []byte(`\n3\n`), 1))),
		bad("checkpoint-root-stale.log", "the checkpoint of entry 1 is that of entry 0", codeCheckpoint, 6, 1, with(6, ls[3])),
		bad("signature-edited.log", "the signature under entry 1 changed", codeSignature, 6, 1, with(6, cutSig(ls[5]))),
		bad("signature-last.log", "the signature of the seal changed", codeSignature, 11, -1, with(11, cutSig(ls[10]))),
		bad("signature-50.log", "the signature under entry 50 of 100 changed", codeSignature, 104, 50, cat(all(long[:103]), cutSig(long[103]), all(long[104:]))),
		bad("signature-spelling.log", "the signature under entry 1 in another base64 spelling", codeSignature, 6, 1, with(6, bytes.Replace(ls[5], []byte(`=\n"}`), []byte(`==\n"}`), 1))),
		bad("forged-tail.log", "entries 2 and 3 rewritten, their checkpoints signed by a key of the same name", codeSignature, 8, 2, forgedTail(t, keyName, ls)),
		bad("sealed-then-more.log", "an entry behind the seal", codeAfterSeal, 12, -1, cat(sealed, ls[2])),
		bad("sealed-then-byte.log", "one byte behind the seal", codeAfterSeal, 12, -1, cat(sealed, []byte("x"))),
		bad("seal-instead.log", "the seal of a shorter log in place of a checkpoint", codeMissing, 4, 0, sealInstead(t, keyName, origin, ls)),
		known(bad("truncated.log", "cut after entry 1, and the seal is known", codeTruncated, 7, -1, all(ls[:6])), noteOf(t, ls[10])),
		known(bad("truncated-seal.log", "only the seal cut off, and the seal is known", codeTruncated, 11, -1, unsealed), noteOf(t, ls[10])),
		known(bad("forked.log", "sealed, but the known checkpoint is of another history", codeForked, 12, -1, sealed), noteOf(t, other[3])),
		{File: "thief-trusted.log", About: "the log of the other key, trusted", Key: testSigner(t, thief).Key(), Verdict: "sealed", Entries: 4, data: forged},
	}
}

// forgedTail is the best forgery possible without the key: everything is consistent from
// entry 2 on, except for the signatures.
func forgedTail(t testing.TB, keyName string, ls [][]byte) []byte {
	good := memoryLog(t, keyName, "vectors.example/log", append(vectorBodies()[:2], "changed", "changed"), true)
	lines := rows(good)
	for _, at := range []int{7, 9, 10} {
		fake := bytes.LastIndexByte(lines[at], ' ')
		lines[at] = append(bytes.Clone(lines[at][:fake+1]), ls[at][bytes.LastIndexByte(ls[at], ' ')+1:]...)
	}
	return bytes.Join(lines, nil)
}

// sealInstead seals a log of one entry directly after that entry.
func sealInstead(t testing.TB, keyName, origin string, ls [][]byte) []byte {
	l, err := newLog("unused", Options{Origin: origin, Signer: testSigner(t, keyName), Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := l.signLines(l.headerLine(), tree{}, false)
	if err != nil {
		t.Fatal(err)
	}
	l.size = int64(len(out))
	line, after, err := l.nextEntry("decision", vectorBodies()[0])
	if err != nil || !bytes.Equal(line, ls[2]) {
		t.Fatal(err)
	}
	more, _, err := l.signLines(line, after, true)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, more...)
}

// proofVectors are proofs of entries of the vectors' logs.
func proofVectors(t testing.TB) []vector {
	const keyName = "vectors.example/key"
	const origin = "vectors.example/log"
	key := testSigner(t, keyName).Key()
	four := memoryLog(t, keyName, origin, vectorBodies(), true)
	hundred := memoryLog(t, keyName, origin, make([]any, 100), true)
	prove := func(log []byte, n int64) []byte {
		proof, err := Prove(bytes.NewReader(log), Trust{Key: key}, n)
		if err != nil {
			t.Fatal(err)
		}
		return proof
	}
	seal := noteOf(t, rows(four)[10])
	one, two := prove(four, 1), prove(four, 2)
	proof := func(file, about, verdict string, entries int64, data []byte) vector {
		return vector{File: file, About: about, Key: key, Verdict: verdict, Entries: entries, data: data}
	}
	known := func(v vector, checkpoint string) vector {
		v.Checkpoint = checkpoint
		return v
	}
	replace := func(old, new string) []byte { return bytes.Replace(one, []byte(old), []byte(new), 1) }
	return []vector{
		proof("entry-1.tlog-proof", "entry 1 of sealed.log", "proved", 4, one),
		known(proof("entry-1-known.tlog-proof", "the same, and its checkpoint is known", "proved", 4, one), seal),
		proof("entry-97.tlog-proof", "entry 97 of sealed-100.log", "proved", 100, prove(hundred, 97)),
		proof("only-entry.tlog-proof", "the only entry of a log that is not sealed", "proved", 1, prove(memoryLog(t, keyName, origin, vectorBodies()[:1], false), 0)),
		known(proof("checkpoint-other.tlog-proof", "another checkpoint is known", "invalid", 0, prove(hundred, 1)), seal),
		proof("index.tlog-proof", "the number of the entry changed", "invalid", 0, replace("index 1", "index 2")),
		proof("index-large.tlog-proof", "a number that the log does not have", "invalid", 0, replace("index 1", "index 4")),
		proof("entry-other.tlog-proof", "another entry of the same log", "invalid", 0, bytes.Join([][]byte{rows(one)[0], rows(two)[1], bytes.Join(rows(one)[2:], nil)}, nil)),
		proof("hash-removed.tlog-proof", "the last hash removed", "invalid", 0, bytes.Join(append(rows(one)[:4:4], rows(one)[5:]...), nil)),
		proof("hash-added.tlog-proof", "the last hash repeated", "invalid", 0, bytes.Join(append(rows(one)[:5:5], rows(one)[4:]...), nil)),
		proof("line-end.tlog-proof", "lines end in CR LF", "invalid", 0, bytes.ReplaceAll(one, []byte("\n"), []byte("\r\n"))),
		{File: "thief.tlog-proof", About: "signed by another key", Key: key, Verdict: "invalid", data: thiefProof(t)},
	}
}

func thiefProof(t testing.TB) []byte {
	const thief = "vectors.example/thief"
	log := memoryLog(t, thief, "vectors.example/log", vectorBodies(), true)
	proof, err := Prove(bytes.NewReader(log), Trust{Key: testSigner(t, thief).Key()}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

// A vectorVerdict is what a verifier says of a file. testdata/vectors/verify.py prints one a line.
type vectorVerdict struct {
	Verdict   string `json:"verdict"` // a state's name, proved or invalid
	Line      int64  `json:"line"`
	Entries   int64  `json:"entries"`
	Unsigned  int64  `json:"unsigned_entries"`
	TornBytes int64  `json:"torn_bytes"`
	About     string `json:"about"`
}

// goVerdict is the verdict of Verify or CheckProof.
func goVerdict(data []byte, trust Trust) vectorVerdict {
	if bytes.HasPrefix(data, []byte("c2sp.org/")) {
		if p, err := CheckProof(data, trust); err == nil {
			return vectorVerdict{Verdict: "proved", Entries: p.Size}
		}
		return vectorVerdict{Verdict: "invalid"}
	}
	sum, err := Verify(bytes.NewReader(data), trust)
	if fault := new(VerifyError); errors.As(err, &fault) {
		return vectorVerdict{Verdict: "invalid", Line: fault.Line}
	}
	return vectorVerdict{Verdict: sum.State.String(), Entries: sum.Entries, Unsigned: sum.Unsigned, TornBytes: sum.TornBytes}
}

// TestVectors regenerates every vector and compares it with the file byte for byte, then
// checks that each file gets the verdict in the manifest.
func TestVectors(t *testing.T) {
	logs, proofs := vectors(t), proofVectors(t)
	sameManifest(t, "vectors.json", logs)
	sameManifest(t, "proofs.json", proofs)
	listed := map[string]bool{".gitattributes": true, "README.md": true, "vectors.json": true, "proofs.json": true, "verify.py": true, "sealed.cosigned": true}
	for _, v := range append(logs, proofs...) {
		listed[v.File] = true
		t.Run(v.File, func(t *testing.T) {
			data := read(t, filepath.Join(vectorDir, v.File))
			if !bytes.Equal(data, v.data) {
				t.Errorf("file differs from what is made now; -update writes it")
			}
			checkVector(t, v, data)
		})
	}
	files, err := os.ReadDir(vectorDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !listed[f.Name()] {
			t.Errorf("%s is not in a manifest", f.Name())
		}
	}
}

// sameManifest compares made with the manifest; with -update it writes both.
func sameManifest(t *testing.T, name string, made []vector) {
	t.Helper()
	manifest, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	manifest = append(manifest, '\n')
	if *update {
		for _, v := range append(made, vector{File: name, data: manifest}) {
			if err := os.WriteFile(filepath.Join(vectorDir, v.File), v.data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(string(manifest), string(read(t, filepath.Join(vectorDir, name)))); diff != "" {
		t.Errorf("%s (-made +file):\n%s", name, diff)
	}
}

func checkVector(t *testing.T, v vector, data []byte) {
	if v.Verdict == "proved" || v.Verdict == "invalid" {
		if got := goVerdict(data, Trust{Key: v.Key, Checkpoint: v.Checkpoint}); got.Verdict != v.Verdict || got.Entries != v.Entries {
			t.Errorf("%+v, want %s", got, v.Verdict)
		}
		return
	}
	sum, err := Verify(bytes.NewReader(data), Trust{Key: v.Key, Checkpoint: v.Checkpoint})
	if v.Line > 0 {
		entry := int64(-1)
		if v.Entry != nil {
			entry = *v.Entry
		}
		wantVerify(t, err, v.Verdict, v.Line, entry)
		if ve := new(VerifyError); errors.As(err, &ve) {
			t.Log(ve)
		}
		return
	}
	if err != nil || sum.State.String() != v.Verdict || sum.Entries != v.Entries || sum.Unsigned != v.Unsigned || sum.TornBytes != v.TornBytes {
		t.Errorf("%+v, %v, want %s", sum, err, v.Verdict)
	}
}
