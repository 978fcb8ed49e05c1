// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strings"
	"time"

	"github.com/sethvargo/go-githubactions"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Inputs are the action's inputs. action.yml maps each to an environment variable:
// INPUT_ and its name in capitals with underscores (INPUT_WORKING_DIRECTORY),
// because the runner sets no INPUT_ variables for a composite action. An empty
// input has its default, except for Artifact.
type Inputs struct {
	Plan              string          // a path, or the document: see DocumentOrPath; made of the input run if that is given
	Findings          string          // the findings of a reviewer, likewise
	Provider          string          // of the model that is asked for findings, one of Providers; "" for none
	Model             string          // as the provider names it; "" for none
	MaxUSD            string          // maximum cost of a review in dollars, such as "0.50"; "" for the default
	MaxTokens         int             // maximum tokens of a review, input and output; 0 for none
	MaxRounds         int             // requests that the model may answer, at most MaxModelRounds; 0 for the default
	Policy            string          // directory of the repository's own rules, relative to the repository; "" for none
	PolicyBranches    []string        // patterns of the base branches whose own rules apply, too; see OwnPolicy
	Organization      string          // the organization's bundle, pinned by its digest or on GitHub; "" for none
	OrganizationToken string          // reads a bundle on GitHub; "" for Token; secret
	OrganizationCache string          // directory of the bundle's last copy, relative to Runner.Temp; "" for none
	PolicyKey         string          // PEM of the public key that must have signed the bundle; "" for none
	MinimumRevision   string          // the oldest allowed revision of the bundle; "" for any
	Mode              string          // ModeEnforce or ModeObserve
	Phase             string          // PhaseAuto, PhaseRun, PhaseReview, PhaseReport, PhaseTrigger, PhaseFind or PhaseSplit
	Rootfs            string          // "host", "dir:/path", an image of oci.Parse, or "devcontainer"
	Network           string          // NetworkNone or NetworkPolicy
	Setup             string          // SetupConfigured, SetupAuto or SetupNone
	Timeout           time.Duration   // of all proposals together; 0 means the configuration's
	Limits            proposal.Limits // the maximum for one command; a zero field means the default
	WorkingDirectory  string          // relative to the repository, "." for its root
	FailOn            string          // see ConcludeJob
	Comment           bool            // update the pull request's comment
	CommentDetail     string          // one of config.Details; "" for the configuration's
	CommentLength     int             // maximum length of the comment, in UTF-16 units; 0 for the configuration's
	CheckRun          bool            // create a check run
	CompareBase       bool            // run commands that fail on the merge base, too, unless the configuration says otherwise
	DryRun            bool            // show in the step summary what would be posted, but post nothing
	UnsupportedEvent  string          // UnsupportedNotice or UnsupportedError
	Token             string          // github-token; secret
	Artifact          string          // name of the uploaded artifact; "" for none
	RetentionDays     int             // that the uploaded artifacts are kept; 0 for the repository's default
	Upload            string          // UploadAuto, UploadTrue or UploadFalse: whether the action uploads the artifact
	AllowedBots       []int64         // user ids of the bots that may request runs
	Reviewer          bool            // a later job has an AI reviewer, whose plan is its input Plan: the command review starts it
	ReviewerResult    string          // how the job of the AI reviewer ended, one of ReviewerResults; "" if there is none
	MaxRunsPerPR      int             // budget of runs started by comments; 0 allows none
	MaxRunsPerDay     int             // the same, in the repository since midnight UTC
	Name              string          // of this plan if there are several; "" for a single one
	Request           string          // the output of a job with phase trigger; "" for none
	AuditKey          *audit.Signer   // cosigns the logs that this job reports; nil for none
	OTLP              string          // URL of an OpenTelemetry collector; "" for none
	OTLPHeaders       []string        // NAME=VARIABLE each, never a value
	Mask              []Masked        // values to redact from everything that leaves the job; secret
	LayersCache       string          // directory of restored layers of set-up, relative to Runner.Temp; "" for none
	ResultsCache      string          // the same for kept results
	Parts             int             // of the plan, with PhaseSplit: at most MaxSplit
	Durations         string          // file of earlier durations, relative to Runner.Temp; "" for none
	Checkout          string          // directory of an earlier step's checkout, relative to the workspace; "" to make one
}

// The values of Inputs.Mode.
const (
	ModeEnforce = "enforce"
	ModeObserve = "observe"

	NetworkNone   = "none"   // no network, whatever a plan requests
	NetworkPolicy = "policy" // the hosts that a plan requests and the rules of Policy grant
)

// The values of Inputs.Setup.
const (
	SetupConfigured = "configured" // as the configuration file says; detected if it says nothing
	SetupAuto       = "auto"       // detected
	SetupNone       = "none"
)

// DefaultRetentionDays is the default of Inputs.RetentionDays.
const DefaultRetentionDays = 7

// The values of Inputs.Upload.
const (
	UploadAuto  = "auto" // not on GitHub Enterprise Server
	UploadTrue  = "true"
	UploadFalse = "false"
)

// UploadsArtifacts reports whether the action's own steps upload artifacts on r.
func (in Inputs) UploadsArtifacts(r Runner) bool {
	return in.Upload == UploadTrue || in.Upload == UploadAuto && !r.isEnterpriseServer()
}

// The values of Inputs.UnsupportedEvent.
const (
	UnsupportedNotice = "notice" // do nothing, and say so
	UnsupportedError  = "error"  // fail
)

// The values of Inputs.Phase.
const (
	PhaseAuto    = "auto"
	PhaseRun     = "run"
	PhaseReview  = "review"
	PhaseReport  = "report"
	PhaseTrigger = "trigger"
	PhaseFind    = "find"
	PhaseSplit   = "split"
)

