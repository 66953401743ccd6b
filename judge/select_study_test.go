package judge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/internal/testkit"
	"parley/method"
	"parley/privacy"
	"parley/problem"
	"parley/study"
)

// chooser is a method whose sites release one word.
type chooser struct{ method.Method }

func (chooser) Name() string                                           { return "toy" }
func (chooser) Options() any                                           { return &struct{}{} }
func (chooser) Chooses() string                                        { return "latent" }
func (chooser) ReleasedFile(*study.Plan) (string, error)               { return "model/word.txt", nil }
func (chooser) Requests(*study.Plan, string) ([]privacy.Listed, error) { return nil, nil }
func (chooser) Refit(_ *study.Plan, released []byte, _ int) (*method.Result, error) {
	return &method.Result{Files: []method.File{{Name: "model/word.txt", Data: released}},
		Metrics: map[string]float64{"a": 1}}, nil
}
func (chooser) SelectReleased(context.Context, *study.Plan, []byte, method.SelectConfig) (*method.Selection, error) {
	return nil, nil
}

var toys = method.Registry{chooser{}}

// ended writes the results of a private study and returns their folder.
func ended(t *testing.T) string {
	t.Helper()
	p, err := study.Parse("plan.yaml", []byte("parley: 1\nname: small\nsites: [north, south]\nviews: [{name: v, "+
		"features: [a]}]\nmethod: {name: toy}\nprivacy: {protection: differential, unit: subject, adjacency: "+
		"add-remove, total: {epsilon: 1, delta: 1e-5}}\n"), toys)
	if err != nil {
		t.Fatal(err)
	}
	digest := testkit.Get(p.Digest())(t)
	plan := testkit.Get(p.YAML())(t)
	dir := t.TempDir()
	put(t, dir, "plan.yaml", string(plan))
	put(t, dir, "provenance.json", `{"plan_sha256": "`+digest.String()+
		`", "finished": "2026-11-21T08:00:00Z", "sites_left": ["south"]}`)
	put(t, dir, "model/word.txt", "word")
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	testkit.Do(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)))
}

func TestOpenStudy(t *testing.T) {
	dir := ended(t)
	s := testkit.Get(OpenStudy(dir, toys))(t)
	o := s.Origin
	// sha256sum of "word"
	if string(s.Released) != "word" || o.Study != "small" || o.Plan == "" || len(o.Guarantee) == 0 ||
		len(o.Broken) > 0 || len(o.Left) != 1 ||
		o.Released != "98c1eb4ee93476743763878fcb96a25fbc9a175074d64004779ecb5242f645e6" {
		t.Errorf("%+v", s)
	}
	// A study that did not keep its promise hands that down.
	put(t, dir, "privacy.json", `{"holds": false, "broken": ["the noise came from a seed"]}`)
	if s = testkit.Get(OpenStudy(dir, toys))(t); len(s.Origin.Broken) != 1 {
		t.Fatalf("%+v", s)
	}
	refit := filepath.Join(t.TempDir(), "refit")
	r := testkit.Get(s.Refit(3))(t)
	testkit.Do(t, s.WriteRefit(refit, 3, r, time.Unix(0, 0)))
	page, err := os.ReadFile(filepath.Join(refit, "report.html"))
	if err != nil || !strings.Contains(string(page), "The study itself has no guarantee") ||
		!strings.Contains(string(page), "the noise came from a seed") {
		t.Errorf("the report does not say that the study is not protected (%v)", err)
	}
	again := testkit.Get(OpenStudy(refit, toys))(t)
	a, _ := json.Marshal(s.Origin)
	b, _ := json.Marshal(again.Origin)
	if string(a) != string(b) {
		t.Errorf("the origin of a refit is\n%s, not\n%s", b, a)
	}
}

func TestOpenStudyRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"no provenance": {"provenance.json", "", "this directory holds no results"},
		"broken":        {"provenance.json", "{", "this is not a run's provenance"},
		"another plan": {"provenance.json", `{"plan_sha256": "abc"}`,
			"this is not the plan of these results, whose digest is abc"},
		"no releases":      {"model/word.txt", "", "what the sites released is not here"},
		"guarantee unsaid": {"privacy.json", "{}", "does not say whether the study's guarantee holds"},
	} {
		dir := ended(t)
		if c.text == "" {
			testkit.Do(t, os.Remove(filepath.Join(dir, filepath.FromSlash(c.file))))
		} else {
			put(t, dir, c.file, c.text)
		}
		_, err := OpenStudy(dir, toys)
		if p := (problem.Problem{}); !errors.As(err, &p) || !strings.Contains(p.What, c.want) || p.File == "" {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	dir := ended(t)
	data := testkit.Get(os.ReadFile(filepath.Join(dir, "provenance.json")))(t)
	put(t, dir, "provenance.json", strings.Replace(string(data), `"finished"`, `"started"`, 1))
	if _, err := OpenStudy(dir, toys); err == nil || !strings.Contains(err.Error(), "this run has not ended") {
		t.Errorf("a run under way: %v", err)
	}
}

func TestClaimRefit(t *testing.T) {
	s := testkit.Get(OpenStudy(ended(t), toys))(t)
	dir := t.TempDir()
	if err := errors.Join(s.ClaimRefit(dir), s.ClaimRefit(filepath.Join(dir, "new"))); err != nil {
		t.Error(err)
	}
	put(t, dir, "thesis.txt", "")
	for _, c := range []struct{ text, want string }{
		{"", "holds no refit"},
		{`{"plan_sha256": "x"}`, "holds no refit"}, // a run
		{`{"post_processing_of": {"study": "other", "released_sha256": "y"}}`,
			"a refit of other releases (of study other)"},
		{`{"post_processing_of": {"released_sha256": "` + s.Origin.Released + `"}}`, ""},
	} {
		if c.text != "" {
			put(t, dir, "provenance.json", c.text)
		}
		err := s.ClaimRefit(dir)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}
