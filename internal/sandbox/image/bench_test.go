// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkFromDir writes the image of 20,000 files, 84 MB. Budget: 60 µs for each file.
//
//	go test ./internal/sandbox/image -run '^$' -bench FromDir
func BenchmarkFromDir(b *testing.B) {
	const n = 20_000
	dir, path := b.TempDir(), filepath.Join(b.TempDir(), "image")
	for i := range n {
		file := filepath.Join(dir, fmt.Sprintf("d%d/d%d/file%d.txt", i/400, i/20%20, i))
		if i%20 == 0 {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(file, []byte(strings.Repeat(fmt.Sprintf("line of file %d\n", i), 50+i%400)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := FromDir(context.Background(), path, dir, DirOptions{}); err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/file")
}
