package failure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDump(t *testing.T) {
	files, _ := filepath.Glob(os.Getenv("DUMP"))
	for _, f := range files {
		base := strings.TrimSuffix(f, ".rc")
		out, _ := os.ReadFile(base + ".out")
		err, _ := os.ReadFile(base + ".err")
		fmt.Println("==", strings.TrimPrefix(base, "/tmp/lc/out/"))
		list := Read(out, err, Options{})
		for _, d := range list {
			fmt.Printf("  [%s] %s{%s} %s:%d:%d | %.200s | want %.80s have %.80s\n", d.Tool, d.Test, d.Suite, d.File, d.Line, d.Column, d.Message, d.Expected, d.Actual)
		}
		if len(list) == 0 {
			fmt.Println("  LAST:", LastLine(out, err))
		}
	}
}
