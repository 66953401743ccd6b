package study_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/privacy/account"
	"parley/study"
)

func encode(t *testing.T, p *study.Plan) []byte {
	t.Helper()
	return testkit.Get(p.Encode())(t)
}

// The digest names plans for years: a change of this value is a change of the
// format. It was computed with another encoder (a few lines of Python after RFC
// 8949, section 4.2.1).
func TestDigestOfAKnownPlan(t *testing.T) {
	p := parse(t, small)
	const want = "197381c72485d24816949cd13fcbdc693680f479704e17372528c328dac11cb1"
	d := digest(t, p)
	if d.String() != want || d.Short() != want[:12] {
		t.Errorf("got %s, want %s", d, want)
	}
	if d != sha256.Sum256(encode(t, p)) {
		t.Error("the digest is not the SHA-256 of the encoding")
	}
}

func TestFormattingAndLocalDataDoNotChangeTheDigest(t *testing.T) {
	want := digest(t, parse(t, small))
	block := strings.NewReplacer("[north, centre, south]", "\n  - north\n  - 'centre' # Lyon\n  - \"south\"",
		"[age, male]", "\n    - {name: age, kind: number}\n    - name: male")
	parts := strings.SplitN(small, "views:", 2)
	views, rest, _ := strings.Cut(parts[1], "subjects:")
	for name, text := range map[string]string{
		"block style":      block.Replace(small),
		"Windows":          "\xef\xbb\xbf" + strings.ReplaceAll(small, "\n", "\r\n"),
		"another order":    "subjects:" + rest + "views:" + views + parts[0],
		"defaults written": small + "seed: 1\nquorum: 3\n",
		"a split":          small + "local: {data: d, split: {scenario: G, by: group}}\n",
		"folders":          small + "local: {sites: {north: n, centre: c, south: s}}\n",
		"an empty list":    strings.Replace(small, "latent: 6", "latent: 6\n  grid: []", 1),
	} {
		if got := digest(t, parse(t, text)); got != want {
			t.Errorf("%s: got %s, want %s\n%s", name, got, want, text)
		}
	}
}

// change alters the leaves of a plan one by one and calls do after each change
// with the path of the leaf.
func change(v reflect.Value, path string, do func(path string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			do(path)
			change(v.Elem(), path, do)
			v.SetZero()
			return
		}
		change(v.Elem(), path, do)
	case reflect.Interface:
		change(v.Elem(), path, do)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() { // no others are in a plan's text
				change(v.Field(i), path+"."+f.Name, do)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			change(v.Index(i), fmt.Sprintf("%s[%d]", path, i), do)
		}
		if v.Kind() == reflect.Slice {
			old := reflect.ValueOf(v.Interface())
			v.Set(reflect.Append(old, reflect.New(v.Type().Elem()).Elem()))
			do(path + "[+]")
			v.Set(old)
		}
	case reflect.Map: // of strings
		v.Set(reflect.ValueOf(map[string]string{"north": "x"}))
		do(path)
		v.SetZero()
	default:
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Int:
			v.SetInt(v.Int() + 1)
		case reflect.Uint64:
			v.SetUint(v.Uint() + 1)
		case reflect.Float64:
			v.SetFloat(v.Float() + 1)
		case reflect.Bool:
			v.SetBool(!v.Bool())
		default:
			panic("study tests cannot change a " + v.Type().String() + " at " + path)
		}
		do(path)
		v.Set(old)
	}
}

func TestEveryFieldChangesTheDigestButLocal(t *testing.T) {
	p := parse(t, strings.Replace(small, "latent: 6", "latent: 6\n  layers: [{name: a, width: 1}]", 1)+
		"question: why\n")
	base := digest(t, p)
	seen := map[study.Digest]string{base: "the plan itself"}
	leaves := 0
	change(reflect.ValueOf(p).Elem(), "", func(path string) {
		leaves++
		d := digest(t, p)
		if strings.HasPrefix(path, ".Local") {
			if d != base {
				t.Errorf("%s changes the digest", path)
			}
			return
		}
		if other, ok := seen[d]; ok {
			t.Errorf("a change of %s has the digest of %s", path, other)
		}
		seen[d] = path
	})
	if leaves < 60 || digest(t, p) != base {
		t.Errorf("%d leaves changed; the plan's digest is %s, was %s", leaves, digest(t, p), base)
	}
}

