package mixture

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"parley/methods/mixture/report"
	"parley/privacy/privacytest"
	"parley/study"
)

// A plan and data that always gave the same numbers give others now, or none: then
// sites and coordinators of both programs must not run one study.
func TestTheNumbersAreThoseOfTheRevision(t *testing.T) {
	const revision = 6
	// SHA-256 of the model's files. Seeded noise follows from the plan's digest, too: if
	// only that has changed, so have the private ones alone.
	known := map[string]map[string]string{
		"amd64": {
			taskLandmarks:   "4a61d81956524065d4d291f86b8dff238e7a31f544c19b070171383fc0b8772a",
			taskFrequencies: "cc9668dab62adf8059894589b219efc57ee4bde7b3e6fabe1747a64e938a653f",
			"staged 1":      "64cc6b3ed3b80feaa571652f7f50a00dd53b3d5009d138631a109a1738cb190a",
			"private":       "8aafa295da92df78b48d6876a187c476c80f6b25849bbdd8c871c08ae33bbc1c",
			"private codes": "ac157b7513f66af72334e92ad1294a48d3c836d497f81e9804e9a52c850f364e",
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
		if f.Name == "model/model.json" { // which names the plan, too
			m, err := report.LoadModel(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			m.Plan = ""
			if content, err = json.Marshal(m); err != nil {
				t.Fatal(err)
			}
			content = bytes.Replace(content, []byte(`"plan_sha256":`), []byte(`"program":"","plan_sha256":`), 1) // as when these hashes were made
		}
		fmt.Fprintf(h, "%s %d\n", f.Name, len(content))
		h.Write(content)
	}
	return hex.EncodeToString(h.Sum(nil))
}