// ReviewerResults are the values of Inputs.ReviewerResult, which are those of needs.<job>.result.
var ReviewerResults = []string{ReviewerSucceeded, "failure", "cancelled", "skipped"}

// ReviewerSucceeded says that the reviewer's job has an answer.
const ReviewerSucceeded = "success"

// The defaults of numeric inputs.
const (
	DefaultMaxRunsPerPR  = 20
	DefaultMaxRunsPerDay = 200
	DefaultParts         = 4
)

// MaxSplit is the maximum of Inputs.Parts: a job that reports reads as many artifacts.
const MaxSplit = 16

// A Problem is an invalid input.
type Problem struct {
	Input   string // its name in action.yml
	Message string // lower case; quotes no secret
	Hint    string // valid YAML
}

// ReadInputs reads every input and returns all problems. If there are any, the Inputs
// must not be used.
func ReadInputs(getenv func(string) string) (Inputs, []Problem) {
	r := inputReader{getenv: getenv, action: githubactions.New(githubactions.WithGetenv(getenv))}
	in := Inputs{
		Plan:              r.readPlan(),
		Findings:          r.readDocument("findings", "findings.json"),
		Provider:          r.readProvider("provider"),
		Model:             r.readModel("model"),
		MaxUSD:            r.readUSD("max-usd"),
		MaxTokens:         r.readAmount("max-tokens", "200000", maxModelTokens),
		MaxRounds:         r.readAmount("max-rounds", "3", MaxModelRounds),
		Policy:            r.readPath("policy", "", ".github/fumehood"),
		PolicyBranches:    r.readBranches("policy-branches"),
		Organization:      r.readBundle("organization"),
		OrganizationToken: r.readToken("organization-token"),
		OrganizationCache: r.readPath("organization-cache", "", "fumehood-policy"),
		PolicyKey:         r.publicKeys("policy-key"),
		MinimumRevision:   r.readRevision("minimum-revision"),
		Mode:              r.readWord("mode", ModeEnforce, ModeObserve),
		Phase: r.readWord("phase", PhaseAuto, PhaseRun, PhaseReview, PhaseReport, PhaseTrigger, PhaseFind,
			PhaseSplit),
		Rootfs:           r.readRootfs("rootfs"),
		Network:          r.readWord("network", NetworkNone, NetworkPolicy),
		Setup:            r.readWord("setup", SetupConfigured, SetupAuto, SetupNone),
		Timeout:          r.readDuration("timeout", 0, time.Second, 6*time.Hour),
		Limits:           r.readLimits("limits"),
		WorkingDirectory: r.readPath("working-directory", ".", "service/api"),
		FailOn: r.readWord("fail-on", FailOnFailed, FailOnDenied, FailOnError, FailOnNever,
			FailOnCouldNotRun),
		Comment:          r.readBoolean("comment", true),
		CommentDetail:    r.readDetail("comment-detail"),
		CommentLength:    r.readMaxLength("comment-length"),
		CheckRun:         r.readBoolean("check-run", false),
		CompareBase:      r.readBoolean("compare-base", true),
		DryRun:           r.readBoolean("dry-run", false),
		UnsupportedEvent: r.readWord("unsupported-event", UnsupportedNotice, UnsupportedError),
		Token:            r.readToken("github-token"),
		Artifact:         r.readName("artifact", "fumehood"),
		RetentionDays:    r.readCount("retention-days", DefaultRetentionDays),
		Upload:           r.readWord("upload", UploadAuto, UploadTrue, UploadFalse),
		AllowedBots:      r.readUserIDs("allowed-bots"),
		Reviewer:         r.readBoolean("reviewer", false),
		ReviewerResult:   r.readJobResult("reviewer-result"),
		MaxRunsPerPR:     r.readCount("max-runs-per-pr", DefaultMaxRunsPerPR),
		MaxRunsPerDay:    r.readCount("max-runs-per-day", DefaultMaxRunsPerDay),
		Name:             r.readName("name", "unit-tests"),
		Request:          r.readDocument("request", "${{ needs.trigger.outputs.request }}"),
		AuditKey:         r.readSigner("audit-key"),
		OTLP:             r.readURL("otlp", "https://otlp.example"),
		OTLPHeaders:      r.readNames("otlp-headers", "Authorization=OTLP_AUTHORIZATION"),
		Mask:             r.readMasked("mask"),
		LayersCache:      r.readPath("layers-cache", "", "fumehood-layers"),
		ResultsCache:     r.readPath("results-cache", "", "fumehood-results"),
		Parts:            r.readPlanParts("parts"),
		Durations:        r.readPath("durations", "", "fumehood-durations/durations.json"),
		Checkout:         r.readPath("checkout", "", "pull-request"),
	}
	return in, r.problems
}

// DocumentOrPath returns the document in an input that is either that or the path of a file: it is the
// document if it has several lines or begins like JSON. Otherwise it returns the path, or "".
func DocumentOrPath(input string) (document []byte, path string) {
	trimmed := strings.TrimSpace(input)
	if strings.Contains(trimmed, "\n") || strings.HasPrefix(trimmed, "{") {
		return []byte(input), ""
	}
	return nil, trimmed
}

// PlanDocument returns the plan if the input has the document itself.
func (in Inputs) PlanDocument() (document []byte, inline bool) {
	document, _ = DocumentOrPath(in.Plan)
	return document, document != nil
}

// PlanPath returns the path of the plan file, or "".
func (in Inputs) PlanPath() string {
	_, path := DocumentOrPath(in.Plan)
	return path
}
