// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/fumehood/fumehood/internal/lanetest"
	"github.com/fumehood/fumehood/pkg/audit"
)

var update = flag.Bool("update", false, "write testdata/vectors/ledger")

const (
	vectorDir = "../../testdata/vectors"
	ledgerDir = vectorDir + "/ledger"
)

// A row of ledgers.json is one question to a verifier; Path is a ledger or a proof.
type row struct {
	Path  string `json:"path"`
	About string `json:"about"`
	Key   string `json:"key"`
	Since string `json:"since,omitempty"`
	Log   string `json:"log,omitempty"`
	answer
}

// An answer is complete, proved or invalid. The last has no numbers.
type answer struct {
	Verdict string `json:"verdict"`
	Entries int64  `json:"entries,omitempty"`
	Entry   *int64 `json:"entry,omitempty"`
}

func (a answer) String() string {
	text, err := json.Marshal(a)
	return fmt.Sprint(string(text), err)
}

// ask returns what Go answers to a row, whose paths begin in dir.
func ask(t testing.TB, dir string, r row) answer {
	t.Helper()
	path, log := filepath.Join(dir, r.Path), filepath.Join(dir, r.Log)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(path, r.Key)
	if err != nil {
		return answer{Verdict: "invalid"}
	}
	if !info.IsDir() {
		return askProof(t, l, path, log)
	}
	if r.Since != "" {
		r.Since = filepath.Join(dir, r.Since)
	}
	if _, err := l.CheckAll(r.Since, nil); err != nil {
		return answer{Verdict: "invalid"}
	}
	a := answer{Verdict: "complete", Entries: headOf(t, l).Size}
	if r.Log == "" {
		return a
	}
	proof, err := l.ProveLog(log)
	if err != nil {
		return answer{Verdict: "invalid"}
	}
	_, n, err := l.CheckProof(proof)
	if err != nil {
		t.Errorf("a proof that was just made: %v", err)
	}
	a.Entry = &n
	return a
}

func askProof(t testing.TB, l *Ledger, path, log string) answer {
	t.Helper()
	n, err := l.CheckLog(path, log)
	if err != nil {
		return answer{Verdict: "invalid"}
	}
	proof, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, note, _ := strings.Cut(string(proof), "\n\n")
	h, err := l.open(note)
	if err != nil {
		t.Fatal(err)
	}
	return answer{"proved", h.Size, &n}
}

