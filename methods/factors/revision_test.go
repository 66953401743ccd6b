package factors

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"parley/method"
)

// What is computed and what is sent, in small studies, by architecture. Both ends
// of a study compare revisions only: that is worth something if none of this
// changes unless the revision does.
var revisionDigests = map[string]map[string]string{
	"amd64": {
		"federated":  "da804144e760fe4f0a46dfb71882e1c6a922d1ba1cded512dcf733fd8eb50f2b",
		"statistics": "dec7972ef62369a6df6788ab7815565f2099a47a324b892606cefb335dd72e47",
	},
}

const revisionOfDigests = 18

func TestNumbersChangeOnlyWithTheRevision(t *testing.T) {
	if got := (Method{}).Revision(); got != revisionOfDigests {
		t.Fatalf("the revision is %d, and the digests below are of %d: put in those that this test prints, and the revision", got, revisionOfDigests)
	}
	for name, s := range map[string]*small{
		"federated":  threeSites(t, federatedOptions),
		"statistics": private(patternsOptions, checkedBudget).study(t),
	} {
		p := newPlay(t, s)
		if s.plan.Privacy.Differential() {
			p.behindGates(3)
		}
		h := sha256.New()
		p.order = func(tasks []method.Task) {
			for _, task := range tasks {
				fmt.Fprintf(h, "%s %s %x\n", task.Site, task.Kind, task.Body)
			}
		}
		p.said = func(c method.Contribution) {
			fmt.Fprintf(h, "%s %x\n", c.Site, c.Body)
			for _, sum := range slices.Sorted(maps.Keys(c.Sums)) {
				for _, n := range c.Sums[sum] {
					for i := range n.Blocks() {
						fmt.Fprintln(h, sum, n.Floats(i))
					}
				}
			}
		}
		r, err := p.run()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == "model/loadings.csv" })
		h.Write(r.Files[i].Data)
		got := hex.EncodeToString(h.Sum(nil))
		if want, known := revisionDigests[runtime.GOARCH][name]; known && got != want {
			t.Errorf("%s: the numbers or the messages have changed: raise Revision, and put digest %s in the place of %s", name, got, want)
		}
	}
}
