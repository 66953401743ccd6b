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
		"exact, logistic":                  "4d4049e32c700a77e9073fba26d49adcf0f9edf9b5d7796ba8b9240ffe60c8a6",
		"exact, softmax":                   "94df699469f44d74530b9fb7c22d3920641f53fb7d106ab855010b5018726165",
		"global":                           "adb01d569d46cecdabafdf4e3d5c11193c748819f0aafb5920101053faa59610",
		"logistic, diagnostics":            "95cb523eed1aae533d80464d50f567b74b7948840a7877f06232f6eac0ac1358",
		"softmax, diagnostics":             "6f694325fea25f298a776077eb89dd090c2777810cd09d0a09bb7ba1b041d6bf",
		"linear":                           "792964ccefef027618267c4fbf052e6e63bf3c7a3c06b96b85c0b00f3f6435b6",
		"published, logistic, diagnostics": "c71d4ccc600651bb5aebcebd8ed25d306a9b7a3393fd466cba95740048d677a5",
	},
}

// versions is what a model says of the program that made it, which decides no number.
var versions = regexp.MustCompile(`(?m)^ "(program|plan_sha256)": .*$`)

// The revision stands for the numbers: both ends of a study must have the same one,
// so that it must change with them.
func TestRevisionStandsForTheNumbers(t *testing.T) {
	if got := (Method{}).Revision(); got != 2 {
		t.Fatalf("these hashes are those of revision 2, not %d: run the test with them left empty, and put in what it says", got)
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
