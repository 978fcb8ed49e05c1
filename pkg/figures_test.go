// SPDX-License-Identifier: Apache-2.0

package pkg

import (
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

// A statement is a figure that pages state, as a pattern with N in its place, and where the code has it: a Go file and a
// constant, or a file and what precedes the number. Sizes are bytes and times are seconds.
type statement struct{ page, file, name string }

var statements = []statement{
	{`(?i)layers(?: take|,) at most N`, "internal/sandbox/image/layers/layers.go", "DefaultMaxSize"},
	{`(?i)layers take at most \S+ GiB and are at most N`, "internal/sandbox/image/layers/layers.go", "MaxStored"},
	{`at most N of one \[?set-up key`, "internal/sandbox/image/layers/layers.go", "MaxLayers"},
	{`left more than N files`, "internal/sandbox/image/layers/layers.go", "MaxFiles"},
	{`left more than \S+ files or N`, "internal/sandbox/image/layers/layers.go", "MaxBytes"},
	{`reads more than N paths`, "internal/watch/monitor/wire/wire.go", "MaxReads"},
	{`results, at most N`, "internal/sandbox/results/results.go", "MaxStore"},
	{`--results-dir.{0,4}, of at most N`, "internal/sandbox/results/results.go", "MaxStore"},
	{`workspace with more than N files, \S+ GiB, or a file that is not`, "internal/sandbox/results/workspace.go", "MaxFiles"},
	{`workspace with more than \S+ files, N, or a file that is not`, "internal/sandbox/results/workspace.go", "MaxBytes"},
	{`images, at most N`, "internal/sandbox/image/oci/doc.go", "cmp.Or(l.Kept, "},
	{`fumehood/images. \(at most N`, "internal/sandbox/image/oci/doc.go", "cmp.Or(l.Kept, "},
	{`image may have N layers`, "internal/sandbox/image/oci/doc.go", "cmp.Or(l.Layers, "},
	{`image may have \S+ layers, N files`, "internal/sandbox/image/oci/doc.go", "cmp.Or(l.Files, "},
	{`layers, \S+ files, files of N,`, "internal/sandbox/image/oci/doc.go", "cmp.Or(l.File, "},
	{`, and N in all`, "internal/sandbox/image/oci/doc.go", "cmp.Or(l.Bytes, "},
	{`A sandbox waits for at most N`, "internal/sandbox/pool.go", "MaxWait"},
	{`a limit of N, and belongs to no key`, "internal/sandbox/pool.go", "waitingMemory"},
	{`another N after one was claimed`, "internal/sandbox/pool.go", "refillAfter"},
	{"limit `output`, N by default", "policies/proposal/limits.rego", `"output_bytes": `},
	{`limit is reached \(N\)`, "policies/proposal/limits.rego", `"output_bytes": `},
	{`N changes of files`, "internal/watch/observe/observation.go", "maxFiles"},
	{`N network events`, "internal/watch/observe/reach.go", "maxFlows"},
	{`text files of at most N`, "internal/egress/redact/diff.go", "maxCompared"},
	{`text files of at most \S+ MiB, N of text`, "internal/egress/redact/diff.go", "maxPatch"},
	{`N files together, and digests`, "internal/sandbox/diff.go", "maxDiffFiles"},
	{`digests of files of at most \S+ MiB, N together`, "internal/sandbox/diff.go", "maxDiffBytes"},
	{`differences of at most N files`, "internal/gate/order/differences.go", "maxCompared"},
	{`differences of at most \S+ files of at most N`, "internal/gate/order/differences.go", "maxComparedSize"},
	{`N of text for each and`, "internal/gate/order/differences.go", "maxDifference"},
	{`of text for each and N together`, "internal/gate/order/differences.go", "maxDifferences"},
	{`A session has at most N proposals`, "internal/gate/order/session.go", "MaxProposals"},
	{`of the first commands, N in all`, "internal/gate/order/session.go", "maxListed"},
	{`upload of more than N`, "internal/gate/order/transfer.go", "maxDigested"},
	{`transfer of the session \(N\)`, "internal/gate/order/transfer.go", "MaxTransfers"},
	{`[Ff]iles of more than N (?:are moved )?in parts`, "internal/agents/e2b/files.go", "partSize"},
	{`file (?:of|that goes in or out is) at most N`, "internal/agents/session/remote/wire.go", "MaxFile"},
	{`tar archive of at most N files`, "internal/agents/session/tar.go", "maxTarFiles"},
	{`tar archive of at most \S+ files and N`, "internal/agents/session/tar.go", "maxTarBytes"},
	{`Commands in the background \(.Session.Start., at most N with cells`, "internal/sandbox/background.go", "MaxBackground"},
	{`A session has at most N, within`, "internal/sandbox/interpreter/program.go", "MaxContexts"},
	{`newest N of output at most`, "internal/agents/mcpserver/process.go", "maxBuffer"},
	{`the newest N, at most \S+ MiB of each`, "internal/agents/mcpserver/output.go", "maxKept"},
	{`the newest [\d,]+, at most N of each`, "internal/agents/mcpserver/output.go", "maxResource"},
	{`more than about N characters cannot be approved`, "internal/agents/mcpserver/approval.go", "maxShown"},
	{`idle for N is ended`, "pkg/gate/session.go", "DefaultIdle"},
	{`nothing else happens for N is idle`, "pkg/gate/session.go", "DefaultIdle"},
	{`paused for N in all`, "pkg/gate/session.go", "DefaultPaused"},
	{`A pause waits up to N`, "internal/agents/e2b/pause.go", "pauseGrace"},
	{`ends after N without a connection`, "internal/agents/e2b/ports.go", "bridgeIdle"},
	{`N ports at a time`, "internal/agents/e2b/ports.go", "maxBridges"},
	{`ports at a time, N connections each`, "internal/agents/e2b/ports.go", "maxConnections"},
	{`take precedence \| N \|`, "internal/gate/order/order.go", "DefaultBudget"},
	{`fumehood.config.v1.json\), at most N`, "internal/source/config/config.go", "MaxDocument"},
	{`in UTF-8, of at most N`, "pkg/plan/plan.go", "MaxDocument"},
	{`At most N are written, nested`, "internal/source/checkout/extras.go", "maxModules"},
	{`nested at most N deep`, "internal/source/checkout/extras.go", "maxNesting"},
	{`posts at most N comments in a run`, "internal/review/post/post.go", "MaxLints"},
	{`comments in a run and N in a pull request`, "internal/review/post/post.go", "MaxAllLints"},
	{`get a comment, N in a run and`, "internal/review/post/post.go", "MaxLints"},
	{`A review has at most N comments`, "internal/review/post/post.go", "MaxComments"},
	{`Findings of more than N are not passed on`, "internal/review/find.go", "MaxHandedOver"},
	{`is shown at most N characters of the diff`, "internal/review/question.go", "maxDiffShown"},
	{`characters of the diff, N of one file`, "internal/review/question.go", "maxFileShown"},
	{`in part, of at most N each`, "internal/review/whole.go", "maxWholeFile"},
	{`of at most [\d,]+ bytes each and N in all`, "internal/review/whole.go", "maxWholeFiles"},
	{`lines of more than N, and files that`, "internal/review/whole.go", "maxWholeLine"},
	{"An empty `max-rounds` means N", "internal/review/reviewer.go", "DefaultRounds"},
	{"`--timeout` \\(N\\) \\|", "internal/review/reviewer.go", "DefaultTimeout"},
	{"an empty `timeout` N", "internal/review/reviewer.go", "DefaultTimeout"},
	{`of 6 bytes to N, in any encoding`, "internal/egress/secrets/mask.go", "MaxMask"},
	{`GitHub lists (?:at most )?N files`, "internal/github/pull.go", "maxFiles"},
	{`table of hosts has at most N rows`, "internal/watch/hosts/hosts.go", "Max"},
	{`at most N files, 8 MiB each`, "internal/sandbox/testresults.go", "maxResultFiles"},
	{`files, N each and \S+ MiB together`, "internal/sandbox/testresults.go", "maxResultFile"},
	{`MiB each and N together`, "internal/sandbox/testresults.go", "maxResultBytes"},
	{`What is kept is at most N without`, "internal/watch/failure/results.go", "maxResults"},
	{`up to N levels and`, "internal/watch/failure/json.go", "maxJSONDepth"},
	{`levels and N values`, "internal/watch/failure/json.go", "maxJSONValues"},
	{`Of TAP the first N of a file`, "internal/watch/failure/results.go", "maxResultTAP"},
	{`of JUnit N at each end`, "internal/watch/failure/results.go", "maxResultText"},
	{`unchanged files of packages, at most N each`, "internal/sandbox/rootfs/etc.go", "maxEtcFile"},
	{`unless it is larger than N or has sockets`, "internal/sandbox/image.go", "maxSnapshot"},
	{`From N before, .policy check`, "internal/policy/lint/expiry.go", "soon"},
	{`applies once, within N, to`, "internal/agents/mcpserver/approval.go", "answerWithin"},
	{"log_limit`(?:,| \\() ?N", "k8s/internal/node/node.go", "LogLimit: "},
}

const number = `([0-9][0-9.,]*[0-9]|[0-9]|one|two|three|four|five|eight)(?:[ -](KiB|MiB|GiB|kB|MB|GB|bytes|characters|seconds?|minutes?|hours?|days?|s|m|h)\b|(s|m|h)\b)?`

// units are bytes or seconds.
var units = map[string]float64{"": 1, "bytes": 1, "characters": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1e3, "MB": 1e6, "GB": 1e9,
	"s": 1, "second": 1, "seconds": 1, "m": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600, "hours": 3600, "day": 86400, "days": 86400}

var numerals = strings.NewReplacer("one", "1", "two", "2", "three", "3", "four", "4", "five", "5", "eight", "8", ",", "")

// Limits and defaults that pages state are those of the code, on every page that states them.
func TestFiguresOfPages(t *testing.T) {
	pages := map[string]string{}
	for _, page := range trackedFiles(t, "README.md", "docs/*.md", ".github/*.md") {
		if text, err := os.ReadFile(filepath.Join("..", page)); err == nil && !slices.Contains(generatedPages, page) {
			pages[page] = strings.Join(strings.Fields(string(text)), " ")
		}
	}
	for _, s := range statements {
		want := numberInCode(t, s.file, s.name)
		first, rest, _ := strings.Cut(s.page, "N")
		pattern := regexp.MustCompile(first + number + rest)
		found := 0
		for _, page := range slices.Sorted(maps.Keys(pages)) {
			for _, m := range pattern.FindAllStringSubmatch(pages[page], -1) {
				found++
				if got, err := strconv.ParseFloat(numerals.Replace(m[1]), 64); err != nil || got*units[m[2]+m[3]] != want {
					t.Errorf("%s says %q, and %s of %s is %g", page, m[0], s.name, s.file, want)
				}
			}
		}
		if found == 0 {
			t.Errorf("no page says %q: correct the pattern, or remove it with its statement", s.page)
		}
	}
}

// numberInCode returns the value of a constant, or of the number behind a text that is not a name: bytes, seconds or a count.
func numberInCode(t *testing.T, file, name string) float64 {
	t.Helper()
	before := regexp.QuoteMeta(name)
	if token.IsIdentifier(name) {
		before = `(?m)^(?:const|var)?\s+` + name + `(?: [\w.]+)? += `
	}
	found := regexp.MustCompile(before + `([^,;)}\n/]+)`).FindSubmatch(golden.Read(t, "../"+file))
	if found == nil {
		t.Fatalf("%s has no %s", file, name)
	}
	expression := strings.NewReplacer("time.Millisecond", "0.001", "time.Second", "1", "time.Minute", "60", "time.Hour", "3600",
		"proposal.KiB", "(1<<10)", "proposal.MiB", "(1<<20)", "proposal.GiB", "(1<<30)").Replace(string(found[1]))
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	if err != nil || value.Value == nil {
		t.Fatalf("%s: %s is %q: %v", file, name, expression, err)
	}
	number, _ := constant.Float64Val(constant.ToFloat(value.Value))
	return number
}
