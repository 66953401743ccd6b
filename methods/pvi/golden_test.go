package pvi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"parley/method"
)

// What small studies say on their way and end with, by architecture: another one may
// round fused products otherwise. The private ones' noise is seeded.
var golden = map[string]map[string]string{
	"amd64": {
		"exact, logistic":                  "",
		"joint, logistic":                  "",
		"joint, linear":                    "",
		"exact, softmax":                   "",
		"global":                           "",
		"logistic, diagnostics":            "",
		"softmax, diagnostics":             "",
		"linear":                           "",
		"published, logistic, diagnostics": "",
	},
}

// versions is what a model says of the program that made it, which decides no number.
var versions = regexp.MustCompile(`(?m)^ "(program|plan_sha256)": .*$`)

// The revision stands for the numbers: both ends of a study must have the same one,
// so that it must change with them.
func TestRevisionStandsForTheNumbers(t *testing.T) {
	if got := (Method{}).Revision(); got != 3 {
		t.Fatalf("these hashes are those of revision 3, not %d: run the test with them left empty, and put in what it says", got)
	}
	for name, want := range golden[runtime.GOARCH] {
		x, exact := exactPlans[name]
		if !exact {
			x = privatePlans[name]
		}
		p := x.plan(t)
		h := sha256.New()
		d := drive{plan: p, data: dataFor(t, p), passed: func(task method.Task, in method.Contribution) {
			fmt.Fprintf(h, "%s %s %d %d\n%s%s", task.Site, task.Kind, len(task.Body), len(in.Body), task.Body, in.Body)
		}}
		out, err := d.run(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range out.result.Files {
			data := f.Data
			if strings.HasSuffix(f.Name, ".json") {
				data = versions.ReplaceAll(data, nil)
			}
			fmt.Fprintf(h, "%s %d\n%s", f.Name, len(data), data)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("%q: the numbers have changed, or the form of a message. If that was meant, raise Method.Revision by one, and put in the new hash:\n  %s\n(A change of the streams of seeded noise alone changes the private ones, and no revision.)", name, got)
		}
	}
}
