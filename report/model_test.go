package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/problem"
)

// opener is a method that has models and nothing else.
type opener struct {
	method.Method
	name    string
	formats []string
}

func (o opener) Name() string           { return o.name }
func (o opener) ModelFormats() []string { return o.formats }
func (o opener) OpenModel(data []byte) (method.Model, error) {
	if strings.Contains(string(data), "broken") {
		return nil, errors.New("it is broken")
	}
	return opened{o.name}, nil
}

type opened struct{ method string }

func (o opened) Method() string         { return o.method }
func (o opened) Schema() dataset.Schema { return dataset.Schema{} }

var openers = method.Registry{
	opener{name: "first", formats: []string{"parley/first-model/2", "parley/first-model/3"}},
	opener{name: "second", formats: []string{"parley/second-model/1"}},
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
		if m, err := ReadModel(openers, path); err != nil || m.Method() != "second" {
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
		_, err := ReadModel(openers, path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	var p problem.Problem
	if _, err := ReadModel(openers, text); !errors.As(err, &p) || p.Hint == "" {
		t.Errorf("no hint in %v", err)
	}
}
