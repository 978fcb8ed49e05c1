// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package bot_test

import (
	"encoding/xml"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/bot"
)

// bodies is the number of comments tried.
const bodies = 4000

// pieces are lines that open, close and hide blocks.
var pieces = []string{
	"```fumehood", "```fumehood", "```fumehood", "```", "```", "````", "~~~fumehood", "~~~", " ```fumehood", "  ```", "\t```", "```yaml",
	"a: b", "text", "", "", "", "> ", "> ```fumehood", "> ```", ">", "- a", "- ```fumehood", "  ```", "    ```", "1. ", "   x", "<!--", "-->", "<!-- x -->",
	"<details>", "</details>", "<div>", "<pre>", "</pre>", "<script>", "</script>", "<?x", "?>", "<![CDATA[", "]]>", "<!X", ">", "# t", "---", "===",
	"[a]: b", "[a]: <b> 'c", "| a |", "| - |", "* * *", "\t", "    code", "text <!--", "<a href='x'>", "\\```fumehood", "&#96;``fumehood", "[^1]: ```fumehood",
}

// TestNightlyCmarkFindsTheSamePlan checks that any plan found is one that GitHub's
// renderer shows as a top-level block, to the byte. The two may differ, rarely, on
// whether there is another plan below unclosed HTML.
func TestNightlyCmarkFindsTheSamePlan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	found, missed := 0, 0
	for range bodies {
		body := randomBody(random)
		document, ok, p := bot.FindPlan(body)
		shown := cmarkPlans(t, body)
		if ok && p == nil {
			found++
			if !slices.Contains(shown, string(document)) {
				t.Errorf("found %q, and cmark-gfm shows %q in %q", document, shown, body)
			}
			shown = shown[min(1, len(shown)):]
		}
		if p == nil && len(shown) > 0 {
			missed++
			t.Logf("cmark-gfm alone shows %q in %q", shown, body)
		}
	}
	if found < 150 || missed > found/20 {
		t.Errorf("%d plans found, %d missed", found, missed)
	}
	t.Logf("%d plans found, %d missed", found, missed)
}

func randomBody(random *rand.Rand) string {
	var all []string
	for range 3 + random.IntN(10) {
		all = append(all, pieces[random.IntN(len(pieces))])
	}
	return strings.Join(all, "\n") + "\n"
}

// cmarkPlans lists the top-level plan blocks.
func cmarkPlans(t *testing.T, body string) []string {
	t.Helper()
	cmd := exec.Command("cmark-gfm", "-t", "xml", "-e", "table", "-e", "autolink", "-e", "strikethrough", "-e", "tasklist", "-e", "footnotes")
	cmd.Stdin = strings.NewReader(body)
	page, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot run cmark-gfm (Debian's package of that name): %v", err)
	}
	var document struct {
		Blocks []struct {
			Info string `xml:"info,attr"`
			Text string `xml:",chardata"`
		} `xml:"code_block"`
	}
	if err := xml.Unmarshal(page, &document); err != nil {
		t.Fatalf("cannot read cmark-gfm's XML: %v: %s", err, page)
	}
	var plans []string
	for _, b := range document.Blocks {
		if strings.EqualFold(b.Info, "fumehood") {
			plans = append(plans, b.Text)
		}
	}
	return plans
}
