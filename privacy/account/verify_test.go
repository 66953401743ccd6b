package account_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/privacy/account"
)

func vectorFile(t testing.TB) []byte {
	t.Helper()
	return testkit.Get(os.ReadFile("testdata/dp/vectors.json"))(t)
}

func TestPublishedVectorsAgree(t *testing.T) {
	checks := testkit.Get(account.Verify(vectorFile(t)))(t)
	testkit.Agree(t, checks, 300)
}

// unused are inputs on which nothing in the file depends: what surrounds the NaN
// of a vector that is refused, the bound of a vector of zeros, and the ε of a δ
// that is 1 on either side.
var unused = regexp.MustCompile(`^clip-06\.(bound|input)|^clip-04\.bound|^eps-mixed-02\.expect\.delta_check\.epsilon`)

// TestChangedVectorsDisagree changes numbers of every case one by one, in a file
// of that case alone: each must be noticed. Of costly kinds it takes one of a
// case, at random, of the others all.
func TestChangedVectorsDisagree(t *testing.T) {
	var file struct {
		Schema string           `json:"schema"`
		Orders []json.Number    `json:"rdp_orders"`
		Cases  []map[string]any `json:"cases"`
	}
	d := json.NewDecoder(bytes.NewReader(vectorFile(t)))
	d.UseNumber()
	testkit.Do(t, d.Decode(&file))
	all := file.Cases
	agree := func() bool {
		data := testkit.Get(json.Marshal(file))(t)
		checks, err := account.Verify(data)
		return err == nil && vectors.List(checks).OK()
	}
	r := rand.New(rand.NewPCG(4, 2))
	changed := 0
	for _, c := range all {
		id, kind := c["id"].(string), c["kind"].(string)
		list := slices.DeleteFunc(testkit.Numbers(id, c), func(n testkit.Number) bool {
			return unused.MatchString(n.Path)
		})
		if slices.Contains([]string{"epsilon", "calibrate_composition", "calibrate_rounds"}, kind) {
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			list = list[:1]
		}
		file.Cases = []map[string]any{c}
		for _, n := range list {
			n.WhileChanged(t, func(to json.Number) {
				if agree() {
					t.Errorf("%s was changed from %s to %s and still agrees", n.Path, n.Old, to)
				}
			})
			changed++
		}
	}
	if changed < 200 {
		t.Errorf("only %d numbers were changed", changed)
	}
	// An order that no case finds best can be changed unseen; this one is found.
	file.Cases = all[:1]
	for i, o := range file.Orders {
		if o == "5.4" {
			file.Orders[i] = "5.41"
		}
	}
	if agree() {
		t.Error("an order was changed and the case that it is best for still agrees")
	}
}

func TestUnknownVectorsAreRefused(t *testing.T) {
	one := func(c string) string {
		return `{"schema": "dp-vectors/1", "rdp_orders": [2], "cases": [` + c + `]}`
	}
	for file, want := range map[string]string{
		`{"schema": "dp-vectors/2"}`:             "unknown schema",
		`{}`:                                     "unknown schema",
		`[]`:                                     "test vectors",
		`{"schema": "dp-vectors/1"} {}`:          "test vectors",
		`{"schema": "dp-vectors/1", "extra": 1}`: "unknown field",
		one(`{"id": "a", "kind": "b"}`):          `a is of unknown kind "b"`,
		one(`{"id": "a", "kind": "rdp", "q": 1}`):                              "unknown field",
		one(`{"id": "a", "kind": "rdp", "adjacency": "both"}`):                 "unknown adjacency",
		one(`{"id": "a", "kind": "rdp", "mechanisms": [{"type": "shuffle"}]}`): "unknown type",
		one(`{"id": "a", "kind": "clip", "norm": "l3"}`):                       "is not known",
		one(`{"id": "a", "kind": "sensitivity", "name": "c"}`):                 "unknown name",
	} {
		if _, err := account.Verify([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", file, err, want)
		}
	}
}

// FuzzVerify: no file may make the verification panic.
func FuzzVerify(f *testing.F) {
	var file struct {
		Cases []json.RawMessage `json:"cases"`
	}
	testkit.Do(f, json.Unmarshal(vectorFile(f), &file))
	for _, c := range file.Cases {
		// one of each kind, but for the slow one
		if bytes.Contains(c, []byte(`-01"`)) && !bytes.Contains(c, []byte(`"calibrate_rounds"`)) {
			f.Add([]byte(`{"schema": "dp-vectors/1", "rdp_orders": [1.5, 2, 8], "cases": [` + string(c) + `]}`))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<14 {
			return
		}
		checks, err := account.Verify(file)
		if err == nil {
			for _, c := range checks {
				if c.Entry == "" {
					t.Errorf("a check without a name: %+v", c)
				}
			}
		}
	})
}
