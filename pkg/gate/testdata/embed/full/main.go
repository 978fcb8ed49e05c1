// SPDX-License-Identifier: Apache-2.0

// This program in another module fills the options of a gate, runs a plan and a session, and reads what
// they leave: the report, its forms, and the log.
package main

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
)

const ownRule = `package fumehood.command

deny contains {"rule": "embed.tac", "message": "tac is not used here", "suggestion": "use cat"} if input.command.program == "tac"
`

const document = `
schema: fumehood.plan/v1
proposals:
  - {id: made, run: cat made}
  - {id: denied, run: tac go.mod}
  - {id: secret, run: cat secret}
`

func main() {
	if code, is := gate.Helper(); is {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("", "embed-")
	check(err)
	defer os.RemoveAll(dir)
	runPlan(dir)
	runSession(dir)
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// options fills what a plan's gate can have.
func options(ctx context.Context, dir string) gate.Options {
	read, err := gate.ReadPolicy(ctx, "policy", gate.PolicyOptions{})
	check(err)
	key, err := audit.GenerateKey("embed")
	check(err)
	signer, err := audit.NewSigner(key)
	check(err)
	o := gate.Options{
		Policies:  []gate.Policy{{Name: "own", Role: "opens", Files: map[string][]byte{"own.rego": []byte(ownRule)}}, read},
		Ceiling:   proposal.Limits{Memory: 512 * proposal.MiB},
		Limits:    &proposal.Limits{Wall: proposal.Duration(time.Minute)},
		Workspace: "workspace", Rootfs: "host", Tools: os.Getenv("PATH"), ToolOwners: []int{0}, ImageFrom: 1,
		Artifacts: filepath.Join(dir, "artifacts"), AuditFile: filepath.Join(dir, "log.jsonl"), Signer: signer,
		Masks:       []gate.Mask{{Name: "PASSWORD", Value: "correct-horse"}},
		Credentials: []gate.Credential{{Name: "TOKEN", Host: "api.example", Value: "Bearer battery-staple"}},
		Resolvers:   []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")},
		Registries: func(context.Context, []string) ([]gate.Registry, error) {
			return []gate.Registry{{Name: "npm", URLs: []string{"https://mirror.example/npm"}, Env: map[string]string{"npm_config_registry": "https://mirror.example/npm"}}}, nil
		},
		Subject: gate.Subject{Repository: "owner/name", HeadSHA: "1111111111111111111111111111111111111111"},
		Version: "embed", Cache: true,
		Results: gate.Store{Mode: "write", Dir: filepath.Join(dir, "results")},
		Layers:  gate.Store{Mode: "write", Dir: filepath.Join(dir, "layers")},
		Progress: func(s gate.Step) {
			if s.Result == nil {
				fmt.Println("step", s.Number, "of", s.Of, s.Proposal, s.Setup)
			}
		},
		Notice: func(string) {},
	}
	o.Setup, err = gate.FindSetup(ctx, o)
	check(err)
	o.Setup.Steps = append(o.Setup.Steps, gate.SetupStep{Proposal: proposal.Proposal{ID: "make", Run: "echo made > made"}})
	return o
}

func runPlan(dir string) {
	ctx := context.Background()
	p, problems := plan.Decode([]byte(document), "plan.yaml")
	for _, problem := range problems {
		fmt.Println(plan.Describe("plan.yaml", problem))
	}
	g, err := gate.New(ctx, options(ctx, dir))
	check(err)
	defer g.Close()
	r, err := g.Run(ctx, p)
	check(err)
	for _, record := range r.Records {
		fmt.Print(record.Proposal.ID, " ", record.Decision.Effect)
		if record.Result != nil {
			fmt.Printf(" %q", record.Result.Stdout.Head)
		}
		fmt.Println()
	}
	var sarif, junit bytes.Buffer
	check(report.SARIF(&sarif, r, nil))
	check(report.JUnit(&junit, r))
	document, err := report.JSON(r)
	check(err)
	again, err := report.Read(document, 1<<20)
	check(err)
	fmt.Println(again.Totals.Succeeded, sarif.Len() > 0, junit.Len() > 0)
	log, err := audit.OpenFile(r.Audit.File)
	check(err)
	defer log.Close()
	summary, err := audit.Verify(log, audit.Trust{Key: r.Audit.Key, Checkpoint: r.Audit.Checkpoint})
	fmt.Println("verified", summary.Complete(), err)
}

func runSession(dir string) {
	ctx := context.Background()
	pool := gate.NewPool(1)
	defer pool.Close()
	g, err := gate.New(ctx, gate.Options{Workspace: "workspace", Pool: pool, MountsUnsafe: []gate.Mount{{Source: "policy", Target: "/mnt/policy"}}})
	check(err)
	defer g.Close()
	check(g.Prepare(ctx, gate.SessionOptions{}))
	var opener gate.Opener = g
	s, err := opener.Open(ctx, gate.SessionOptions{Proposer: "embed", Idle: time.Minute, Lifetime: time.Hour})
	check(err)
	check(s.SetUp(ctx, proposal.Proposal{}, nil))
	shown := gate.WithOutput(ctx, func(c proposal.Chunk) { fmt.Printf("shown %q\n", c.Data) })
	record, err := s.Do(shown, proposal.Proposal{ID: "list", Run: "echo new > new && cat new"})
	check(err)
	fmt.Println(record.Decision.Effect)
	diff, err := s.Diff(ctx)
	check(err)
	data, _, err := s.Take(ctx, "new")
	check(err)
	r, err := s.Close()
	check(err)
	fmt.Printf("%d files, %q, %d succeeded, %v\n", len(diff.Files), data, r.Totals.Succeeded, r.Run.Unenforced)
}
