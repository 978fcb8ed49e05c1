// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// python returns the verdicts of the verifier that was written from the documentation.
func python(t *testing.T, manifest string) []vectorVerdict {
	t.Helper()
	cmd := exec.Command("python3", filepath.Join(vectorDir, "verify.py"), manifest)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, failed.Bytes())
	}
	var found []vectorVerdict
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var v vectorVerdict
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		found = append(found, v)
	}
	return found
}

// samePython checks that both verifiers come to the same verdict, at the same line.
func samePython(t *testing.T, dir string, list []vector) map[string]int {
	t.Helper()
	manifest, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if err := os.WriteFile(filepath.Join(dir, v.File), v.data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, "manifest.json")
	if err := os.WriteFile(name, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	theirs, verdicts := python(t, name), map[string]int{}
	if len(theirs) != len(list) {
		t.Fatalf("%d verdicts for %d files", len(theirs), len(list))
	}
	for i, v := range list {
		ours, about := goVerdict(v.data, Trust{Key: v.Key, Checkpoint: v.Checkpoint}), theirs[i].About
		theirs[i].About = ""
		if ours != theirs[i] {
			t.Errorf("%s (%s): Go %+v, Python %+v (%s)\n%.300q", v.File, v.About, ours, theirs[i], about, v.data)
		}
		verdicts[ours.Verdict]++
	}
	return verdicts
}

// TestE2EPythonVectors: the verifier in Python has at most 150 lines and agrees about every vector.
func TestE2EPythonVectors(t *testing.T) {
	t.Parallel()
	script := read(t, filepath.Join(vectorDir, "verify.py"))
	if n := bytes.Count(script, []byte("\n")); n > 150 {
		t.Errorf("verify.py has %d lines", n)
	}
	found := samePython(t, t.TempDir(), append(vectors(t), proofVectors(t)...))
	if found["sealed"] == 0 || found["torn"] == 0 || found["invalid"] < 40 || found["proved"] == 0 {
		t.Errorf("verdicts: %v", found)
	}
}

// TestE2EPythonOfThePage: the verifier on docs/formats/log.md accepts the sealed logs of the vectors, and no others.
func TestE2EPythonOfThePage(t *testing.T) {
	t.Parallel()
	program := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(read(t, "../../docs/formats/log.md"))
	if program == nil {
		t.Fatal("the page has no program")
	}
	script := filepath.Join(t.TempDir(), "verify_log.py")
	if err := os.WriteFile(script, program[1], 0o600); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, v := range vectors(t) {
		if v.Checkpoint != "" {
			continue // it gets none
		}
		out, err := exec.Command("python3", script, filepath.Join(vectorDir, v.File), v.Key).CombinedOutput()
		if err == nil {
			accepted++
		}
		if want := fmt.Sprintf("sealed: %d entries\n", v.Entries); (v.Verdict == "sealed") != (err == nil && string(out) == want) {
			t.Errorf("%s (%s) is %s: %v\n%s", v.File, v.About, v.Verdict, err, out)
		}
	}
	if accepted < 3 {
		t.Errorf("%d logs were accepted", accepted)
	}
}

// TestE2EPythonChanged changes, removes and repeats bytes of a sealed log and of a proof anywhere.
func TestE2EPythonChanged(t *testing.T) {
	t.Parallel()
	const keyName = "vectors.example/key"
	key := testSigner(t, keyName).Key()
	sealed := memoryLog(t, keyName, "vectors.example/log", vectorBodies(), true)
	proof, err := Prove(bytes.NewReader(sealed), Trust{Key: key}, 1)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var list []vector
	for i := range 150 {
		data := sealed
		if i%3 == 0 {
			data = proof
		}
		list = append(list, vector{File: fmt.Sprint(i), Key: key, data: changed(random, data)})
	}
	if found := samePython(t, t.TempDir(), list); found["invalid"] < 75 {
		t.Errorf("verdicts: %v", found)
	}
}

func changed(random *rand.Rand, data []byte) []byte {
	at := random.IntN(len(data))
	head, rest := data[:at:at], data[at:]
	switch random.IntN(6) {
	case 0:
		return append(append(head, rest[0]^byte(1<<random.IntN(8))), rest[1:]...)
	case 1:
		return append(head, rest[1:]...)
	case 2:
		return append(append(head, rest[0]), rest...)
	case 3:
		return append(append(head, " \n\t\r\x00\xff\"\\=0,}"[random.IntN(12)]), rest...)
	case 4:
		return head
	}
	return append(head, data[random.IntN(len(data)):]...)
}

// signedRaw is a sealed log whose one entry's body has this text, whatever it is.
func signedRaw(t *testing.T, text string) []byte {
	t.Helper()
	l, err := newLog("unused", Options{Origin: "o", Signer: testSigner(t, "k"), Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	put := signs(t, l, &out)
	put(l.headerLine(), tree{}, false)
	leaf := leafOf("decision", l.now(), []byte(text))
	after := tree{}
	after.addLeaf(tlog.RecordHash(leaf))
	put(append(entryLine(0, leaf), '\n'), after, false)
	put(nil, after, true)
	return out
}

// TestE2EPythonCanonical compares what both accept as canonical JSON, in logs that are signed
// whatever they hold.
func TestE2EPythonCanonical(t *testing.T) {
	t.Parallel()
	texts := []string{`{}`, `[]`, `""`, `true`, `nul`, `NaN`, `Infinity`, `-`, `1.`, `.5`, `01`, `+1`, `-0`, `0.0`, `-0.0`, `1e5`, `1E-7`, `1e-07`, `1e999`, `-1e400`,
		`9007199254740991`, `9007199254740992`, `9007199254740993.5`, `123456789012345680000`, `1e+20`, `1e20`, `4.5e+22`, `2e-400`,
		`{"a":1,"a":2}`, `{"b":1,"a":2}`, `{"a":1,"b":{"d":1,"c":2}}`, `{"\ud83d\ude00":1,"\ufb33":2}`, "{\"\U0001f600\":1,\"\ufb33\":2}", "{\"\ufb33\":1,\"\U0001f600\":2}",
		`"\ud800"`, `"\u2028"`, "\"\u2028\"", "\"\x7f\"", `"\u007f"`, `"\/"`, `"\u000a"`, `"\u001f"`, `"\u001F"`, `"\b"`, `"\u0008"`, "\"\t\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\ufeff1",
		`[1 ,2]`, `[1,]`, `1,"kind":"x"`, `1,"kind":"x","time":"2026-01-02T03:04:05.001Z"},"n":0}`, `[1`, ``,
		strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1), strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), strings.Repeat("[", 5000)}
	random := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		texts = append(texts, fmt.Sprint(random.NormFloat64()), fmt.Sprintf("%d.%de%d", random.IntN(10), random.IntN(1000), random.IntN(60)-30))
		if text, ok := canonicalNumber([]byte(fmt.Sprintf("%d.%de%d", random.IntN(10), random.IntN(100), random.IntN(60)-30))); ok {
			texts = append(texts, text)
		}
	}
	key := testSigner(t, "k").Key()
	var list []vector
	for i, text := range texts {
		list = append(list, vector{File: fmt.Sprint(i), About: text, Key: key, data: signedRaw(t, text)})
	}
	if found := samePython(t, t.TempDir(), list); found["sealed"] < 60 || found["invalid"] < 50 {
		t.Errorf("verdicts: %v", found)
	}
}
