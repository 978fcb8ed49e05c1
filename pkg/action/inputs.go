// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strings"
	"time"

	"github.com/sethvargo/go-githubactions"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Inputs are the action's inputs. action.yml maps each into the environment as
// INPUT_ and its name in capitals with underscores (INPUT_WORKING_DIRECTORY): the
// runner sets no INPUT_ variables for a composite action. An input that is empty
// has its default, Artifact excepted.
type Inputs struct {
	Plan             string          // a path, or a document itself: see PlanDocument
	Policy           string          // folder of the repository's own rules, relative to the repository; "" for none
	Organisation     string          // the organisation's bundle, pinned by its digest; "" for none
	PolicyKey        string          // PEM of the public key that must have signed it; "" for none
	MinimumRevision  string          // the oldest that it may be; "" for any
	Mode             string          // ModeEnforce or ModeObserve
	Phase            string          // PhaseAuto, PhaseRun, PhaseReport or PhaseTrigger
	Rootfs           string          // "host" or "dir:/path"
	Network          string          // NetworkNone or NetworkPolicy
	Timeout          time.Duration   // of all proposals together
	Limits           proposal.Limits // the most that one command may have; a zero field is the default
	WorkingDirectory string          // relative to the repository, "." for its top
	FailOn           string          // see Conclude
	Comment          bool            // keep the pull request's comment
	CheckRun         bool            // make a check run
	Staged           bool            // show in the step summary what would be posted, and post nothing
	Token            string          // github-token; secret
	Artifact         string          // name of the uploaded artifact; "" for none
	AllowedBots      []int64         // user ids of the bots that may propose
	MaxRunsPerPR     int             // budget of runs by comments; 0 is none at all
	MaxRunsPerDay    int             // the same, in the repository since midnight UTC
	Name             string          // of this plan when there are several; "" for the only one
	Request          string          // what a job with phase trigger handed on; "" for none
	OTLP             string          // URL of an OpenTelemetry collector; "" for none
	OTLPHeaders      []string        // NAME=VARIABLE each, never a value
	Mask             []Masked        // values that must appear in nothing that leaves; secret
	Checkout         string          // folder with an earlier step's checkout, relative to the workspace; "" for our own
}

// The values of Inputs.Mode.
const (
	ModeEnforce = "enforce"
	ModeObserve = "observe"

	NetworkNone   = "none"   // whatever a plan asks for
	NetworkPolicy = "policy" // the hosts that a plan asks for and the rules of Policy grant
)

// The values of Inputs.Phase.
const (
	PhaseAuto    = "auto"
	PhaseRun     = "run"
	PhaseReport  = "report"
	PhaseTrigger = "trigger"
)

// The defaults of inputs that are numbers.
const (
	DefaultTimeout       = 20 * time.Minute
	DefaultMaxRunsPerPR  = 20
	DefaultMaxRunsPerDay = 200
)

// A Problem is one input that cannot be used.
type Problem struct {
	Input   string // its name in action.yml
	Message string // lower case; quotes no secret
	Hint    string // YAML that is right
}

// ReadInputs reads every input and tells everything that is wrong with them. When
// there are problems the Inputs must not be used.
func ReadInputs(getenv func(string) string) (Inputs, []Problem) {
	r := inputReader{action: githubactions.New(githubactions.WithGetenv(getenv)), getenv: getenv}
	in := Inputs{
		Plan:             r.document("plan", "plan.json"),
		Policy:           r.path("policy", "", ".github/fumehood"),
		Organisation:     r.bundle("organisation"),
		PolicyKey:        r.publicKey("policy-key"),
		MinimumRevision:  r.revision("minimum-revision"),
		Mode:             r.word("mode", ModeEnforce, ModeObserve),
		Phase:            r.word("phase", PhaseAuto, PhaseRun, PhaseReport, PhaseTrigger),
		Rootfs:           r.rootfs("rootfs"),
		Network:          r.word("network", NetworkNone, NetworkPolicy),
		Timeout:          r.duration("timeout", DefaultTimeout, time.Second, 6*time.Hour),
		Limits:           r.limits("limits"),
		WorkingDirectory: r.path("working-directory", ".", "service/api"),
		FailOn:           r.word("fail-on", FailOnFailed, FailOnDenied, FailOnError, FailOnNever),
		Comment:          r.boolean("comment", true),
		CheckRun:         r.boolean("check-run", false),
		Staged:           r.boolean("staged", false),
		Token:            r.token("github-token"),
		Artifact:         r.name("artifact", "fumehood"),
		AllowedBots:      r.ids("allowed-bots"),
		MaxRunsPerPR:     r.count("max-runs-per-pr", DefaultMaxRunsPerPR),
		MaxRunsPerDay:    r.count("max-runs-per-day", DefaultMaxRunsPerDay),
		Name:             r.name("name", "unit-tests"),
		Request:          r.document("request", "${{ needs.trigger.outputs.request }}"),
		OTLP:             r.address("otlp", "https://otlp.example"),
		OTLPHeaders:      r.words("otlp-headers", "Authorization=OTLP_AUTHORIZATION"),
		Mask:             r.masked("mask"),
		Checkout:         r.path("checkout", "", "pull-request"),
	}
	return in, r.problems
}

// PlanDocument returns the plan when the input holds the document itself rather
// than the path of a file: when it has several lines or begins as JSON does.
func (in Inputs) PlanDocument() (document []byte, inline bool) {
	if strings.Contains(strings.TrimSpace(in.Plan), "\n") || strings.HasPrefix(strings.TrimSpace(in.Plan), "{") {
		return []byte(in.Plan), true
	}
	return nil, false
}

// PlanPath returns the path of the plan's file, or "" when there is none.
func (in Inputs) PlanPath() string {
	if _, inline := in.PlanDocument(); inline {
		return ""
	}
	return strings.TrimSpace(in.Plan)
}