// drawPlan returns YAML of a plan with awkward but legal names.
func drawPlan(t *rapid.T) *study.Plan {
	word := rapid.Custom(func(t *rapid.T) string {
		return rapid.OneOf(
			rapid.SampledFrom([]string{"on", "No", "null", "~", "1e3", "0x1", "? x", ".inf", "<<", "- a", "a: b",
				"a #b", "[x", "'q'", `"d"`, `b\s`, "é ü", "*a", "&a", "!t", "|", "=", "---", "%", "1_0", "2001-01-01",
				"a, b", "}"}),
			rapid.StringMatching(`[!-~]([ -~]{0,8}[!-~])?`),
		).Draw(t, "word")
	})
	feature := word.Filter(func(s string) bool { return s != "id" })
	names := rapid.SliceOfNDistinct(feature, 6, 6, rapid.ID).Draw(t, "names")
	p := &study.Plan{
		Version: 1, Name: "s", Seed: rapid.Uint64().Draw(t, "seed"), Sites: []string{"0", "null"}, Quorum: 2,
		Question: strings.TrimSpace(rapid.StringMatching(`[!-~\n ]{0,20}`).Draw(t, "question")),
		Views: []study.View{
			{Name: "true", Features: []study.Feature{
				{Name: names[0], Kind: study.Number},
				{Name: names[1], Kind: study.Number, Unit: word.Draw(t, "unit"),
					Range: &[2]float64{-rapid.Float64Range(0, 1e300).Draw(t, "low"),
						rapid.Float64Range(1e-300, 1e300).Draw(t, "high")}},
				{Name: names[2], Kind: study.Category, Levels: rapid.SliceOfNDistinct(word, 2, 4,
					rapid.ID).Draw(t, "levels")},
			}},
			{Name: "1e3", Features: []study.Feature{{Name: names[3], Kind: study.Number}}},
		},
		Subjects: names[4:],
		Privacy:  drawPrivacy(t),
	}
	p.Method.Name = "factors"
	p.Method.Options = &options{
		Latent: rapid.IntRange(1, math.MaxInt).Draw(t, "latent"), Variant: word.Draw(t, "variant"),
		Step: rapid.Float64Range(-1e300, 1e300).Draw(t, "step"), Ridge: rapid.Bool().Draw(t, "ridge"),
		Grid: rapid.SliceOf(rapid.Float64Range(-10, 10)).Draw(t, "grid"), Prior: &prior{0.1},
		Layers: []layer{{word.Draw(t, "layer"), 2}},
	}
	return p
}

func drawPrivacy(t *rapid.T) study.Privacy {
	if rapid.Bool().Draw(t, "none") {
		return study.Privacy{Protection: study.ProtectionNone}
	}
	p := study.Privacy{
		Protection: study.ProtectionDifferential,
		Unit:       rapid.SampledFrom([]string{study.UnitSubject, study.UnitSite}).Draw(t, "unit"),
		Adjacency:  rapid.SampledFrom([]account.Adjacency{account.AddRemove, account.ReplaceOne}).Draw(t, "adjacency"),
	}
	budget := &account.Budget{Epsilon: rapid.Float64Range(1e-300, 1e300).Draw(t, "epsilon"),
		Delta: rapid.Float64Range(1e-300, 0.999).Draw(t, "delta")}
	if rapid.Bool().Draw(t, "published") {
		p.PerRelease = budget
	} else {
		p.Total, p.Diagnostics = budget, rapid.Float64Range(0, 0.999).Draw(t, "diagnostics")
	}
	return p
}

func TestPlansSurviveYAMLAndEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		b := testkit.Get(p.Encode())(t)
		back := testkit.Get(study.Decode(b, methods{}))(t)
		text := testkit.Get(back.YAML())(t)
		read, err := study.Parse("plan.yaml", text, methods{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		again, err := read.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("another plan came back (%v):\n%s", err, text)
		}
	})
}

