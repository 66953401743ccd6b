package regression

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"parley/method"
	"parley/method/methodtest"
)

// What small studies say on their way and end with, by architecture: another one may
// round fused products otherwise. The private ones' noise is seeded.
var golden = map[string]map[string]string{
	"amd64": {
		"exact, logistic":       "28bddf23894ec2a748978831e6c869bab373854cd59368451177052e967c0621",
		"joint, logistic":       "4f372d17c8769da67083f32433f8428b29222ad62dc22cd3ce75bf95daa11a55",
		"joint, softmax":        "baceeda63f22ef55a5eb16c055abcd67d497357ef853ce0e86521d1d7d1285ab",
		"joint, linear":         "0e1b948d9cd4f3a8df6e501a00a99280bb8c8e4e7ff7572dce1a4347d3516a0f",
		"exact, softmax":        "c39728c30ed46bc753911ac0032ae6088b1ff2894db49d7b4a22a7984f37f858",
		"logistic, diagnostics": "69c05de4275f7ca5e8c570f3f9e8e1595f23f9d3e2bfa9fa090a46b62283401b",
		"noised, logistic":      "552d4b34e3f620a1056f90da5854173c9f02ba584ad7f74a56429e366171728f",
		"noised, diagnostics":   "b87aae9e2b6761954d2d756ebd6fdc8c5dbfd5934022574afc14f31e3d4c0b96",
		"softmax, diagnostics":  "a69d07091b4a995e7c335ee2831bac2218a2137b41e32c99b29213b042377956",
		"linear":                "4e389f60d932cc07f5367b5701786acaf20af9189a0145d1c87063620a78a8cf",
	},
}

// named is what a model says of its plan, which decides no number. When these hashes were
// made, a line before it named the program.
var named = regexp.MustCompile(`(?m)^ "plan_sha256": .*$`)

// The revision stands for the numbers: both ends of a study must have the same one,
// so that it must change with them.
func TestRevisionStandsForTheNumbers(t *testing.T) {
	if got := (Method{}).Revision(); got != 17 {
		t.Fatalf("these hashes are those of revision 17, not %d: run the test with them left empty, and put in what it says", got)
	}
	for name, want := range golden[runtime.GOARCH] {
		x, exact := exactPlans[name]
		if !exact {
			x = privatePlans[name]
		}
		p := x.plan(t)
		h := sha256.New()
		d := methodtest.Drive{Method: Method{}, Plan: p, Data: dataFor(t, p), Passed: func(task method.Task, in method.Contribution) {
			fmt.Fprintf(h, "%s %s %d %d\n%s%s", task.Site, task.Kind, len(task.Body), len(in.Body), task.Body, in.Body)
		}}
		out, err := d.Run(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range out.Result.Files {
			data := f.Data
			if strings.HasSuffix(f.Name, ".json") {
				data = named.ReplaceAll(data, []byte("\n"))
				data = bytes.ReplaceAll(data, []byte("Allow more method.rounds."), []byte("Allow more method.rounds, or use variant: joint, which has the weights' correlations.")) // as it was said then
			}
			fmt.Fprintf(h, "%s %d\n%s", f.Name, len(data), data)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != want {
			t.Errorf("%q: the numbers have changed, or the form of a message. If that was meant, raise Method.Revision by one, and put in the new hash:\n  %s\n(A change of the streams of seeded noise alone changes the private ones, and no revision.)", name, got)
		}
	}
}