func headOf(t testing.TB, l *Ledger) Head {
	t.Helper()
	h, err := l.Head()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// askAll asks the verifier all rows, and counts the verdicts.
func askAll(t *testing.T, dir string, rows []row) map[string]int {
	t.Helper()
	verdicts := map[string]int{}
	for _, r := range rows {
		verdicts[ask(t, dir, r).Verdict]++
	}
	return verdicts
}

// fixedSigner has the key of that name that testdata/vectors/README.md defines.
func fixedSigner(t testing.TB, name string) *audit.Signer {
	t.Helper()
	seed := sha256.Sum256([]byte("fumehood test key " + name))
	key, err := note.NewEd25519VerifierKey(name, ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.Split(key, "+")[1]
	signer, err := audit.NewSigner(fmt.Sprintf("PRIVATE+KEY+%s+%s+%s", name, hash, base64.StdEncoding.EncodeToString(append([]byte{1}, seed[:]...))))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// appendVector adds a log of the vectors, and returns the checkpoint.
func appendVector(t testing.TB, dir, log string, signer *audit.Signer) []byte {
	t.Helper()
	s, err := sealed(filepath.Join(vectorDir, log), audit.Trust{})
	if err != nil {
		t.Fatal(err)
	}
	_, h, err := Append(dir, signer, []byte(s.Checkpoint))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(h.Signed)
}

// makeVectors writes the ledgers and proofs of the vectors to dir, and returns their manifest.
func makeVectors(t testing.TB, dir string) []row {
	t.Helper()
	signer, thief := fixedSigner(t, "vectors.example/ledger"), fixedSigner(t, "vectors.example/thief").Key()
	put := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	right, forked := filepath.Join(dir, "right"), filepath.Join(dir, "forked")
	appendVector(t, right, "sealed.log", signer)
	put("after-2.checkpoint", appendVector(t, right, "sealed-100.log", signer))
	appendVector(t, right, "sealed-empty.log", signer)
	appendVector(t, forked, "sealed.log", signer)
	appendVector(t, forked, "sealed-empty.log", signer)
	appendVector(t, forked, "sealed-known.log", signer) // the same log as sealed.log: not added again
	for _, name := range []string{"right", "forked"} {
		l, err := Open(filepath.Join(dir, name), signer.Key())
		if err != nil {
			t.Fatal(err)
		}
		proof, err := l.ProveLog(filepath.Join(vectorDir, "sealed-empty.log"))
		if err != nil {
			t.Fatal(err)
		}
		put(name+".tlog-proof", proof)
		removeOld(t, filepath.Join(dir, name), headOf(t, l).Size)
	}
	one, two := int64(1), int64(2)
	key, bad := signer.Key(), answer{Verdict: "invalid"}
	return []row{
		{"right", "three runs", key, "", "", answer{"complete", 3, nil}},
		{"right", "it contains the ledger of two runs", key, "after-2.checkpoint", "", answer{"complete", 3, nil}},
		{"right", "a run that is in it", key, "after-2.checkpoint", "../sealed-100.log", answer{"complete", 3, &one}},
		{"right", "a log that is not sealed", key, "", "../unsealed.log", bad},
		{"right", "another key of another name", thief, "", "", bad},
		{"forked", "two other runs of the same key", key, "", "", answer{"complete", 2, nil}},
		{"forked", "it does not contain the ledger of two runs", key, "after-2.checkpoint", "", bad},
		{"forked", "a run that is not in it", key, "", "../sealed-100.log", bad},
		{"forked", "a checkpoint of another size than its files", key, "right/checkpoint", "", bad},
		{"right.tlog-proof", "proof of the last run", key, "", "../sealed-empty.log", answer{"proved", 3, &two}},
		{"forked.tlog-proof", "proof of the same run in the other ledger", key, "", "../sealed-empty.log", answer{"proved", 2, &one}},
		{"right.tlog-proof", "proof of another run", key, "", "../sealed.log", bad},
		{"right.tlog-proof", "proof with another key", thief, "", "../sealed-empty.log", bad},
	}
}

// removeOld removes what only smaller ledgers needed, and the lock.
func removeOld(t testing.TB, dir string, size int64) {
	t.Helper()
	needed := map[string]bool{checkpointFile: true}
	for _, tile := range tlog.NewTiles(height, 0, size) {
		needed[pathOf(tile)] = true
		needed[pathOf(bundleOf(tile.N, size))] = true
	}
	for name := range filesOf(t, dir) {
		if needed[name] {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// filesOf returns the contents of all files below dir.
func filesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path[len(dir)+1:]] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestVectors makes every vector again and compares it with the file byte for byte, then
// checks that each row gets its answer. With -update it writes the vectors.
func TestVectors(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	rows := makeVectors(t, made)
	text, err := json.MarshalIndent(rows, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(made, "ledgers.json"), append(text, '\n'), 0o644)
	}
	if err == nil && *update {
		err = os.CopyFS(ledgerDir, os.DirFS(made))
	}
	if err != nil {
		t.Fatal(err)
	}
	want, got := filesOf(t, made), filesOf(t, ledgerDir)
	for name, data := range want {
		if got[name] != data {
			t.Errorf("%s differs from what is made now; remove the folder, and -update writes it", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
	for _, r := range rows {
		if ours := ask(t, ledgerDir, r); ours.String() != r.answer.String() {
			t.Errorf("%s: %s, want %s", r.About, ours, r.answer)
		}
	}
	if found := askAll(t, ledgerDir, rows); found["complete"] == 0 || found["proved"] == 0 || found["invalid"] == 0 {
		t.Errorf("verdicts: %v", found)
	}
}

// TestChangedBytes changes single bytes anywhere in the files of a ledger of 300 runs, in an
// earlier checkpoint and in a proof. The verifier finds every change. A cosignature changes nothing.
func TestChangedBytes(t *testing.T) {
	t.Parallel()
	lanetest.SkipShort(t)
	changeEach(t, 3, askAll)
}

// changeEach makes that many changes of each file, and asks verifiers about each.
func changeEach(t *testing.T, each int, askAll func(t *testing.T, dir string, rows []row) map[string]int) {
	const size = full + 44
	signer, dir := newSigner(t, "ledger.example"), t.TempDir()
	right := filepath.Join(dir, "right")
	l, heads := filled(t, signer, right, size-1)
	log := filepath.Join(dir, "run.log")
	data, err := os.ReadFile(filepath.Join(vectorDir, "sealed.log"))
	if err == nil {
		err = os.WriteFile(log, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cosigned, _ := cosign(t, "witness.example", string(appendVector(t, right, "sealed.log", signer)), 1)
	removeOld(t, right, size)
	proof, err := l.ProveLog(log)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "run.tlog-proof"), proof)
	put(t, filepath.Join(dir, "earlier"), []byte(heads[270].Signed))
	all := row{Path: "right", About: "nothing changed", Key: signer.Key(), Since: "earlier", Log: "run.log"}
	proves := row{Path: "run.tlog-proof", About: "a proof", Key: signer.Key(), Log: "run.log"}
	rows := []row{all, proves}
	random := rand.New(rand.NewPCG(5, 6))
	for name, data := range filesOf(t, right) {
		for i := range each {
			r := all
			r.Path = fmt.Sprintf("%s-%d", strings.ReplaceAll(name, "/", "-"), i)
			r.About = linked(t, right, filepath.Join(dir, r.Path), name, data, random)
			rows = append(rows, r)
		}
	}
	if found := askAll(t, dir, rows); found["complete"] != 1 || found["proved"] != 1 {
		t.Errorf("verdicts: %v", found)
	}
	put(t, filepath.Join(right, checkpointFile), []byte(cosigned))
	rows = rows[:1]
	for i := range each {
		since, proved := all, proves
		since.Since, proved.Path = fmt.Sprint("earlier-", i), fmt.Sprint("proof-", i)
		since.About = changed(t, filepath.Join(dir, since.Since), heads[270].Signed, random)
		proved.About = changed(t, filepath.Join(dir, proved.Path), string(proof), random)
		rows = append(rows, since, proved)
	}
	if found := askAll(t, dir, rows); found["complete"] != 1 || found["invalid"] != 2*each {
		t.Errorf("verdicts: %v", found)
	}
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// linked makes a ledger with the files of another, one of them changed.
func linked(t testing.TB, from, to, name, data string, random *rand.Rand) string {
	t.Helper()
	for other := range filesOf(t, from) {
		path := filepath.Join(to, other)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil && other != name {
			err = os.Link(filepath.Join(from, other), path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return changed(t, filepath.Join(to, name), data, random)
}

// changed writes data with one byte changed, and says which.
func changed(t testing.TB, path, data string, random *rand.Rand) string {
	t.Helper()
	at, bit := random.IntN(len(data)), byte(1)<<random.IntN(8)
	put(t, path, []byte(data[:at]+string([]byte{data[at] ^ bit})+data[at+1:]))
	return fmt.Sprintf("%s: byte %d of %d, bit %d (%q)", filepath.Base(path), at, len(data), bit, data[at])
}
