// SPDX-License-Identifier: Apache-2.0

// Package pkg contains only tests of the repository as a whole: its layers, dependencies,
// lanes, threats and language.
package pkg

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

const module = "github.com/fumehood/fumehood/"

// A room is a line of layers.txt: a directory whose packages have one subject.
type room struct {
	floor          int
	path, sentence string
}

// readRooms reads layers.txt.
func readRooms(t *testing.T) (rooms []room) {
	t.Helper()
	text, err := os.ReadFile("layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		floor, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		path, sentence, found := strings.Cut(rest, " ")
		number, err := strconv.Atoi(floor)
		if err != nil || !found {
			t.Fatalf("layers.txt: %q is not a floor, a path and a sentence", line)
		}
		rooms = append(rooms, room{number, path, strings.TrimSpace(sentence)})
	}
	return rooms
}

// roomOf returns the room of a package of this module.
func roomOf(rooms []room, path string) (found room, known bool) {
	for _, r := range rooms {
		if (path == r.path || strings.HasPrefix(path, r.path+"/")) && len(r.path) > len(found.path) {
			found, known = r, true
		}
	}
	return found, known
}

// only lists the packages that only certain packages may import, and those of tests, which none may. For
// other modules, see CONTRIBUTING's table.
var only = map[string][]string{
	"internal/watch/monitor/sentry":           {"cmd/fumehood-runsc"},
	"internal/sandbox/guest":                  {"internal/sandbox", "cmd/fumehood-init"},
	"internal/sandbox/control":                {"internal/sandbox"},
	"internal/kit/golden":                     {},
	"internal/kit/document/schematest":        {},
	"internal/kit/testprogram":                {},
	"cmd/fumehood/internal/jobtest":           {},
	"internal/agents/session/conformance":     {},
	"internal/agents/session/remote/certtest": {},
}

type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	list, err := listPackages()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	return list
}

var listPackages = sync.OnceValues(func() (list []goPackage, err error) {
	out, err := exec.Command("go", "list", "-tags", "e2e,nightly", "-json=ImportPath,Imports,TestImports,XTestImports", module+"...").Output()
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for decoder.More() {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
})

// Imports go down only.
func TestLayers(t *testing.T) {
	rooms, used, arrows := readRooms(t), map[string]bool{}, map[[2]string]bool{}
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		if from == "pkg" || strings.HasPrefix(from, "testdata/") {
			continue
		}
		here, known := roomOf(rooms, from)
		if !known {
			t.Errorf("%s is in no room: put it into one, or add a line to layers.txt", from)
			continue
		}
		used[here.path] = true
		for _, path := range p.Imports {
			to, inside := strings.CutPrefix(path, module)
			if !inside {
				if here.path == "pkg/proposal" && strings.Contains(path, ".") {
					t.Errorf("%s imports %s: the lowest floor has the standard library only", from, path)
				}
				if from == "internal/policy/facts" && strings.HasPrefix(path, "github.com/open-policy-agent/") {
					t.Errorf("%s imports %s: what is known of tools needs no OPA", from, path)
				}
				continue
			}
			checkImporter(t, from, to)
			if there, _ := roomOf(rooms, to); there.path != here.path && !strings.HasPrefix(to, "testdata/") {
				arrows[[2]string{here.path, there.path}] = true
				if there.floor >= here.floor {
					t.Errorf("%s (floor %d) imports %s (floor %d): imports go down only", from, here.floor, to, there.floor)
				}
			}
		}
	}
	for _, r := range rooms {
		if !used[r.path] {
			t.Errorf("layers.txt names %s, which has no package", r.path)
		}
	}
	if len(rooms) > 23 || len(arrows) > 110 {
		t.Errorf("%d rooms and %d arrows between them", len(rooms), len(arrows))
	}
}

func checkImporter(t *testing.T, from, to string) {
	t.Helper()
	for prefix, importers := range only {
		isInside := func(room string) bool { return from == room || strings.HasPrefix(from, room+"/") }
		if to != prefix && !strings.HasPrefix(to, prefix+"/") {
			continue
		}
		if !slices.ContainsFunc(append(importers, prefix), isInside) {
			t.Errorf("%s imports %s, which only %s may", from, to, strings.Join(importers, ", "))
		}
	}
}

// ARCHITECTURE's table is layers.txt.
func TestLayerTable(t *testing.T) {
	const page, head, end = "../docs/ARCHITECTURE.md", "| floor | room | what is in it |\n| --- | --- | --- |\n", "\n\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), head)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatal("ARCHITECTURE.md has no table of layers")
	}
	var table strings.Builder
	for _, r := range slices.Backward(readRooms(t)) {
		fmt.Fprintf(&table, "| %d | `%s` | %s |\n", r.floor, r.path, r.sentence)
	}
	golden.Compare(t, page, []byte(before+head+strings.TrimSuffix(table.String(), "\n")+end+after))
}
