package method

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/dataset"
	"parley/problem"
)

// opener is a method that has models and nothing else.
type opener struct {
	Method
	name    string
	formats []string
}

func (o opener) Name() string           { return o.name }
func (o opener) ModelFormats() []string { return o.formats }
func (o opener) OpenModel(data []byte) (Model, error) {
	if strings.Contains(string(data), "broken") {
		return nil, errors.New("it is broken")
	}
	return opened{o.name}, nil
}

type opened struct{ method string }

func (o opened) Method() string         { return o.method }
func (o opened) Schema() dataset.Schema { return dataset.Schema{} }

var openers = Registry{
	opener{name: "first", formats: []string{"parley/first-model/2", "parley/first-model/3"}},
	opener{name: "second", formats: []string{"parley/second-model/1"}},
}

func TestModelsAreOpenedByTheirFormat(t *testing.T) {
	for format, want := range map[string]string{"parley/first-model/2": "first", "parley/first-model/3": "first", "parley/second-model/1": "second"} {
		m, err := openers.OpenModel([]byte(`{"format": "` + format + `"}`))
		if err != nil || m.Method() != want {
			t.Errorf("%s: %v, %v", format, m, err)
		}
	}
}

func TestOtherModelsAreRefusedByName(t *testing.T) {
	for data, want := range map[string]string{
		`{"format": "parley/second-model/4", "program": "parley 7"}`: `"parley/second-model/4", written by parley 7, which is newer than this program`,
		`{"format": "parley/first-model/1"}`:                         `"parley/first-model/1", written by a program that it does not name, and this program reads "parley/first-model/2"`,
		`{"format": "parley/third-model/1", "program": "x"}`:         `no method of this program has it`,
		`{"format": "pickle"}`:                                       `hint: this program reads parley/first-model/2, parley/first-model/3, parley/second-model/1`,
		`{}`:                                                         `it has no "format"`,
		`[1, 2]`:                                                     `this is not a model`,
		`id,age`:                                                     `this is not a model`,
		``:                                                           `this is not a model`,
	} {
		if m, err := openers.OpenModel([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", data, m, err, want)
		}
	}
}

func TestAModelIsFoundInItsDirectories(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("results/model/model.json", `{"format": "parley/second-model/1"}`)
	for _, path := range []string{file, filepath.Dir(file), filepath.Join(dir, "results")} {
		if m, err := openers.ReadModel(path); err != nil || m.Method() != "second" {
			t.Errorf("%s: %v, %v", path, m, err)
		}
	}
	write("begun/provenance.json", "{}")
	write("empty/other.txt", "")
	broken := write("broken.json", `{"format": "parley/second-model/1", "broken": 1}`)
	text := write("text.json", `hello`)
	for path, want := range map[string]string{
		filepath.Join(dir, "begun"): "has not ended",
		filepath.Join(dir, "empty"): "there is no model in this directory",
		filepath.Join(dir, "none"):  "there is no such model",
		broken:                      "it is broken",
		text:                        "this is not a model",
	} {
		_, err := openers.ReadModel(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	var p problem.Problem
	if _, err := openers.ReadModel(text); !errors.As(err, &p) || p.Hint == "" {
		t.Errorf("no hint in %v", err)
	}
}
