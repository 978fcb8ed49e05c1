// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// benchBody is as large as a typical decision.
var benchBody = body{ID: "unit", Run: "go test ./internal/shell/parse -run TestHeredoc -count=1", Note: strings.Repeat("a reason of some length. ", 20)}

// BenchmarkAppend includes fsync.
func BenchmarkAppend(b *testing.B) {
	l := create(b)
	for b.Loop() {
		if _, err := l.Append("decision", benchBody); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerify reports entries per second.
func BenchmarkVerify(b *testing.B) {
	const entries = 20000
	data := longLog(b, entries)
	key := testSigner(b, "test.example").Key()
	b.SetBytes(int64(len(data)))
	start := time.Now()
	for b.Loop() {
		if sum, err := Verify(bytes.NewReader(data), Trust{Key: key}); err != nil || sum.Entries != entries {
			b.Fatal(sum, err)
		}
	}
	b.ReportMetric(float64(entries*b.N)/time.Since(start).Seconds(), "entries/s")
}

// longLog creates a log in memory, with the code of Create and Append.
func longLog(t testing.TB, entries int) []byte {
	l, err := newLog("unused", testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	put := func(lines []byte, after tree) {
		all, _, err := l.signLines(lines, after, false)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, all...)
		l.tree, l.size = after, int64(len(out))
	}
	put(l.headerLine(), tree{})
	for range entries {
		line, after, err := l.nextEntry("decision", benchBody)
		if err != nil {
			t.Fatal(err)
		}
		put(line, after)
	}
	return out
}