func TestYAMLIsMadeForPeople(t *testing.T) {
	got := testkit.Get(parse(t, small+"local: {data: d, split: {scenario: IID}}\n").YAML())(t)
	want := `parley: 1
name: alzheimer
seed: 1
sites: [north, centre, south]
quorum: 3
views:
  - name: clinic
    features: [age, male]
  - name: immune
    features:
      - {name: tau, kind: number, range: [0, 12.5], unit: ng/l}
      - {name: stage, kind: category, levels: [I, II, III]}
subjects: [group]
method:
  name: factors
  latent: 6
  variant: plain
  rounds: 3
  step: 0.5
  ridge: false
  box: [0, 0]
privacy:
  protection: none
`
	comment, rest, _ := strings.Cut(string(got), "\n")
	if rest != want || comment != "# The effective plan; digest "+digest(t, parse(t, small)).String() {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDecodeRefusals(t *testing.T) {
	good := encode(t, parse(t, small))
	edit := func(do func(plan map[string]any)) []byte {
		var m map[string]any
		dec := testkit.Get(cbor.DecOptions{DefaultMapType: reflect.TypeOf(m)}.DecMode())(t)
		testkit.Do(t, dec.Unmarshal(good, &m))
		do(m)
		enc := testkit.Get(cbor.CoreDetEncOptions().EncMode())(t)
		return testkit.Get(enc.Marshal(m))(t)
	}
	if b := edit(func(map[string]any) {}); !bytes.Equal(b, good) {
		t.Fatal("the edits below begin from something else")
	}
	opts := func(m map[string]any) map[string]any { return m["method"].(map[string]any)["options"].(map[string]any) }
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing":     {nil, "decoding the plan: EOF"},
		"cut short":   {good[:len(good)-1], "decoding the plan: unexpected EOF"},
		"a byte more": {append(slices.Clone(good), 0), "extraneous data"},
		"too large":   {make([]byte, study.MaxBytes+1), "above the limit of 1048576"},
		"unknown field": {edit(func(m map[string]any) { m["local"] = map[string]any{"data": "x"} }),
			"unknown field"},
		"unknown option": {edit(func(m map[string]any) { opts(m)["latnet"] = 1 }),
			"decoding the options of method factors: cbor: found unknown field"},
		"option left out": {edit(func(m map[string]any) { delete(opts(m), "variant") }),
			"not in canonical encoding, or with options left out"},
		"field left out": {edit(func(m map[string]any) { delete(m, "quorum") }),
			"quorum: 0 contributions cannot come from 3 sites"},
		"another case": {edit(func(m map[string]any) { m["Name"] = m["name"]; delete(m, "name") }),
			"unknown field"},
		"wrong type": {edit(func(m map[string]any) { m["sites"] = "north" }),
			"decoding the plan: cbor: cannot unmarshal"},
		"no options": {edit(func(m map[string]any) { delete(m["method"].(map[string]any), "options") }),
			"decoding the options of method factors"},
		"unknown method": {edit(func(m map[string]any) { m["method"].(map[string]any)["name"] = "mvpca" }),
			`method.name: unknown method "mvpca"`},
		"the method checks": {edit(func(m map[string]any) { opts(m)["latent"] = 0 }), "method.latent: 0 dimensions"},
		"unknown version": {edit(func(m map[string]any) { m["parley"] = 2 }),
			"parley: version 2 of the plan format is unknown"},
		"not a number": {edit(func(m map[string]any) {
			m["views"].([]any)[1].(map[string]any)["features"].([]any)[0].(map[string]any)["range"] = []any{math.NaN(),
				1.0}
		}), "views[1].features[0].range: NaN is not below 1"},
		"twice the same key": {append([]byte{good[0] + 1}, append([]byte("\x64name\x61x"), good[1:]...)...),
			"duplicate map key"},
		"deep": {bytes.Repeat([]byte{0x81}, 100), "decoding the plan"},
	} {
		if _, err := study.Decode(c.b, methods{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{small, private} {
		p := testkit.Get(study.Parse("plan.yaml", []byte(text), methods{}))(f)
		b := testkit.Get(p.Encode())(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := study.Decode(b, methods{})
		if err != nil {
			return
		}
		if !bytes.Equal(encode(t, p), b) {
			t.Fatalf("%x is read and written differently", b)
		}
		text := testkit.Get(p.YAML())(t)
		if back := parse(t, string(text)); digest(t, back) != digest(t, p) {
			t.Fatalf("YAML is another plan:\n%s", text)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(private))
	for _, r := range refusals {
		if len(r.new) < 4096 {
			f.Add([]byte(strings.Replace(small, r.old, r.new, 1)))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := study.Parse("plan.yaml", b, methods{})
		if err != nil {
			return
		}
		back, err := study.Decode(encode(t, p), methods{})
		if err != nil || digest(t, back) != digest(t, p) {
			t.Fatalf("a plan does not survive its encoding: %v\n%s", err, b)
		}
		text := testkit.Get(p.YAML())(t)
		if again := parse(t, string(text)); digest(t, again) != digest(t, p) {
			t.Fatalf("YAML is another plan:\n%s", text)
		}
	})
}

type oneMethod struct{ options any }

func (m oneMethod) Options(string) (any, bool) { return m.options, true }
func (m oneMethod) Names() []string            { return []string{"factors"} }

func TestOptionsThatCannotBeReadBackPanic(t *testing.T) {
	for name, options := range map[string]any{
		"nil and always written": &struct {
			Latent []int `json:"latent"`
		}{},
		"left out where not 0 by default": &struct {
			Latent int `json:"latent,omitempty"`
		}{2},
		"no tag": &struct{ Latent int }{},
		"inside a list": &struct {
			Latent []struct {
				P *int `json:"p"`
			} `json:"latent,omitempty"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			_, err := study.Parse("plan.yaml", []byte(small), oneMethod{options})
			t.Log(err)
		}()
	}
}
