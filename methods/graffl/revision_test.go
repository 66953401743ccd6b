package graffl

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"parley/methods/graffl/report"
	"parley/privacy/privacytest"
	"parley/study"
)

// A plan and data that always gave the same numbers give others now, or none: then
// sites and coordinators of both programs must not run one study.
func TestTheNumbersAreThoseOfTheRevision(t *testing.T) {
	const revision = 4
	// SHA-256 of the model's files. Seeded noise follows from the plan's digest, too: if
	// only that has changed, so have the private ones alone.
	known := map[string]map[string]string{
		"amd64": {
			taskLandmarks:     "d47936d3acea473a11a8aa1af42571197375e32f651c0d504cac0395ec1452e9",
			taskDistances:     "e462f4f9181a48c982a378a00c3c59a0e6033bba1154991b015d5485981fa9da",
			taskDiscrepancies: "329d33457c8d6ce8bfe32884ec9615a3345d6fa2a8d5c4556bff0d5913b6d18e",
			taskFrequencies:   "816bd3edb1837b4f5a7eb291c3362e74f2d190802f417c565f30221fc249f7fe",
			"staged 1":        "9abc5bedba9988422e7d715eb6e6ef9246cd0fa8257d93fa2eeebc3ba34a340c",
			"private":         "e144a450a81fb5c95e8d3c4b6b3dd12bb5dd1bbad029d68779494f575801df01",
			"private codes":   "6e7011f84a3179612505ff2aec03b0201d08a6b79a2f5119b42ddf407d44133c",
		},
	}[runtime.GOARCH] // others round differently, as they fuse multiplications
	if known == nil {
		return
	}
	if r := (Method{}).Revision(); r != revision {
		t.Errorf("revision %d: bring this test up to it, with the digests that it prints", r)
	}
	for name, want := range known {
		p := parsePlan(t, studied()[name])
		sites := everySite(t, p, manyRows(t, p, 60), privacytest.Seeded(17))
		if got := digestOf(t, p, sites); got != want {
			t.Errorf("%s: the numbers have changed, raise Revision (model %s, which was %s)", name, got, want)
		}
	}
}

// digestOf runs an honest study, and returns SHA-256 of the files of its model.
func digestOf(t *testing.T, p *study.Plan, sites map[string]*gated) string {
	t.Helper()
	done, err := play(t, p, sites, honest)
	if err != nil {
		t.Fatal(err)
	}
	r, err := done.c.Result(done.s)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, f := range r.Files {
		if f.Name == releasedName { // the sample is made of it, and it names the plan
			continue
		}
		content := f.Data
		if f.Name == "model/model.json" { // which names program and plan, too
			m, err := report.LoadModel(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			m.Program, m.Plan = "", ""
			if content, err = json.Marshal(m); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(h, "%s %d\n", f.Name, len(content))
		h.Write(content)
	}
	return hex.EncodeToString(h.Sum(nil))
}
